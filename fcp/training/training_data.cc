#include "fcp/training/training_data.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <string>

#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/data/columns.h"
#include "fcp/data/scaling.h"
#include "fcp/training/export.h"
#include "fcp/training/tabular.h"

namespace fcp {
namespace {

void check_shapes(const Array& x, const Array& y) {
  if (x.shape.size() != 2 || x.row_size() == 0) {
    fail("cannot train on features of shape ", shape_text(x.shape), ", expected [rows, columns]");
  }
  if (y.shape.empty() || y.shape.size() > 2 || y.row_size() == 0) {
    fail("cannot train on targets of shape ", shape_text(y.shape), ", expected [rows, outputs]");
  }
  if (x.rows() != y.rows()) {
    fail("found ", x.rows(), " rows of features and ", y.rows(), " of targets, expected as many");
  }
  if (x.rows() < kFewestTrainingRows) {
    fail("found ", x.rows(), " rows to train on, expected at least ", kFewestTrainingRows);
  }
}

void check_finite(const Array& array, const char* what, bool missing) {
  const size_t columns = array.row_size();
  for (size_t i = 0; i < array.values.size(); ++i) {
    if (std::isfinite(array.values[i]) || (missing && std::isnan(array.values[i]))) continue;
    fail(what, " of row ", i / columns, ", column ", i % columns, " (from 0) is ", array.values[i],
         ", expected a finite number");
  }
}

// A label must be exact as a float and small enough that a class for each one below it is sane.
void check_labels(const Array& y) {
  constexpr float kLargestLabel = 1 << 20;
  if (y.row_size() != 1) {
    fail("found ", y.row_size(),
         " target columns, expected one column of labels for cross-entropy");
  }
  for (size_t i = 0; i < y.values.size(); ++i) {
    const float label = y.values[i];
    if (label >= 0 && label <= kLargestLabel && label == std::floor(label)) continue;
    fail("label of row ", i, " (from 0) is ", label, ", expected a whole number from 0");
  }
}

void check_varies(const Array& y) {
  const size_t columns = y.row_size();
  for (size_t i = columns; i < y.values.size(); ++i) {
    if (y.values[i] != y.values[i % columns]) return;
  }
  fail("the target is ", y.values[0], " in all ", y.rows(), " rows: there is nothing to learn");
}

NetworkScaling fit_scaling(const Array& x, const Array& y, bool scale_target) {
  const Standardiser standardiser = fit_standardiser(x);
  NetworkScaling scaling;
  for (size_t j = 0; j < standardiser.mean.size(); ++j) {
    const float deviation = static_cast<float>(standardiser.deviation[j]);
    scaling.mean.push_back(static_cast<float>(standardiser.mean[j]));
    scaling.deviation.push_back(deviation > 0 ? deviation : 1.0f);  // 1 where float32 underflows
  }
  if (scale_target) scaling.target = static_cast<float>(target_scale(y));
  if (!(scaling.target > 0)) fail("the target's mean size, ", target_scale(y), ", is too small");
  return scaling;
}

void apply_scaling(const NetworkScaling& scaling, TrainingData& data) {
  const size_t columns = scaling.mean.size();
  for (size_t i = 0; i < data.x.size(); ++i) {
    const size_t j = i % columns;
    data.x[i] = (data.x[i] - scaling.mean[j]) / scaling.deviation[j];
    if (!std::isfinite(data.x[i])) {
      fail("feature of row ", i / columns, ", column ", j, " (from 0) is too large for float32");
    }
  }
  for (float& value : data.y) value /= scaling.target;
}

}  // namespace

void check_training_rows(const Array& x, const Array& y, Loss loss, bool missing, bool constant) {
  check_shapes(x, y);
  check_finite(x, "feature", missing);
  check_finite(y, "target", /*missing=*/false);
  if (loss == Loss::kCrossEntropy) check_labels(y);
  if (!constant) check_varies(y);
}

int64_t count_classes(std::span<const float> labels, int64_t asked) {
  const auto largest = std::max_element(labels.begin(), labels.end());
  const int64_t needed = static_cast<int64_t>(*largest) + 1;
  if (asked == 0) return needed;
  if (asked < needed) {
    fail("label of row ", largest - labels.begin(), " (from 0) is ", *largest, ", expected below ",
         asked, ", the number of classes");
  }
  return asked;
}

void check_loss_weights(std::span<const double> weights, int64_t expected, const char* what) {
  if (weights.empty()) return;
  if (static_cast<int64_t>(weights.size()) != expected) {
    fail("found ", weights.size(), " weights of the loss, expected ", expected, ", one per ", what);
  }
  for (const double weight : weights) {
    if (!(weight > 0 && std::isfinite(weight))) {
      fail("a weight of the loss is ", weight, ", expected a number above 0");
    }
  }
}

TrainingData prepare_training_data(const Array& x, const Array& y, Loss loss, bool scale) {
  check_training_rows(x, y, loss, /*missing=*/false);
  const bool labels = loss == Loss::kCrossEntropy;
  TrainingData data{.rows = static_cast<int64_t>(x.rows()),
                    .inputs = static_cast<int64_t>(x.row_size()),
                    .targets = static_cast<int64_t>(y.row_size()),
                    .x = x.values,
                    .y = y.values,
                    .scaling = {}};
  if (scale) {
    data.scaling = fit_scaling(x, y, !labels);
    apply_scaling(data.scaling, data);
  }
  return data;
}

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

namespace {

constexpr size_t kPilotRows = 6000, kFewestPilotRows = 200;
constexpr size_t kBins = 10;
constexpr double kTail = 0.05;    // on either side of an interval
constexpr double kBetter = 0.98;  // of the interval score

double quantile_of(std::vector<double>& values, double share) {
  const auto at =
      values.begin() + static_cast<int64_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// The mean interval score of the target's intervals; answers and truths in the scale of learning.
double binned_score(const TargetScaling& scaling, const torch::Tensor& answers,
                    const torch::Tensor& scaled, const Array& y, const torch::Tensor& weight) {
  const float* found = answers.data_ptr<float>();
  const float* truth = scaled.data_ptr<float>();
  std::vector<size_t> order(y.rows());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return found[a] < found[b]; });
  double sum = 0;
  for (size_t bin = 0; bin < kBins; ++bin) {
    const size_t first = bin * order.size() / kBins, last = (bin + 1) * order.size() / kBins;
    std::vector<double> residuals;
    for (size_t i = first; i < last; ++i) residuals.push_back(truth[order[i]] - found[order[i]]);
    const double low = quantile_of(residuals, kTail), high = quantile_of(residuals, 1 - kTail);
    for (size_t i = first; i < last; ++i) {
      const double lower = unscaled(scaling, found[order[i]] + low);
      const double upper = unscaled(scaling, found[order[i]] + high);
      const double value = y.values[order[i]];
      const double miss = std::max(lower - value, 0.0) + std::max(value - upper, 0.0);
      const double share = weight.defined() ? weight.data_ptr<float>()[order[i]] : 1.0;
      sum += share * (upper - lower + miss / kTail);
    }
  }
  return sum / static_cast<double>(order.size());
}

double score_of_scale(const TargetScaling& scaling, const Array& x, const Array& y,
                      const std::vector<CategoryColumns>& categories, const torch::Tensor& weight,
                      const std::vector<FitRows>& folds, uint64_t seed) {
  const torch::Tensor scaled = scale_targets(scaling, y);
  const TreeData data{
      .x = x, .y = scaled, .weight = {}, .categories = categories, .row_weight = weight};
  const TreeMembers made = fit_tree_members(data, folds, torch::zeros_like(scaled),
                                            {.seed = seed, .rounds = 150, .rate = 0.1});
  if (!made.out_of_fold.defined()) return 0;  // trees would cost too much
  return binned_score(scaling, made.out_of_fold.contiguous(), scaled, y, weight);
}

}  // namespace

