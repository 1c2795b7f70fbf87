#include "fcp/training/target_scale.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include <torch/types.h>

#include "fcp/base/random.h"
#include "fcp/training/tabular.h"
#include "fcp/training/target_scaling.h"

namespace fcp {
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

}  // namespace fcp
