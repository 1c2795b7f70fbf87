#include "fcp/facade/state.h"

#include <cmath>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/data/encoding_text.h"
#include "fcp/data/record.h"
#include "fcp/pipeline/open_data.h"
#include "fcp/scores/outputs.h"

namespace fcp {
namespace {

std::vector<int64_t> fixed_row_shape(const Graph& network) {
  const TensorInfo& input = network.inputs.at(0);
  if (!input.known_rank || input.shape.empty()) {
    fail("input '", input.name, "' has no shape in the file; rows cannot be told apart");
  }
  std::vector<int64_t> shape(input.shape.begin() + 1, input.shape.end());
  for (const int64_t size : shape) {
    if (size == kDynamic) {
      fail("input '", input.name, "' has an open dimension besides the batch; use fcp/tensors.h");
    }
  }
  return shape;
}

}  // namespace

ConformalPredictor::State::State(CalibrationArtifact made, torch::Device where)
    : artifact(std::move(made)), device(where), predictor(artifact, device) {
  const Graph& network = artifact.network;
  row_shape = fixed_row_shape(network);
  for (const int64_t size : row_shape) row_size *= static_cast<size_t>(size);
  const auto found = network.metadata.find(kEncodingKey);
  if (found != network.metadata.end()) encoding = parse_encoding(found->second);
  missing_allowed = encoding && accepts_missing(*encoding);
  const auto count = static_cast<size_t>(predictor.score().classes());
  if (count > 0) {
    classes = class_names_of(network, count);
    return;
  }
  // The number of outputs follows from an answer; zeros are a row that every network takes.
  torch::NoGradGuard no_grad;
  const std::vector<float> zeros(row_size, 0);
  outputs = static_cast<size_t>(predictor.region(describe(zeros), Level(0.5)).prediction.size(1));
}

TestInputs ConformalPredictor::State::describe(std::span<const float> x, uint64_t first) const {
  if (x.empty() || x.size() % row_size != 0) {
    fail("x: found ", x.size(), " numbers, expected rows of ", row_size);
  }
  for (size_t i = 0; i < x.size() && !missing_allowed; ++i) {
    if (std::isnan(x[i])) {
      fail("x: row ", i / row_size, " (from 0) has NaN in column ", i % row_size,
           ", expected a number");
    }
  }
  std::vector<int64_t> shape = {static_cast<int64_t>(x.size() / row_size)};
  shape.insert(shape.end(), row_shape.begin(), row_shape.end());
  const torch::Tensor rows = torch::from_blob(const_cast<float*>(x.data()), shape, torch::kFloat);
  return predictor.describe(rows, {.groups = {}, .weights = {}, .first = first});
}

std::vector<float> ConformalPredictor::State::encode(std::span<const Record> rows) const {
  if (!encoding) fail("the network does not say how its columns are called; pass numbers instead");
  std::vector<float> x;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::vector<float> row =
        encode_record(*encoding, rows[i], concat("row ", i, " (from 0)"));
    x.insert(x.end(), row.begin(), row.end());
  }
  return x;
}

void ConformalPredictor::State::expect_labels(bool wanted) const {
  const bool labels = predictor.score().classes() > 0;
  if (labels == wanted) return;
  fail("the score ", artifact.score.name, " gives ",
       labels ? "label sets, not intervals" : "intervals, not label sets");
}

}  // namespace fcp
