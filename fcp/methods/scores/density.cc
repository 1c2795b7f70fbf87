#include "fcp/methods/scores/density.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/base/special_numbers.h"
#include "fcp/methods/method.h"
#include "fcp/methods/scores/monotone_cuda.h"
#include "fcp/methods/scores/monotone_rows.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/methods/scores/quantiles.h"
#include "fcp/methods/scores/score.h"
#include "fcp/nn/kernels/cuda/cuda_kernels.h"

namespace fcp {
double tail_length(int piece) { return std::ldexp(1.0, 2 * piece); }
double tail_gap(int piece) { return std::ldexp(1.0, 3 * piece + 1); }
double tail_count(int piece) { return std::max(std::ldexp(1.0, -piece - 1), 1.0 / 16); }

double tail_scale(double outermost, std::span<const double> quantiles) {
  const double mean =
      (quantiles.back() - quantiles.front()) / static_cast<double>(quantiles.size() - 1);
  return std::max(outermost, mean / 64);
}

// What lies on one side of the first gap: gaps up to the outermost quantile, then the tail.
struct GrownInterval::Side {
  double end;                     // where the interval ends now
  double sign;                    // −1: grows downwards
  std::vector<double> quantiles;  // still to come
  double scale;                   // s
  size_t taken = 0;

  size_t pieces() const { return quantiles.size() + kTailPieces; }
  bool done() const { return taken == pieces(); }
  int tail_piece() const { return static_cast<int>(taken - quantiles.size()); }

  // The length of a gap as dense as the next piece.
  double gap() const {
    return taken < quantiles.size() ? std::abs(quantiles[taken] - end)
                                    : scale * tail_gap(tail_piece());
  }

