// What a loaded or calibrated predictor answers; see fcp/fcp.h.
#include <cmath>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/facade/state.h"
#include "fcp/pipeline/context.h"
#include "fcp/pipeline/levels.h"

namespace fcp {
namespace {

std::vector<double> doubles_of(const torch::Tensor& tensor) {
  const torch::Tensor plain = tensor.to(torch::kCPU, torch::kDouble).contiguous();
  return {plain.data_ptr<double>(), plain.data_ptr<double>() + plain.numel()};
}

// wrong: [N] booleans, of rows without an answer.
void check_answered(const torch::Tensor& wrong) {
  if (!wrong.any().item<bool>()) return;
  fail("x: row ", wrong.to(torch::kLong).argmax().item<int64_t>(),
       " (from 0): the network's answer is NaN, expected a number; do its numbers overflow there?");
}

void check_no_nan(const torch::Tensor& tensor) {
  check_answered(tensor.isnan().reshape({tensor.size(0), -1}).any(1));
}

// The label of a row whose logits are NaN is −1.
void check_labels(const torch::Tensor& prediction) {
  check_answered((prediction < 0).reshape({prediction.size(0), -1}).any(1));
}

}  // namespace

ConformalPredictor ConformalPredictor::load(const std::string& path, const std::string& device) {
  return ConformalPredictor(
      std::make_shared<const State>(read_artifact(path), device_named(device)));
}

void ConformalPredictor::save(const std::string& path) const {
  write_artifact(state_->artifact, path);
}

std::vector<Interval> ConformalPredictor::intervals(std::span<const float> x, const Level& level,
                                                    const RowInfo& info) const {
  torch::NoGradGuard no_grad;
  state_->expect_labels(false);
  const Regions regions =
      state_->predictor.region(state_->answered(state_->rows_of(x), info), level);
  check_no_nan(regions.lower);
  check_no_nan(regions.upper);
  const std::vector<double> lower = doubles_of(regions.lower), upper = doubles_of(regions.upper);
  std::vector<Interval> intervals;
  intervals.reserve(lower.size());
  for (size_t i = 0; i < lower.size(); ++i) intervals.push_back({lower[i], upper[i]});
  return intervals;
}

std::vector<Interval> ConformalPredictor::intervals(std::span<const Record> rows,
                                                    const Level& level, const RowInfo& info) const {
  return intervals(state_->encode(rows), level, state_->info_of(rows, info));
}

std::vector<std::vector<size_t>> ConformalPredictor::label_sets(std::span<const float> x,
                                                                const Level& level,
                                                                const RowInfo& info) const {
  torch::NoGradGuard no_grad;
  state_->expect_labels(true);
  const Regions regions =
      state_->predictor.region(state_->answered(state_->rows_of(x), info), level);
  check_labels(regions.prediction);
  const torch::Tensor members = regions.members.to(torch::kCPU, torch::kBool).contiguous();
  const bool* member = members.data_ptr<bool>();
  std::vector<std::vector<size_t>> sets(static_cast<size_t>(members.size(0)));
  for (std::vector<size_t>& set : sets) {
    for (size_t label = 0; label < static_cast<size_t>(members.size(1)); ++label) {
      if (*member++) set.push_back(label);
    }
  }
  return sets;
}

std::vector<std::vector<size_t>> ConformalPredictor::label_sets(std::span<const Record> rows,
                                                                const Level& level,
                                                                const RowInfo& info) const {
  return label_sets(state_->encode(rows), level, state_->info_of(rows, info));
}

std::vector<double> ConformalPredictor::predictions(std::span<const float> x) const {
  torch::NoGradGuard no_grad;
  const TensorPredictor& predictor = state_->predictor;
  const torch::Tensor found =
      predictor.unlimited(predictor.describe(state_->rows_of(x))).prediction;
  predicts_labels() ? check_labels(found) : check_no_nan(found);
  return doubles_of(found);
}

std::vector<double> ConformalPredictor::predictions(std::span<const Record> rows) const {
  return predictions(state_->encode(rows));
}

std::vector<double> ConformalPredictor::p_values(std::span<const float> x, std::span<const float> y,
                                                 const RowInfo& info) const {
  torch::NoGradGuard no_grad;
  const size_t rows = x.size() / state_->row_size;
  if (y.size() != rows * state_->outputs) {
    fail("y: found ", y.size(), " numbers for ", rows, " rows, expected ", rows * state_->outputs);
  }
  for (size_t i = 0; i < y.size(); ++i) {
    if (std::isnan(y[i])) {
      fail("y: row ", i / state_->outputs, " (from 0) has NaN in column ", i % state_->outputs,
           ", expected a number");
    }
  }
  const torch::Tensor truth = torch::from_blob(
      const_cast<float*>(y.data()),
      {static_cast<int64_t>(rows), static_cast<int64_t>(state_->outputs)}, torch::kFloat);
  const TestInputs described =
      state_->describe(state_->rows_of(x), info, state_->places.judge(rows));
  try {
    return state_->predictor.judge(described, truth).p_values;
  } catch (const Error&) {  // a score that is NaN has no p-value
    const std::vector<double> scores = state_->predictor.score().score(described.features, truth);
    check_no_nan(torch::tensor(scores).reshape({static_cast<int64_t>(rows), -1}));
    throw;
  }
}

bool ConformalPredictor::predicts_labels() const { return !state_->classes.empty(); }
size_t ConformalPredictor::row_size() const { return state_->row_size; }
size_t ConformalPredictor::outputs() const { return state_->outputs; }

const std::vector<std::string>& ConformalPredictor::column_names() const {
  static const std::vector<std::string> none;
  return state_->encoding ? state_->encoding->columns : none;
}

const std::vector<std::string>& ConformalPredictor::class_names() const { return state_->classes; }

size_t ConformalPredictor::calibration_rows() const { return state_->artifact.rows.count(); }
std::string ConformalPredictor::score() const { return state_->artifact.score.name; }
std::string ConformalPredictor::cut() const { return state_->artifact.cut; }

std::string ConformalPredictor::group() const {
  const CalibrationOptions& calibration = state_->artifact.calibration;
  return calibration.name == "grouped" ? calibration.group : "";
}

std::vector<double> ConformalPredictor::radius(const Level& level) const {
  return state_->artifact.radius(level);
}

std::vector<std::string> ConformalPredictor::warnings(const Level& level) const {
  return level_warnings(state_->artifact, level);
}

const std::map<std::string, std::string>& ConformalPredictor::provenance() const {
  return state_->artifact.provenance;
}

}  // namespace fcp
