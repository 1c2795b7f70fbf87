#include "fcp/calibration/tensor_predictor.h"

#include <limits>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/base/row_hash.h"
#include "fcp/network/batch_free.h"
#include "fcp/scores/labels.h"
#include "fcp/scores/outputs.h"

namespace fcp {
namespace {

// One key for each row, of its place in the data and its x: equal rows get different keys.
std::vector<uint64_t> row_keys(const torch::Tensor& x, const SideInformation& given) {
  const torch::Tensor rows = x.to(torch::kCPU).contiguous();
  const auto count = static_cast<size_t>(rows.size(0));
  if (!given.places.empty() && given.places.size() != count) {
    fail("found ", given.places.size(), " places for ", count, " rows");
  }
  const size_t bytes = count == 0 ? 0 : rows.nbytes() / count;
  const auto* data = static_cast<const unsigned char*>(rows.data_ptr());
  std::vector<uint64_t> keys;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t place = given.places.empty() ? given.first + i : given.places[i];
    keys.push_back(row_hash(data + i * bytes, bytes, place));
  }
  return keys;
}

}  // namespace

std::vector<int64_t> predicted_labels(const ScoredNetwork& predictor, const std::string& output,
                                      const torch::Tensor& features) {
  const Network& head = *predictor.shared_head();
  const torch::Tensor answer =
      output_matrix(run_apart(head, {features})[output_index(head, output)]);
  const torch::Tensor numbers =
      answer.size(1) > 1 ? answer
                         : logits_of(logit_head(predictor.shared_head(), output), features);
  const torch::Tensor labels = numbers.argmax(1).to(torch::kCPU).contiguous();
  return {labels.data_ptr<int64_t>(), labels.data_ptr<int64_t>() + labels.numel()};
}

torch::Tensor ratio_input(const torch::Tensor& x, const torch::Tensor& features) {
  return x.dim() == 2 ? x : features;
}

TensorPredictor::TensorPredictor(const CalibrationArtifact& artifact, torch::Device device)
    : TensorPredictor(std::make_shared<const ScoredNetwork>(artifact.network, artifact.score,
                                                            artifact.cut, device),
                      artifact) {}

TensorPredictor::TensorPredictor(std::shared_ptr<const ScoredNetwork> network,
                                 const CalibrationArtifact& artifact)
    : network_(std::move(network)),
      output_(artifact.score.output),
      group_(artifact.calibration.name == "grouped" ? artifact.calibration.group : ""),
      split_(artifact.calibration.name == "split"),
      weighted_(artifact.calibration.name == "weighted"),
      localized_(artifact.calibration.name == "localized"),
      ratio_(artifact.ratio),
      calibration_(
          make_calibration(artifact.calibration, artifact.rows, network_->score().classes())) {}

TestInputs TensorPredictor::describe(const torch::Tensor& x, const SideInformation& given) const {
  TestInputs rows{network_->features(x), {}, {}};
  if (group_ == kByPrediction) {
    rows.groups = predicted_labels(*network_, output_, rows.features);
  } else {
    rows.groups = given.groups;
  }
  if (weighted_) {
    rows.weights = ratio_.defined() ? ratio_.weights(ratio_input(x, rows.features)) : given.weights;
  }
  if (localized_) rows.keys = row_keys(x, given);
  return rows;
}

Regions TensorPredictor::region(const TestInputs& rows, const Level& level) const {
  return score().region(rows.features, calibration_->radii(rows, level));
}

Regions TensorPredictor::unlimited(const TestInputs& rows) const {
  return score().region(rows.features, std::numeric_limits<double>::infinity());
}

std::vector<double> TensorPredictor::radius(const Level& level) const {
  if (!split_) return {};
  const torch::Tensor radii =
      calibration_->radii({torch::empty({1, 1}), {}, {}}, level).contiguous();
  return {radii.data_ptr<double>(), radii.data_ptr<double>() + radii.numel()};
}

Conformity TensorPredictor::judge(const TestInputs& rows, const torch::Tensor& truth) const {
  Conformity judged;
  judged.scores = score().score(rows.features, truth);
  if (group_ != kByLabel) {
    judged.p_values = calibration_->p_values(rows, judged.scores);
    return judged;
  }
  TestInputs by_label = rows;
  const torch::Tensor plain = truth.to(torch::kCPU).flatten();
  const torch::Tensor labels = plain.masked_fill(plain.isinf(), 0).to(torch::kLong).contiguous();
  by_label.groups.assign(labels.data_ptr<int64_t>(), labels.data_ptr<int64_t>() + labels.numel());
  judged.p_values = calibration_->p_values(by_label, judged.scores);
  return judged;
}

}  // namespace fcp
