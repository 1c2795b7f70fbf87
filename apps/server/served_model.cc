#include "apps/server/served_model.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/predictor/distribution.h"
#include "fcp/predictor/predict.h"
#include "fcp/predictor/region_tensors.h"

namespace fcp {
namespace {

using internal::AnswerData;
using internal::BatchData;

// As the Open Inference Protocol calls it.
std::string protocol_type(const std::string& type) {
  constexpr std::pair<const char*, const char*> kTypes[] = {
      {"float64", "FP64"}, {"int64", "INT64"}, {"int32", "INT32"}, {"int16", "INT16"},
      {"int8", "INT8"},    {"uint8", "UINT8"}, {"bool", "BOOL"}};
  for (const auto& [own, protocol] : kTypes) {
    if (type == own) return protocol;
  }
  return "FP32";
}

template <typename Number>
std::vector<Number> values_of(const torch::Tensor& tensor) {
  const torch::Tensor plain = tensor.contiguous();
  const Number* data = plain.data_ptr<Number>();
  return {data, data + plain.numel()};
}

ResponseTensor float_tensor(const std::string& name, const torch::Tensor& numbers) {
  return {name, numbers.sizes().vec(), values_of<float>(numbers.to(torch::kFloat))};
}

std::vector<ResponseTensor> all_tensors(const AnswerData& answer) {
  const Regions& first = answer.host.at(0);
  std::vector<ResponseTensor> all;
  if (first.members.defined()) {
    std::vector<int64_t> shape = first.prediction.sizes().vec();
    if (shape.back() == 1) shape.pop_back();  // one label per row, and not one per pixel
    all.push_back({"prediction", shape, host_labels(first.prediction)});
  } else {
    all.push_back(float_tensor("prediction", first.prediction));
  }
  for (size_t i = 0; i < answer.levels.size(); ++i) {
    const std::string suffix = answer.levels.size() == 1 ? "" : "_" + answer.levels[i].text();
    const Regions& regions = answer.host[i];
    if (regions.members.defined()) {
      const torch::Tensor members = regions.members.to(torch::kByte);
      all.push_back({"in_set" + suffix, members.sizes().vec(), values_of<uint8_t>(members)});
      continue;
    }
    const FloatEnds ends = float_ends(regions.lower, regions.upper);
    all.push_back(float_tensor("lower" + suffix, ends.lower));
    all.push_back(float_tensor("upper" + suffix, ends.upper));
  }
  return all;
}

}  // namespace

ServedModel::ServedModel(std::string name, const std::string& path, torch::Device device)
    : name_(std::move(name)),
      sha256_(file_sha256(path)),
      core_(read_artifact(path), device),
      facts_(artifact_facts(core_.artifact())) {
  if (const std::string& open = core_.schema().open_reason(); !open.empty()) fail(path, ": ", open);
  outputs();  // derived now, where the file does not say it
  for (const InputSchema::Input& input : core_.schema().inputs()) {
    std::vector<int64_t> shape = input.shape;
    shape.insert(shape.begin(), -1);
    inputs_.push_back({input.name, protocol_type(input.type), std::move(shape)});
  }
}

std::vector<Level> ServedModel::levels(const std::string& alpha, const Level& otherwise) const {
  std::vector<Level> levels;
  for (size_t from = 0; !alpha.empty() && from <= alpha.size();) {
    const size_t to = std::min(alpha.find(',', from), alpha.size());
    levels.push_back(Level::parse(alpha.substr(from, to - from)));
    if (levels.size() > 16) fail("alpha: at most 16 levels are answered at once");
    from = to + 1;
  }
  if (levels.empty()) levels.push_back(otherwise);
  return levels;
}

BatchData ServedModel::rows_of(const TensorRequest& request) const {
  BatchData rows = core_.schema().encode(request.inputs, {});
  core_.schema().check_known(rows);
  rows.placed = true;  // where nothing draws, at any place
  return rows;
}

std::vector<CellCounts> ServedModel::count_cells(const TensorRequest& request,
                                                 const BatchData& rows) const {
  std::vector<CellCounts> found;
  if (rows.cells != nullptr) {
    for (size_t i = 0; i < columns().size(); ++i) {
      found.push_back({columns()[i], rows.cells->missing[i], rows.cells->unknown[i]});
    }
  } else {
    for (const NamedValues& input : request.inputs) {
      const auto* numbers = std::get_if<std::vector<double>>(&input.values);
      if (numbers == nullptr) continue;
      const auto missing = std::count_if(numbers->begin(), numbers->end(),
                                         [](double number) { return std::isnan(number); });
      found.push_back({input.name, static_cast<size_t>(missing)});
    }
  }
  std::erase_if(found, [](const CellCounts& one) { return one.missing + one.unknown == 0; });
  return found;
}

ResponseTensor ServedModel::flags(const BatchData& rows) {
  if (rows.cells == nullptr) {
    fail(
        "the parameter 'flags' takes rows by column, for a network that fcp trained on a table; "
        "numbers do not say what training rows had");
  }
  return {"flags", {static_cast<int64_t>(rows.rows())}, rows.cells->flags};
}

void ServedModel::draw_places(BatchData& rows) const {
  if (!artifact().method.calibration.traits().by_feature) return;
  std::random_device source;
  rows.known.places.resize(rows.rows());
  // 63 bits, which a database keeps as a number with a sign.
  for (uint64_t& place : rows.known.places) place = uint64_t{source()} << 31 ^ source();
}

void ServedModel::check_kept(const BatchData& rows) const {
  if (!rows.known.weights.empty()) {
    fail(
        "the predictor was calibrated with given likelihood ratios, which are not kept for "
        "feedback; serve it without --state");
  }
  if (rows.x.scalar_type() != torch::kDouble) return;
  const torch::Tensor wrong = rows.x.to(torch::kFloat)
                                  .to(torch::kDouble)
                                  .ne(rows.x)
                                  .logical_and(rows.x.isnan().logical_not());
  if (!wrong.any().item<bool>()) return;
  const int64_t at = wrong.flatten().to(torch::kByte).argmax().item<int64_t>();
  fail(rows.name_of(static_cast<size_t>(at / (wrong.numel() / wrong.size(0)))), ": found about ",
       rows.x.flatten()[at].item<double>(),
       ", which has more than the 24 bits that are kept for feedback");
}

BatchData ServedModel::kept_rows(std::span<const float> x, std::vector<int64_t> groups,
                                 std::vector<uint64_t> places) const {
  BatchData rows = core_.schema().encode(x, {});
  rows.known = {
      .groups = std::move(groups), .weights = {}, .first = 0, .places = std::move(places)};
  rows.placed = true;
  return rows;
}

AnswerData ServedModel::answer(const BatchData& rows, const std::vector<Level>& levels) const {
  AnswerData answer = core_.predict(rows, levels);
  bring_to_host(answer);
  return answer;
}

std::vector<ServedTruth> ServedModel::judge(const BatchData& rows, std::span<const float> truth,
                                            const Level& level,
                                            const std::optional<Level>& answered) const {
  core_.check_all_scores();
  std::vector<Level> levels = {level};
  if (answered) levels.push_back(*answered);
  internal::JudgedRegions regions;
  const Judgement judged = core_.judge(rows, core_.truth_of(truth, rows.rows()), levels, &regions);
  std::vector<std::vector<double>> sizes;
  for (const Regions& one : regions.regions) sizes.push_back(region_sizes(one));
  const CalibrationOptions& calibration = artifact().method.calibration;
  const bool grouped = calibration.traits().by_group;
  const bool by_label = grouped && calibration.value(field::group) == kByLabel;
  std::vector<ServedTruth> all;
  for (size_t i = 0; i < rows.rows(); ++i) {
    const auto first = judged.scores.begin() + static_cast<std::ptrdiff_t>(i * judged.sides);
    ServedTruth one{.scores = {first, first + static_cast<std::ptrdiff_t>(judged.sides)},
                    .p_value = judged.p_values.at(i),
                    .covered = judged.in.at(0).at(i),
                    .size = sizes.at(0).at(i)};
    if (answered) one.answered_size = sizes.at(1).at(i);
    if (grouped) one.group = by_label ? static_cast<int64_t>(truth[i]) : regions.groups.at(i);
    all.push_back(std::move(one));
  }
  return all;
}

std::shared_ptr<const PredictiveDistribution> ServedModel::distribution() const {
  const std::lock_guard lock(making_);
  if (!distribution_) {
    distribution_ = std::make_shared<const PredictiveDistribution>(artifact(), core_.device());
  }
  return distribution_;
}

std::vector<ResponseTensor> ServedModel::added(const TensorRequest& request,
                                               const BatchData& rows) const {
  const torch::NoGradGuard no_grad;
  std::vector<ResponseTensor> all;
  const DistributionRequest wanted{.quantiles = request.quantiles,
                                   .above = request.above,
                                   .below = request.below,
                                   .between = request.between};
  if (!wanted.empty()) {
    DistributionColumns columns(distribution(), wanted);
    if (rows.rows() > 0) {
      const torch::Tensor found = columns.columns(columns.describe(rows.x, rows.known));
      for (size_t i = 0; i < columns.names().size(); ++i) {
        all.push_back(float_tensor(columns.names()[i], found.select(1, static_cast<int64_t>(i))));
      }
    }
  }
  if (request.probabilities) {
    const ClassProbabilities probabilities(core_.network(), artifact());
    if (rows.rows() == 0) return all;
    const ClassChances found = probabilities.of(rows.x);
    all.push_back(float_tensor("probability", found.merged));
    if (!found.calibrated()) return all;
    all.push_back(float_tensor("p0", found.p0));
    all.push_back(float_tensor("p1", found.p1));
  }
  return all;
}

std::vector<ResponseTensor> ServedModel::tensors(const AnswerData& answer) const {
  return all_tensors(answer);
}

}  // namespace fcp
