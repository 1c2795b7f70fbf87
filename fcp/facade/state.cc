#include "fcp/facade/state.h"

#include <algorithm>
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

void check_count(const char* name, size_t found, size_t expected) {
  if (found == expected) return;
  if (expected == 0) fail(name, ": found ", found, ", but the calibration uses none");
  fail(name, ": found ", found, " for ", expected, " rows; the calibration needs one per row");
}

}  // namespace

void check_info(const RowInfo& info, size_t rows, bool needs_groups, bool needs_weights) {
  check_count("groups", info.groups.size(), needs_groups ? rows : 0);
  check_count("weights", info.weights.size(), needs_weights ? rows : 0);
  for (size_t i = 0; i < info.weights.size(); ++i) {
    if (info.weights[i] >= 0 && !std::isinf(info.weights[i])) continue;
    fail("weights: row ", i, " (from 0) is ", info.weights[i],
         ", expected a finite number, not negative");
  }
}

ConformalPredictor::State::State(CalibrationArtifact made, torch::Device where)
    : artifact(std::move(made)),
      device(where),
      predictor(artifact, device),
      missing(artifact.network) {
  const Graph& network = artifact.network;
  row_shape = fixed_row_shape(network);
  for (const int64_t size : row_shape) row_size *= static_cast<size_t>(size);
  const auto found = network.metadata.find(kEncodingKey);
  if (found != network.metadata.end()) encoding = parse_encoding(found->second);
  const auto count = static_cast<size_t>(predictor.score().classes());
  if (count > 0) {
    classes = class_names_of(network, count);
    return;
  }
  // The number of outputs follows from an answer; zeros are a row that every network takes.
  torch::NoGradGuard no_grad;
  const std::vector<float> zeros(row_size, 0);
  const TestInputs row = predictor.describe(rows_of(zeros));
  outputs = static_cast<size_t>(predictor.unlimited(row).prediction.size(1));
}

torch::Tensor ConformalPredictor::State::rows_of(std::span<const float> x) const {
  if (x.empty() || x.size() % row_size != 0) {
    fail("x: found ", x.size(), " numbers, expected rows of ", row_size);
  }
  std::vector<int64_t> shape = {static_cast<int64_t>(x.size() / row_size)};
  shape.insert(shape.end(), row_shape.begin(), row_shape.end());
  const torch::Tensor rows = torch::from_blob(const_cast<float*>(x.data()), shape, torch::kFloat);
  if (const auto found = missing.find_refused(rows)) {
    fail("x: row ", found->row, " (from 0) has NaN in column ", found->column,
         ", expected a number");
  }
  return rows;
}

bool ConformalPredictor::State::needs_groups() const {
  const CalibrationOptions& calibration = artifact.calibration;
  return calibration.name == "grouped" && calibration.group != kByPrediction &&
         calibration.group != kByLabel;
}

TestInputs ConformalPredictor::State::describe(const torch::Tensor& x, const RowInfo& info,
                                               uint64_t first) const {
  check_info(info, static_cast<size_t>(x.size(0)), needs_groups(),
             artifact.calibration.name == "weighted" && !artifact.ratio.defined());
  SideInformation given;
  given.weights = info.weights;
  given.first = first;
  const std::vector<std::string>& known = artifact.rows.group_names;
  for (const std::string& name : info.groups) {
    const auto found = std::find(known.begin(), known.end(), name);
    given.groups.push_back(found == known.end() ? -1 : found - known.begin());
  }
  return predictor.describe(x, given);
}

RowInfo ConformalPredictor::State::info_of(std::span<const Record> rows,
                                           const RowInfo& info) const {
  RowInfo whole = info;
  if (!needs_groups() || !info.groups.empty()) return whole;
  const std::string& column = artifact.calibration.group;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto found = rows[i].find(column);
    if (found == rows[i].end()) {
      fail("row ", i, " (from 0): has no column '", column,
           "', which holds the groups that the predictor is calibrated by");
    }
    whole.groups.push_back(found->second);
  }
  return whole;
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