  // Takes the next piece; what it counts.
  double take() {
    const bool tail = taken >= quantiles.size();
    const double count = tail ? tail_count(tail_piece()) : 1;
    end = tail ? end + sign * scale * tail_length(tail_piece()) : quantiles[taken];
    ++taken;
    return count;
  }
};

namespace {

// The shortest gap; of equal ones the nearest to the middle, of those the lower.
size_t densest_gap(std::span<const double> quantiles) {
  const size_t gaps = quantiles.size() - 1;
  const auto distance = [&](size_t i) { return i < gaps / 2 ? gaps / 2 - i : i - gaps / 2; };
  const auto length = [&](size_t i) { return quantiles[i + 1] - quantiles[i]; };
  size_t best = 0;
  for (size_t i = 1; i < gaps; ++i) {
    if (length(i) < length(best) || (length(i) == length(best) && distance(i) < distance(best))) {
      best = i;
    }
  }
  return best;
}

}  // namespace

GrownInterval::GrownInterval(double center, std::span<const double> quantiles)
    : center_(center), valid_(!std::isnan(center) && !std::isnan(quantiles[0])) {
  if (!valid_) return;
  const size_t first = densest_gap(quantiles), last = quantiles.size() - 1;
  const auto begin = quantiles.begin();
  Side left{quantiles[first], -1, {}, tail_scale(quantiles[1] - quantiles[0], quantiles)};
  left.quantiles.assign(quantiles.rbegin() + static_cast<std::ptrdiff_t>(last - first + 1),
                        quantiles.rend());
  Side right{
      quantiles[first + 1], 1, {}, tail_scale(quantiles[last] - quantiles[last - 1], quantiles)};
  right.quantiles.assign(begin + static_cast<std::ptrdiff_t>(first + 2), quantiles.end());
  const double middle = left.end + (right.end - left.end) / 2;
  count_ = {0, 1};
  lower_ = {middle, left.end};
  upper_ = {middle, right.end};
  take(left, right);
}

void GrownInterval::take(const Side& left, const Side& right) {
  Side sides[] = {left, right};
  const size_t steps = left.pieces() + right.pieces();
  for (std::vector<double>* list : {&count_, &lower_, &upper_}) list->reserve(steps + 2);
  for (size_t i = 0; i < steps; ++i) {
    const bool lower = sides[1].done() || (!sides[0].done() && sides[0].gap() <= sides[1].gap());
    count_.push_back(count_.back() + sides[lower ? 0 : 1].take());
    lower_.push_back(sides[0].end);
    upper_.push_back(sides[1].end);
  }
}

Interval GrownInterval::at(double radius) const {
  if (radius < 0) return {kInfinity, -kInfinity};
  if (radius >= count_.back()) return {};
  const auto next =
      static_cast<size_t>(std::upper_bound(count_.begin(), count_.end(), radius) - count_.begin());
  const size_t step = next - 1;
  const double share = (radius - count_[step]) / (count_[next] - count_[step]);
  const double lower = lower_[step] + share * (lower_[next] - lower_[step]);
  const double upper = upper_[step] + share * (upper_[next] - upper_[step]);
  return {center_ + std::max(lower, lower_[next]), center_ + std::min(upper, upper_[next])};
}

double GrownInterval::guess(double y) const {
  const double residual = y - center_;
  size_t low = 0, high = count_.size();  // the first step whose interval holds the residual
  while (low < high) {
    const size_t middle = (low + high) / 2;
    const bool in = lower_[middle] <= residual && residual <= upper_[middle];
    if (in) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  if (low == 0 || low == count_.size()) return low == 0 ? 0 : count_.back();
  const bool below = residual < lower_[low - 1];
  const std::vector<double>& end = below ? lower_ : upper_;
  const double share = (residual - end[low - 1]) / (end[low] - end[low - 1]);
  return count_[low - 1] + share * (count_[low] - count_[low - 1]);
}

namespace {

struct GrownRows {
  QuantileRows rows;
  torch::Tensor prediction = rows.prediction;

  GrownInterval row(int64_t n, int64_t k) const {
    return {rows.center(n, k), rows.quantiles(n, k)};
  }
};

class Density : public Score {
 public:
  Density(QuantileReader reader, BoundSide side) : reader_(std::move(reader)), side_(side) {}

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    if constexpr (kCudaKernels) {
      if (on_cuda()) return scores_cuda(grown(features), truth);
    }
    return monotone_scores(GrownRows{reader_.read(features)}, truth, side_);
  }

  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    if constexpr (kCudaKernels) {
      if (on_cuda()) return regions_cuda(grown(features), radius);
    }
    return monotone_regions(GrownRows{reader_.read(features)}, radius, side_);
  }

 private:
  bool on_cuda() const { return side_ == BoundSide::kBoth && reader_.on_cuda(); }

  GrownCuda grown(const torch::Tensor& features) const {
    const QuantileRows rows = reader_.read_cuda(features);
    return {rows.prediction, rows.grid};
  }

  QuantileReader reader_;
  BoundSide side_;
};

}  // namespace

