#include "fcp/calibration/region_ladder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/conformal/quantile.h"
#include "fcp/conformal/rank.h"
#include "fcp/scores/outputs.h"

namespace fcp {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int64_t kProbeRows = 32;
constexpr int kRungs = 9;  // from an eighth of the radius to twice of it

// About the radius at the level: of a few rows spread over all of them.
double probe_radius(const Score& sharp, const torch::Tensor& features, const torch::Tensor& truth,
                    const Level& level) {
  const int64_t rows = features.size(0), step = std::max<int64_t>(1, rows / kProbeRows);
  const auto some = [&](const torch::Tensor& all) { return all.slice(0, 0, rows, step); };
  std::vector<double> scores = sharp.score(some(features).contiguous(), some(truth).contiguous());
  std::erase_if(scores, [](double score) { return !std::isfinite(score); });
  if (scores.empty()) fail("no finite radius reaches the truth");
  std::sort(scores.begin(), scores.end());
  const size_t rank = std::min(conformal_rank(level, scores.size()), scores.size());
  for (size_t i = rank - 1; i < scores.size(); ++i) {
    if (scores[i] > 0) return scores[i];
  }
  return 1;  // all are predicted exactly
}

std::vector<double> rungs_around(double radius, bool linear) {
  if (linear) return {0, radius};
  std::vector<double> rungs = {0};
  for (int i = 0; i < kRungs; ++i) {
    rungs.push_back(radius / 8 * std::pow(std::numbers::sqrt2, i));
  }
  return rungs;
}

void append(std::vector<double>& all, const torch::Tensor& more) {
  const std::vector<double> values = plain_scores(more);
  all.insert(all.end(), values.begin(), values.end());
}

// Where the line through two points reaches 0; the second may be −∞.
double root_between(double left, double at_left, double right, double at_right) {
  return left + (right - left) * (at_left / (at_left - at_right));
}

}  // namespace

bool has_ladder(const ScoreOptions& score) {
  if (!score.rectifier.empty() || score.pixels > 0) return false;
  return score.name == "linearized" ||
         (score.name == "nested" && score.bound.method == BoundMethod::kIbp);
}

RegionLadder::RegionLadder(const Score& sharp, const ScoreOptions& score,
                           const torch::Tensor& features, const torch::Tensor& truth,
                           const Level& level)
    : rows_(static_cast<size_t>(features.size(0))),
      radii_(
          rungs_around(probe_radius(sharp, features, truth, level), score.name == "linearized")) {
  for (size_t rung = 1; rung < radii_.size(); ++rung) {
    check_interrupted();
    const Regions regions = sharp.region(features, radii_[rung]);
    const torch::Tensor y = truth_matrix(truth, regions.prediction);
    if (rung == 1) {
      outputs_ = static_cast<size_t>(y.size(1));
      append(excess_, (y - regions.prediction).abs());
      append(width_, torch::zeros({features.size(0)}, torch::kDouble));
    }
    append(excess_, torch::maximum(regions.lower - y, y - regions.upper));
    append(width_, (regions.upper - regions.lower).mean(1));
  }
  if (std::any_of(excess_.begin(), excess_.end(), [](double e) { return std::isnan(e); })) {
    fail("some of its scores are not numbers");
  }
}

double RegionLadder::excess(size_t rung, size_t row) const {
  const auto first = excess_.begin() + static_cast<std::ptrdiff_t>((rung * rows_ + row) * outputs_);
  return *std::max_element(first, first + static_cast<std::ptrdiff_t>(outputs_));
}

RegionLadder::Step RegionLadder::step_to(double radius) const {
  const auto above = std::upper_bound(radii_.begin() + 1, radii_.end() - 1, radius);
  const auto rung = static_cast<size_t>(above - radii_.begin());
  return {rung, (radius - radii_[rung - 1]) / (radii_[rung] - radii_[rung - 1])};
}

std::vector<double> RegionLadder::scores(double widening) const {
  std::vector<double> scores(rows_, kNever);
  const auto at = [&](size_t rung, size_t row) {
    return excess(rung, row) - widening * radii_[rung];
  };
  const size_t last = radii_.size() - 1;
  for (size_t row = 0; row < rows_; ++row) {
    size_t rung = 0;
    while (rung < last && at(rung, row) > 0) ++rung;
    if (rung == 0) {
      scores[row] = 0;
    } else if (at(rung, row) < at(rung - 1, row)) {
      scores[row] = root_between(radii_[rung - 1], at(rung - 1, row), radii_[rung], at(rung, row));
    }
  }
  return scores;
}

double RegionLadder::mean_length(double radius, double widening,
                                 const std::vector<size_t>& rows) const {
  if (!std::isfinite(radius)) return kNever;
  const auto [rung, share] = step_to(radius);
  double sum = 0;
  for (const size_t row : rows) {
    const double below = width_[(rung - 1) * rows_ + row];
    sum += share == 0 ? below : below + share * (width_[rung * rows_ + row] - below);
  }
  return sum / static_cast<double>(rows.size()) + 2 * widening * radius;
}

double RegionLadder::mean_distance(double radius, double widening,
                                   const std::vector<size_t>& rows) const {
  if (!std::isfinite(radius)) return 0;
  const auto [rung, share] = step_to(radius);
  double sum = 0;
  for (const size_t row : rows) {
    for (size_t k = 0; k < outputs_; ++k) {
      const double below = excess_[((rung - 1) * rows_ + row) * outputs_ + k];
      if (below == -kNever) continue;  // the region is infinite already
      const double above = excess_[(rung * rows_ + row) * outputs_ + k];
      const double outside = share == 0 ? below : below + share * (above - below);
      sum += std::max(0.0, outside - widening * radius);
    }
  }
  return sum / static_cast<double>(rows.size() * outputs_);
}

double RegionLadder::slope(const Level& level) const {
  const double radius = conformal_quantile(scores(0), level);
  if (!std::isfinite(radius) || radius == 0) return 0;
  std::vector<size_t> all(rows_);
  for (size_t row = 0; row < rows_; ++row) all[row] = row;
  return mean_length(radius, 0, all) / radius;
}

}  // namespace fcp
