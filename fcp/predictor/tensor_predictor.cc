#include "fcp/predictor/tensor_predictor.h"

#include <limits>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/base/row_hash.h"
#include "fcp/methods/scores/labels.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/nn/runtime/batch_free.h"
#include "fcp/predictor/region_tensors.h"

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
    : TensorPredictor(std::make_shared<const ScoredNetwork>(artifact.network, artifact.method.score,
                                                            artifact.method.cut, device),
                      artifact) {}

TensorPredictor::TensorPredictor(std::shared_ptr<const ScoredNetwork> network,
                                 const CalibrationArtifact& artifact)
    : network_(std::move(network)),
      output_(artifact.method.score.output),
      group_(artifact.method.calibration.value(field::group)),
      split_(artifact.method.calibration.traits().one_radius),
      weighted_(artifact.method.calibration.traits().by_weight),
      localized_(artifact.method.calibration.traits().by_feature),
      strict_(artifact.method.score.value(field::paper)),
      ratio_(artifact.ratio),
      calibration_(make_calibration(artifact.method.calibration, artifact.rows,
                                    network_->score().classes())) {}

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
  judged.p_values = p_values(rows, truth, judged.scores);
  return judged;
}

std::vector<double> TensorPredictor::p_values(const TestInputs& rows, const torch::Tensor& truth,
                                              const std::vector<double>& scores) const {
  if (group_ != kByLabel) return calibration_->p_values(rows, scores);
  TestInputs by_label = rows;
  const torch::Tensor plain = truth.to(torch::kCPU).flatten();
  const torch::Tensor labels = plain.masked_fill(plain.isinf(), 0).to(torch::kLong).contiguous();
  by_label.groups.assign(labels.data_ptr<int64_t>(), labels.data_ptr<int64_t>() + labels.numel());
  return calibration_->p_values(by_label, scores);
}

std::vector<bool> TensorPredictor::within(const TestInputs& rows, const torch::Tensor& truth,
                                          const std::vector<double>& scores,
                                          const Level& level) const {
  torch::Tensor radii = host_doubles(calibration_->radii(rows, level));  // [N, S] or [N, C]
  const std::vector<bool> foreign = foreign_labels(truth);
  if (score().classes() > 0 && radii.size(1) > 1) {
    const torch::Tensor plain = truth.to(torch::kCPU).reshape({-1, 1});
    const torch::Tensor labels = plain.masked_fill(plain.isinf(), 0).to(torch::kLong);
    radii = radii.gather(1, labels).contiguous();
  }
  const std::span<const double> limits = numbers(radii);
  const auto sides = static_cast<size_t>(score().sides() / score().targets());
  std::vector<bool> in(scores.size() / sides, true);
  for (size_t i = 0; i < scores.size(); ++i) {
    const bool within = strict_ ? scores[i] < limits[i] : scores[i] <= limits[i];
    if (!within) in[i / sides] = false;
  }
  for (size_t i = 0; i < foreign.size(); ++i) {
    if (foreign[i]) in[i] = false;  // an infinite radius takes all labels there are, and no others
  }
  return in;
}

std::vector<bool> TensorPredictor::foreign_labels(const torch::Tensor& truth) const {
  if (score().classes() == 0 || !truth.is_floating_point() || truth.dim() != 2 ||
      truth.size(1) != 1) {
    return {};
  }
  const torch::Tensor infinite = truth.isinf().to(torch::kCPU).flatten().contiguous();
  if (!infinite.any().item<bool>()) return {};
  const bool* const from = infinite.data_ptr<bool>();
  return std::vector<bool>(from, from + infinite.numel());
}

}  // namespace fcp
