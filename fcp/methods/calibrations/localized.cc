#include "fcp/methods/calibrations/localized.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <ATen/Parallel.h>

#include "fcp/base/error.h"
#include "fcp/base/hash.h"
#include "fcp/base/random.h"
#include "fcp/methods/calibrations/weighted.h"
#include "fcp/methods/method.h"
#include "fcp/methods/scores/score.h"
#include "fcp/nn/kernels/cpu/row_product.h"

namespace fcp {
namespace {

constexpr int64_t kBlockRows = 256;  // new rows whose distances are held at once

torch::Tensor flat_double(const torch::Tensor& features) {
  torch::Tensor rows = features.to(torch::kCPU, torch::kDouble).flatten(1).contiguous();
  if (rows.isnan().any().item<bool>()) {
    fail("localized calibration needs features without missing values; cut later in the network");
  }
  return rows;
}

// ‖a_i − b_j‖² of rows a [N, D] and b [n, D] → [N, n], summed from the differences. The faster
// ‖a‖² + ‖b‖² − 2ab cancels where features lie far from 0 compared with the bandwidth.
torch::Tensor squared_distances(const torch::Tensor& a, const torch::Tensor& b) {
  constexpr int64_t kWithoutProducts = 2;  // libtorch's name for the plain sum
  return torch::cdist(a, b, 2.0, kWithoutProducts).square();
}

class Localized : public Calibration {
 public:
  Localized(double bandwidth, const SharedCalibrationOptions& shared, const CalibrationScores& rows)
      : bandwidth_(bandwidth), shared_(shared), sides_(rows.sides), targets_(rows.targets) {
    if (!rows.features.defined()) fail("localized calibration needs the features of its rows");
    features_ = flat_double(rows.features);
    if (!(bandwidth > 0)) {
      fail("localized calibration needs a bandwidth above 0; found ", bandwidth);
    }
    if (features_.size(0) != static_cast<int64_t>(rows.count())) {
      fail("localized calibration found ", features_.size(0), " features for ", rows.count(),
           " rows");
    }
    for (int64_t side = 0; side < sides_; ++side)
      sides_sorted_.emplace_back(side_scores(rows, side));
  }

  torch::Tensor radii(const TestInputs& rows, const Level& level) const override {
    const Level each = side_level(level, sides_ / targets_, shared_.paper);
    torch::Tensor result = torch::empty({rows.features.size(0), sides_}, torch::kDouble);
    auto at = result.accessor<double, 2>();
    for_rows(rows, [&](int64_t row, std::span<const double> weights, double own) {
      for (int64_t side = 0; side < sides_; ++side) {
        at[row][side] = sides_sorted_[static_cast<size_t>(side)].quantile(weights, own, each);
      }
    });
    return result;
  }

  std::vector<double> p_values(const TestInputs& rows,
                               std::span<const double> scores) const override {
    const auto sides = static_cast<size_t>(sides_);
    const auto targets = static_cast<size_t>(targets_);
    std::vector<double> result(static_cast<size_t>(rows.features.size(0)) * targets);
    for_rows(rows, [&](int64_t row, std::span<const double> weights, double own) {
      const auto i = static_cast<size_t>(row);
      std::vector<double> each(sides);
      for (size_t side = 0; side < sides; ++side) {
        each[side] = sides_sorted_[side].p_value(weights, own, scores[i * sides + side]);
      }
      join_targets(each, sides_ / targets_, shared_.paper, result.data() + i * targets);
    });
    return result;
  }

  // Mean of (Σ w)² / Σ w² over rows: how many calibration rows speak for one.
  double effective_rows(const TestInputs& rows) const {
    std::vector<double> each(static_cast<size_t>(rows.features.size(0)));
    for_rows(rows, [&](int64_t row, std::span<const double> weights, double) {
      each[static_cast<size_t>(row)] = effective_sample_size(weights);
    });
    return std::accumulate(each.begin(), each.end(), 0.0) / static_cast<double>(each.size());
  }