namespace {

// How far the tail of scale s reaches where gaps up to `gap` are in: gap = s (1 + x/s)².
double tail_reach(double scale, double gap) {
  return scale == 0 ? gap : scale * std::max(0.0, std::sqrt(gap / scale) - 1);
}

class DensityLevelSet : public Score {
 public:
  DensityLevelSet(QuantileReader reader, std::vector<double> units)
      : reader_(std::move(reader)), units_(std::move(units)) {
    for (const double unit : units_) {
      if (!(unit > 0)) fail("density: the scale of an output is ", unit, ", expected > 0");
    }
  }

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    const QuantileRows rows = read(features);
    const torch::Tensor y = truth_matrix(truth.to(torch::kCPU), rows.prediction).contiguous();
    std::vector<double> scores(static_cast<size_t>(y.size(0)),
                               -std::numeric_limits<double>::infinity());
    for (int64_t i = 0; i < y.numel(); ++i) {
      const int64_t n = i / y.size(1);
      const double own = score_one(rows, n, i % y.size(1), y.data_ptr<double>()[i]);
      double& largest = scores[static_cast<size_t>(n)];
      largest = std::isnan(own) || std::isnan(largest) ? std::nan("") : std::max(largest, own);
    }
    return scores;
  }

  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    const QuantileRows rows = read(features);
    const torch::Tensor column = radius_column(radius, rows.prediction).contiguous();
    std::vector<std::vector<Interval>> sets;
    for (int64_t i = 0; i < rows.prediction.numel(); ++i) {
      const int64_t n = i / rows.prediction.size(1);
      sets.push_back(set_at(rows, n, i % rows.prediction.size(1), column.data_ptr<double>()[n]));
    }
    return regions_of_unions(rows.prediction, sets);
  }

 private:
  QuantileRows read(const torch::Tensor& features) const {
    QuantileRows rows = reader_.read(features);
    if (!units_.empty() && static_cast<int64_t>(units_.size()) != rows.prediction.size(1)) {
      fail("density: ", units_.size(), " scales for ", rows.prediction.size(1), " outputs");
    }
    return rows;
  }

  std::vector<Interval> set_at(const QuantileRows& rows, int64_t n, int64_t k,
                               double radius) const {
    if (radius == std::numeric_limits<double>::infinity()) return {Interval{}};
    const double unit = units_.empty() ? 1 : units_[static_cast<size_t>(k)];
    return density_level_set(rows.center(n, k), rows.quantiles(n, k), radius * unit);
  }

  double score_one(const QuantileRows& rows, int64_t n, int64_t k, double y) const {
    const double center = rows.center(n, k);
    const std::span<const double> q = rows.quantiles(n, k);
    if (std::isnan(y) || std::isnan(center) || std::isnan(q[0])) return std::nan("");
    const auto holds = [&](double radius) {
      const std::vector<Interval> set = set_at(rows, n, k, radius);
      return std::any_of(set.begin(), set.end(),
                         [y](const Interval& part) { return part.contains(y); });
    };
    return least_radius(
        holds, guess(center, q, y) / (units_.empty() ? 1 : units_[static_cast<size_t>(k)]));
  }

  static double guess(double center, std::span<const double> q, double y) {
    const double residual = y - center;
    const size_t last = q.size() - 1;
    if (residual < q[0] || residual > q[last]) {
      const bool below = residual < q[0];
      const double s = tail_scale(below ? q[1] - q[0] : q[last] - q[last - 1], q);
      const double beyond = below ? q[0] - residual : residual - q[last];
      return s == 0 ? beyond : s * (1 + beyond / s) * (1 + beyond / s);
    }
    const auto above = std::lower_bound(q.begin() + 1, q.end(), residual);
    return *above - *(above - 1);
  }

  QuantileReader reader_;
  std::vector<double> units_;
};

}  // namespace

std::vector<Interval> density_level_set(double center, std::span<const double> quantiles,
                                        double longest_gap) {
  if (std::isnan(center) || std::isnan(quantiles[0])) return {{std::nan(""), std::nan("")}};
  std::vector<Interval> set;
  const auto add = [&](double from, double to) {
    const Interval part{center + from, center + to};
    if (!set.empty() && set.back().upper >= part.lower) {
      set.back().upper = part.upper;
    } else {
      set.push_back(part);
    }
  };
  const size_t last = quantiles.size() - 1;
  const double low = tail_scale(quantiles[1] - quantiles[0], quantiles);
  const double high = tail_scale(quantiles[last] - quantiles[last - 1], quantiles);
  if (low <= longest_gap) add(quantiles[0] - tail_reach(low, longest_gap), quantiles[0]);
  for (size_t i = 0; i < last; ++i) {
    if (quantiles[i + 1] - quantiles[i] <= longest_gap) add(quantiles[i], quantiles[i + 1]);
  }
  if (high <= longest_gap) add(quantiles[last], quantiles[last] + tail_reach(high, longest_gap));
  return set;
}

std::vector<std::string> DensityOptions::learned_outputs() const {
  return {quantiles.empty() ? kQuantilesOutput : quantiles};
}

std::vector<Option> DensityOptions::rows() {
  return {score_option(field::level_set,
                       {.name = "union",
                        .help = "The level set of the learned density, which may be several "
                                "intervals",
                        .storage = OptionStorage::kSet,
                        .key = "level_set",
                        .after = "tail"})};
}

std::unique_ptr<Score> make_score(const DensityOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head) {
  QuantileReader reader(std::move(head), shared.output, options.learned_outputs()[0]);
  if (options.level_set) {
    if (shared.side != BoundSide::kBoth) {
      fail("density: a union of intervals has no one end; take one-sided bounds without union");
    }
    return std::make_unique<DensityLevelSet>(std::move(reader), options.units);
  }
  return std::make_unique<Density>(std::move(reader), shared.side);
}

}  // namespace fcp
