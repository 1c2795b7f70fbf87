#include "fcp/methods/scores/cross.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/base/special_numbers.h"
#include "fcp/interval.h"
#include "fcp/methods/scores/labels.h"
#include "fcp/methods/scores/monotone_rows.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/nn/runtime/batch_free.h"

namespace fcp {
namespace {

struct CrossRow {
  double prediction = 0;
  std::span<const double> low, high;  // [n]

  bool valid() const {
    const auto is_nan = [](double value) { return std::isnan(value); };
    return !std::isnan(prediction) && std::none_of(low.begin(), low.end(), is_nan) &&
           std::none_of(high.begin(), high.end(), is_nan);
  }

  double score(double y) const {
    if (!valid() || std::isnan(y)) return std::nan("");
    const auto above = std::count_if(low.begin(), low.end(), [&](double a) { return a > y; });
    const auto below = std::count_if(high.begin(), high.end(), [&](double b) { return b < y; });
    return 1 + static_cast<double>(std::max(above, below));
  }

  Interval at(double radius) const {
    if (!valid()) return {std::nan(""), std::nan("")};
    const auto n = static_cast<double>(low.size());
    if (!(radius >= 1)) return {kInfinity, -kInfinity};
    if (radius >= n + 1) return {-kInfinity, kInfinity};
    const auto k = static_cast<size_t>(radius);
    return {kth(low, low.size() + 1 - k), kth(high, k)};
  }

 private:
  static double kth(std::span<const double> values, size_t k) {
    std::vector<double> all(values.begin(), values.end());
    const auto place = all.begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(all.begin(), place, all.end());
    return *place;
  }
};

class Cross : public Score {
 public:
  Cross(std::shared_ptr<const Network> head, const std::string& output)
      : head_(std::move(head)),
        output_(output_index(*head_, output)),
        low_(output_index(*head_, kCrossLowOutput)),
        high_(output_index(*head_, kCrossHighOutput)) {}

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    const CrossRows rows = rows_of(features);
    const torch::Tensor y = truth_matrix(truth.to(torch::kCPU), rows.prediction).contiguous();
    std::vector<double> scores;
    for (int64_t n = 0; n < y.size(0); ++n) {
      scores.push_back(rows.row(n).score(y.data_ptr<double>()[n]));
    }
    return scores;
  }

  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    const CrossRows rows = rows_of(features);
    const torch::Tensor radii = radius_column(radius, rows.prediction).contiguous();
    Regions regions{rows.prediction,
                    torch::empty_like(rows.prediction),
                    torch::empty_like(rows.prediction),
                    {},
                    {}};
    for (int64_t n = 0; n < rows.prediction.size(0); ++n) {
      const Interval interval = rows.row(n).at(radii.data_ptr<double>()[n]);
      regions.lower.data_ptr<double>()[n] = interval.lower;
      regions.upper.data_ptr<double>()[n] = interval.upper;
    }
    return regions;
  }

 private:
  struct CrossRows {
    torch::Tensor prediction, low, high;  // [N, 1], [N, n], [N, n]

    CrossRow row(int64_t n) const {
      const int64_t count = low.size(1);
      const auto part = [&](const torch::Tensor& values) {
        return std::span(values.data_ptr<double>() + n * count, static_cast<size_t>(count));
      };
      return {prediction.data_ptr<double>()[n], part(low), part(high)};
    }
  };

  CrossRows rows_of(const torch::Tensor& features) const {
    const Tensors outputs = run_apart(*head_, {features});
    const CrossRows rows{plain_matrix(outputs[output_]), plain_matrix(outputs[low_]),
                         plain_matrix(outputs[high_])};
    if (rows.prediction.size(1) != 1 || rows.low.sizes() != rows.high.sizes()) {
      fail("cross: found ", rows.prediction.size(1), " predictions with ", rows.low.size(1),
           " lower and ", rows.high.size(1), " upper ends, expected one with as many of both");
    }
    return rows;
  }

  std::shared_ptr<const Network> head_;
  size_t output_, low_, high_;
};

}  // namespace

std::vector<std::string> CrossOptions::learned_outputs() {
  return {kCrossLowOutput, kCrossHighOutput};
}

std::unique_ptr<Score> make_score(const CrossOptions& /*options*/, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head) {
  return std::make_unique<Cross>(std::move(head), shared.output);
}

namespace {

class CrossLabels : public LabelScore {
 public:
  CrossLabels(const std::shared_ptr<const Network>& head, const std::string& output,
              bool allow_empty)
      : LabelScore(head, output, allow_empty),
        whole_(head),
        margins_(output_index(*head, kCrossMarginsOutput)) {}

 protected:
  torch::Tensor plain_label_scores(const torch::Tensor& features,
                                   const torch::Tensor& logits) const override {
    const torch::Tensor margins = run_apart(*whole_, {features})[margins_].to(torch::kCPU);
    if (margins.dim() != 2 || margins.size(1) % classes() != 0) {
      fail("cross_labels: found margins ", margins.sizes(), ", expected a multiple of ", classes(),
           " in each row");
    }
    const torch::Tensor each = margins.reshape({margins.size(0), -1, classes()});  // [N, n, C]
    const torch::Tensor ranks = 1 + (each > 0).sum(1).to(torch::kDouble);
    const torch::Tensor unknown =
        logits.isnan().any(1, /*keepdim=*/true) | margins.isnan().any(1, /*keepdim=*/true);
    return ranks.masked_fill(unknown, std::numeric_limits<double>::quiet_NaN());
  }

 private:
  std::shared_ptr<const Network> whole_;
  size_t margins_;
};

}  // namespace

std::vector<std::string> CrossLabelsOptions::learned_outputs() { return {kCrossMarginsOutput}; }

std::unique_ptr<Score> make_score(const CrossLabelsOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head) {
  return std::make_unique<CrossLabels>(head, shared.output, options.allow_empty);
}

void sort_cross_rows(Graph& graph) {
  // The names that training gives them (fcp/training/cross_fit.cc).
  constexpr char kFold[] = "cross_fold", kResidual[] = "cross_residual";
  constexpr char kColumn[] = "cross_column", kOnes[] = "cross_ones";
  auto& tensors = graph.initializers;
  const bool labels = tensors.contains(kColumn);
  const auto place = tensors.find(labels ? kColumn : kFold);
  const auto residual = tensors.find(kResidual);
  if (place == tensors.end() || residual == tensors.end()) return;
  const int64_t classes = labels && tensors.contains(kOnes) ? tensors.at(kOnes).numel() : 1;
  const int64_t count = place->second.numel();
  if (classes < 1 || count % classes != 0 || residual->second.numel() != count ||
      place->second.type() != ElementType::kInt64 || !residual->second.is_floating_point()) {
    return;  // not of this recipe, and run as it is
  }
  const torch::Tensor places = place->second.tensor().reshape({-1, classes}).contiguous();
  const torch::Tensor residuals = residual->second.tensor().reshape({-1, classes}).contiguous();
  const torch::Tensor by_residual = residuals.to(torch::kDouble).select(1, 0).argsort();
  const torch::Tensor folds = places.select(1, 0).index_select(0, by_residual);
  const torch::Tensor order =
      by_residual.index_select(0, std::get<1>(folds.sort(/*stable=*/true, 0, false)));
  place->second = places.index_select(0, order).reshape(place->second.shape());
  residual->second = residuals.index_select(0, order).reshape(residual->second.shape());
}

}  // namespace fcp