bool prefers_log(const Array& x, const Array& y, const std::vector<CategoryColumns>& categories,
                 uint64_t seed, const torch::Tensor& weight) {
  const std::optional<double> shift = log_shift(y);
  if (!can_boost() || !shift || y.rows() < kFewestPilotRows) return false;
  std::vector<size_t> rows = Random(seed).permutation(y.rows());
  rows.resize(std::min(rows.size(), kPilotRows));
  const Array some_x = take_rows(x, rows), some_y = take_rows(y, rows);
  torch::Tensor some_weight;
  if (weight.defined()) {
    const std::vector<int64_t> places(rows.begin(), rows.end());
    some_weight = weight.index_select(0, torch::tensor(places, torch::kLong));
  }
  const std::vector<FitRows> folds = deal_rows(static_cast<int64_t>(rows.size()), 2, 0.5, seed);
  const auto score = [&](const TargetScaling& scaling) {
    return score_of_scale(scaling, some_x, some_y, categories, some_weight, folds, seed);
  };
  return score(fit_log_scaling(some_y, *shift)) < kBetter * score(fit_target_scaling(some_y));
}

namespace {

constexpr double kCoarse = 1e-3;  // of the spread

double offset_of(const Array& y, size_t target) {
  double mean = 0, squares = 0, count = 0;  // Welford
  for (size_t i = target; i < y.exact.size(); i += y.row_size()) {
    const double off = y.exact[i] - mean;
    mean += off / ++count;
    squares += off * (y.exact[i] - mean);
  }
  const double deviation = std::sqrt(squares / count);
  const double unit = std::abs(mean) * std::numeric_limits<float>::epsilon();
  if (!std::isfinite(deviation) || deviation == 0 || unit <= kCoarse * deviation) return 0;
  const double step = std::exp2(std::floor(std::log2(deviation)));
  return std::round(mean / step) * step;
}

// The tensor has another name wherever it is written or read.
void rename_tensor(Graph& graph, const std::string& from, const std::string& to) {
  for (Node& node : graph.nodes) {
    for (std::string& name : node.inputs) name = name == from ? to : name;
    for (std::string& name : node.outputs) name = name == from ? to : name;
  }
}

}  // namespace

