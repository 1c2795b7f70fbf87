#include "fcp/training/target_scaling.h"

#include <algorithm>
#include <cmath>

#include <torch/types.h>

namespace fcp {
namespace {

std::vector<double> target_column(const Array& y, size_t column) {
  std::vector<double> values;
  for (size_t i = column; i < y.values.size(); i += y.row_size()) values.push_back(y.values[i]);
  return values;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double deviation_of(const std::vector<double>& values, double mean) {
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size()));
}

}  // namespace

TargetScaling fit_target_scaling(const Array& y) {
  TargetScaling scaling;
  for (size_t k = 0; k < y.row_size(); ++k) {
    const std::vector<double> values = target_column(y, k);
    const double mean = mean_of(values);
    const double deviation = deviation_of(values, mean);
    scaling.mean.push_back(mean);
    scaling.deviation.push_back(deviation > 0 ? deviation : 1);
  }
  return scaling;
}

std::optional<double> log_shift(const Array& y) {
  if (y.row_size() != 1) return std::nullopt;
  const std::vector<double> values = target_column(y, 0);
  const double least = *std::min_element(values.begin(), values.end());
  const double mean = mean_of(values);
  if (least < 0 || !(mean > 0)) return std::nullopt;
  return least > 0 ? 0 : 0.1 * mean;
}

TargetScaling fit_log_scaling(const Array& y, double shift) {
  std::vector<double> logs = target_column(y, 0);
  for (double& value : logs) value = std::log(value + shift);
  const double mean = mean_of(logs), deviation = deviation_of(logs, mean);
  const auto [least, most] = std::minmax_element(logs.begin(), logs.end());
  return {.mean = {mean},
          .deviation = {deviation > 0 ? deviation : 1},
          .log = true,
          .shift = shift,
          .least = *least - deviation,
          .most = *most + deviation};
}

double unscaled(const TargetScaling& scaling, double value) {
  const double linear = value * scaling.deviation[0] + scaling.mean[0];
  if (!scaling.log) return linear;
  return std::exp(std::clamp(linear, scaling.least, scaling.most)) - scaling.shift;
}

torch::Tensor scale_targets(const TargetScaling& scaling, const Array& y) {
  const size_t targets = y.row_size();
  torch::Tensor scaled =
      torch::empty({static_cast<int64_t>(y.rows()), static_cast<int64_t>(targets)}, torch::kFloat);
  float* out = scaled.data_ptr<float>();
  for (size_t i = 0; i < y.values.size(); ++i) {
    const size_t k = i % targets;
    const double value = scaling.log ? std::log(y.values[i] + scaling.shift) : y.values[i];
    out[i] = static_cast<float>((value - scaling.mean[k]) / scaling.deviation[k]);
  }
  return scaled;
}

torch::Tensor mean_one(const std::vector<double>& weights) {
  if (weights.empty()) return {};
  const torch::Tensor all = torch::tensor(weights, torch::kDouble);
  return (all / all.mean()).to(torch::kFloat).contiguous();
}

double tail_weight(const Array& y) {
  double heaviest = 0;
  for (size_t k = 0; k < y.row_size(); ++k) {
    std::vector<double> values = target_column(y, k);
    const double deviation = deviation_of(values, mean_of(values));
    const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    const double median = *middle;
    for (double& value : values) value = std::abs(value - median);
    const double distance = mean_of(values);
    if (distance > 0) heaviest = std::max(heaviest, deviation / distance);
  }
  return heaviest;
}

}  // namespace fcp