 private:
  // Of the rows [N, D] from place `first` of their batch on; keys may be empty.
  torch::Tensor centers(const torch::Tensor& rows, std::span<const uint64_t> keys,
                        int64_t first) const {
    torch::Tensor noise = torch::empty_like(rows);
    const int64_t width = rows.size(1);
    for (int64_t i = 0; i < rows.size(0); ++i) {
      const auto place = static_cast<size_t>(first + i);
      const uint64_t key = keys.empty() ? place : keys[place];
      Random random(row_hash(&key, 1, shared_.seed));
      double* out = noise.data_ptr<double>() + i * width;
      for (int64_t d = 0; d < width; ++d) out[d] = random.normal();
    }
    return rows + bandwidth_ * noise;
  }

  // Calls visit(row, weights [n], own weight) for every row, rows in parallel.
  template <typename Visit>
  void for_rows(const TestInputs& given, const Visit& visit) const {
    const torch::Tensor all = flat_double(given.features);
    const auto count = static_cast<size_t>(all.size(0));
    if (!given.keys.empty() && given.keys.size() != count) {
      fail("localized calibration found ", given.keys.size(), " keys for ", count, " rows");
    }
    if (all.size(1) != features_.size(1)) {
      fail("localized calibration was made on features of ", features_.size(1), " numbers; found ",
           all.size(1));
    }
    const auto n = static_cast<size_t>(features_.size(0));
    const double scale = -0.5 / (bandwidth_ * bandwidth_);
    for (int64_t first = 0; first < all.size(0); first += kBlockRows) {
      const torch::Tensor rows = all.narrow(0, first, std::min(kBlockRows, all.size(0) - first));
      const torch::Tensor center = centers(rows.contiguous(), given.keys, first);
      const torch::Tensor exponents = (squared_distances(center, features_) * scale).contiguous();
      const torch::Tensor own = (sum_rows((rows - center).square()) * scale).contiguous();
      at::parallel_for(0, rows.size(0), 16, [&](int64_t begin, int64_t end) {
        std::vector<double> weights(n);
        for (int64_t i = begin; i < end; ++i) {
          const double* exponent = exponents.data_ptr<double>() + i * static_cast<int64_t>(n);
          // Only ratios count; the largest exponent becomes 0 so that not all vanish.
          const double own_exponent = own.data_ptr<double>()[i];
          const double top = std::max(own_exponent, *std::max_element(exponent, exponent + n));
          for (size_t j = 0; j < n; ++j) weights[j] = std::exp(exponent[j] - top);
          visit(first + i, weights, std::exp(own_exponent - top));
        }
      });
    }
  }