std::vector<double> target_offsets(const Array& y) {
  std::vector<double> offsets;
  bool any = false;
  for (size_t k = 0; k < y.row_size() && !y.exact.empty(); ++k) {
    offsets.push_back(offset_of(y, k));
    any = any || offsets.back() != 0;
  }
  return any ? offsets : std::vector<double>();
}

Array less_offsets(const Array& y, const std::vector<double>& offsets) {
  Array rest{y.shape, {}};
  rest.values.reserve(y.exact.size());
  for (size_t i = 0; i < y.exact.size(); ++i) {
    rest.values.push_back(static_cast<float>(y.exact[i] - offsets[i % offsets.size()]));
  }
  return rest;
}

void add_offsets(Graph& graph, const std::vector<double>& offsets) {
  const std::set<std::string> answers = {"prediction", "low", "high", "fcp.cross_low",
                                         "fcp.cross_high"};
  graph.initializers["target_offset"] = torch::tensor(offsets, torch::kDouble);
  for (TensorInfo& output : graph.outputs) {
    if (!answers.contains(output.name)) continue;
    const std::string beside = output.name + "_beside_offset", wide = output.name + "_wide";
    rename_tensor(graph, output.name, beside);
    append_node(graph, "Cast", {beside}, wide, {{"to", int64_t{11}}});  // double
    append_node(graph, "Add", {wide, "target_offset"}, output.name);
    output.type = ElementType::kDouble;
  }
  graph.metadata[kTargetOffsetKey] = nlohmann::json(offsets).dump();
  sort_and_check(graph);
}

}  // namespace fcp