  double bandwidth_;
  SharedCalibrationOptions shared_;
  int64_t sides_, targets_;
  torch::Tensor features_;  // [n, D] doubles
  std::vector<WeightedScores> sides_sorted_;
};

// Of rows that differ: behind a ReLU, or of few categories, most may be equal. 0 where all are.
double median_distance(const torch::Tensor& rows) {
  const int64_t some = std::min<int64_t>(rows.size(0), 500);
  if (some < 2) return 0;
  const torch::Tensor part = rows.narrow(0, 0, some);
  const torch::Tensor table = squared_distances(part, part).sqrt();
  const torch::Tensor distances =
      table.masked_select(torch::ones_like(table).triu(1).to(torch::kBool));
  // The network's rounding may leave equal rows a little apart.
  const torch::Tensor apart = distances.masked_select(distances > 1e-6 * distances.max());
  return apart.numel() == 0 ? 0 : apart.median().item<double>();
}

// The loss of rows whose truth is known: what a short region costs and what a miss costs.
double region_loss(const Regions& regions, const torch::Tensor& truth, const Level& level) {
  const int64_t rows = truth.size(0);
  if (regions.members.defined()) {
    const torch::Tensor sizes = regions.members.sum(1).to(torch::kDouble);
    const torch::Tensor hit = regions.members.gather(1, truth.to(torch::kLong));
    return (sizes.sum().item<double>() + hit.logical_not().sum().item<double>() / level.value()) /
           static_cast<double>(rows);
  }
  const torch::Tensor y = truth.to(regions.lower.device(), torch::kDouble);
  const torch::Tensor missed = (regions.lower - y).clamp_min(0) + (y - regions.upper).clamp_min(0);
  const torch::Tensor cost = region_costs(regions, y);
  return (cost + missed * miss_penalty(level, regions.side)).mean().item<double>();
}

// Half of the rows calibrate, the other half is judged.
void judge_half(const Score& score, const std::vector<double>& scores,
                const torch::Tensor& features, const torch::Tensor& truth, const Level& level,
                bool first, BandwidthCandidate& candidate, uint64_t seed) {
  const int64_t rows = features.size(0), half = rows / 2;
  const int64_t from = first ? 0 : half, to = first ? half : rows;
  const int64_t begin = first ? half : 0, count = first ? rows - half : half;
  const int64_t sides = score.sides();
  CalibrationScores kept;
  kept.sides = sides;
  kept.targets = score.targets();
  kept.scores.assign(scores.begin() + from * sides, scores.begin() + to * sides);
  kept.features = features.narrow(0, from, to - from);
  const Localized localized(candidate.bandwidth, {.seed = seed}, kept);
  const TestInputs fresh{features.narrow(0, begin, count), {}, {}};
  const torch::Tensor judged = truth.narrow(0, begin, count);
  const std::span<const double> own(scores.data() + begin * sides,
                                    static_cast<size_t>(count * sides));
  const auto covered = [&](double p) { return p > level.value(); };
  const std::vector<double> p_values = localized.p_values(fresh, own);
  candidate.coverage +=
      static_cast<double>(std::count_if(p_values.begin(), p_values.end(), covered)) /
      static_cast<double>(2 * p_values.size());
  candidate.loss +=
      region_loss(score.region(fresh.features, localized.radii(fresh, level)), judged, level) / 2;
  candidate.effective_rows += localized.effective_rows(fresh) / 2;
}

}  // namespace

std::vector<Option> LocalizedOptions::rows() {
  return {calibration_option(
      field::bandwidth,
      {.name = "bandwidth",
       .help = "Width of the neighborhood, in the unit of the features, or 'auto' to choose it on "
               "held-out rows",
       .most = kAnyNumber,
       .above = true,
       .may_be_auto = true,
       .auto_by_default = true,
       .after = "group"})};
}

std::unique_ptr<Calibration> make_calibration(const LocalizedOptions& options,
                                              const SharedCalibrationOptions& shared,
                                              const CalibrationScores& rows, int64_t /*classes*/) {
  return std::make_unique<Localized>(options.bandwidth, shared, rows);
}

BandwidthChoice choose_bandwidth(const Score& score, const torch::Tensor& features,
                                 const torch::Tensor& truth, const Level& level, uint64_t seed) {
  const double unit = median_distance(flat_double(features));
  if (!(unit > 0)) fail("the features of all rows are equal; localized calibration needs others");
  const std::vector<double> scores = score.score(features, truth);
  BandwidthChoice choice;
  double best = std::numeric_limits<double>::infinity();
  for (const double times : {0.25, 0.5, 1.0, 2.0, 4.0, 8.0}) {
    BandwidthCandidate candidate;
    candidate.bandwidth = times * unit;
    for (const bool first : {true, false}) {
      judge_half(score, scores, features, truth, level, first, candidate, seed);
    }
    choice.candidates.push_back(candidate);
    if (candidate.loss < best) {
      best = candidate.loss;
      choice.chosen = choice.candidates.size() - 1;
    }
  }
  if (!std::isfinite(best)) {
    fail("no bandwidth gives finite regions on the ", features.size(0), " selection rows");
  }
  return choice;
}

}  // namespace fcp
