#include "fcp/calibrate/quick_cut.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <numbers>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/special_numbers.h"
#include "fcp/conformal/quantile.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/graph/simplify.h"
#include "fcp/nn/runtime/libtorch_error.h"
#include "fcp/predictor/scored_network.h"

namespace fcp {
namespace {

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

constexpr int64_t kCoarseRows = 300;
constexpr int64_t kFineRows = 1000;
constexpr size_t kFineCuts = 3;
constexpr double kRegionsOfALadder = 10;

// A cut with the floor that is best there.
struct JudgedCut {
  std::string cut;
  ScoreOptions score;
  double loss = kInfinity;
};

// Every other row: rows that lie side by side in a file may be alike.
Halving alternating(size_t rows) {
  Halving halves;
  for (size_t row = 0; row < rows; ++row) halves[row % 2].push_back(row);
  return halves;
}

std::vector<double> values_at(const std::vector<double>& all, const std::vector<size_t>& rows) {
  std::vector<double> some;
  some.reserve(rows.size());
  for (const size_t row : rows) some.push_back(all[row]);
  return some;
}

double share_within(const std::vector<double>& scores, double radius) {
  const auto in =
      std::count_if(scores.begin(), scores.end(), [&](double score) { return score <= radius; });
  return static_cast<double>(in) / static_cast<double>(scores.size());
}

class CutSearch {
 public:
  CutSearch(const Graph& network, const ScoreOptions& score, const torch::Tensor& x,
            const torch::Tensor& y, const SelectionOptions& options)
      : network_(network), score_(score), x_(x), y_(y), options_(options) {}

  QuickCut find() {
    Graph folded = graph_for_score(network_, score_);
    fold_constants(folded);
    std::vector<std::string> cuts = options_.cuts.empty() ? feature_cuts(folded) : options_.cuts;
    const int64_t coarse = score_.traits().linear ? kFineRows : kCoarseRows;
    // The rows that the shortest cuts are looked at besides are those of about as many cuts.
    cuts = affordable_cuts(
        CutWork(folded, score_, x_), cuts, std::min(coarse, x_.size(0)), kRegionsOfALadder,
        options_, [&](const std::string& cut, const std::string& why) { skipped_.add(cut, why); });
    std::vector<JudgedCut> judged = judge_all(cuts, coarse);
    if (coarse < std::min(x_.size(0), kFineRows) && judged.size() > 1) {
      judged.resize(std::min(judged.size(), kFineCuts));
      cuts.clear();
      for (const JudgedCut& one : judged) cuts.push_back(one.cut);
      judged = judge_all(cuts, kFineRows);
    }
    return measured(judged.front());
  }

 private:
  // Those with a finite loss, the least first.
  std::vector<JudgedCut> judge_all(const std::vector<std::string>& cuts, int64_t rows) {
    const torch::Tensor x = spread_rows(x_, rows), y = spread_rows(y_, rows);
    std::vector<JudgedCut> judged;
    for (const std::string& tensor : cuts) {
      check_interrupted();
      try {
        judged.push_back(judge(tensor, x, y));
        if (std::isfinite(judged.back().loss)) continue;
        judged.pop_back();
        skipped_.add(tensor, "infinite");
      } catch (const std::exception&) {
        skipped_.add(tensor, failure_reason());
      }
    }
    if (judged.empty()) {
      fail("no cut gives finite intervals on the ", x.size(0), " selection rows", skipped_.text());
    }
    std::stable_sort(judged.begin(), judged.end(),
                     [](const auto& a, const auto& b) { return a.loss < b.loss; });
    return judged;
  }

  JudgedCut judge(const std::string& tensor, const torch::Tensor& x, const torch::Tensor& y) const {
    JudgedCut judged{tensor, score_};
    const RegionLadder ladder = make_ladder(judged, x, y);
    const double slope = ladder.slope(options_.level);
    const std::vector<Halving> halves = {alternating(ladder.rows())};
    for (const double floor : options_.floors) {
      const double loss = mean_of(measure_halves(ladder, floor * slope / 2, options_.level, halves)
                                      .losses(options_.objective, options_.level));
      if (loss >= judged.loss) continue;
      judged.loss = loss;
      widen(judged.score, floor, slope);
    }
    return judged;
  }

  // Sets the scale of the score on the way.
  RegionLadder make_ladder(JudgedCut& judged, const torch::Tensor& x,
                           const torch::Tensor& y) const {
    widen(judged.score, 0, 0);
    const ScoredNetwork predictor(network_, judged.score, judged.cut, options_.device);
    const torch::Tensor features = checked_features(predictor, x);
    auto* const scale = judged.score.find(field::scale);
    if (options_.scaled && scale != nullptr) *scale = feature_spread(features);
    const std::unique_ptr<Score> sharp = make_score(judged.score, predictor.shared_head());
    return RegionLadder(*sharp, judged.score, features, y, options_.level);
  }

  // On all rows, with the floor that was found.
  QuickCut measured(JudgedCut best) const {
    const double floor = best.score.value(field::floor);
    RegionLadder ladder = make_ladder(best, x_, y_);
    widen(best.score, floor, floor > 0 ? ladder.slope(options_.level) : 0);
    return {best.cut, best.score, std::move(ladder)};
  }

  const Graph& network_;
  const ScoreOptions& score_;
  const torch::Tensor& x_;
  const torch::Tensor& y_;
  const SelectionOptions& options_;
  SkippedCuts skipped_;
};

}  // namespace

bool has_ladder(const ScoreOptions& score) {
  if (!score.rectifier.empty() || score.pixels > 0) return false;
  if (score.side != BoundSide::kBoth) return false;
  const auto* nested = score.as<NestedOptions>();
  return score.traits().linear || (nested != nullptr && nested->bound.method == BoundMethod::kIbp);
}

RegionLadder::RegionLadder(const Score& sharp, const ScoreOptions& score,
                           const torch::Tensor& features, const torch::Tensor& truth,
                           const Level& level)
    : rows_(static_cast<size_t>(features.size(0))),
      radii_(rungs_around(probe_radius(sharp, features, truth, level), score.traits().linear)) {
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
  std::vector<double> scores(rows_, kInfinity);
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
  if (!std::isfinite(radius)) return kInfinity;
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
      if (below == -kInfinity) continue;  // the region is infinite already
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

HalfMeasures measure_halves(const RegionLadder& ladder, double widening, const Level& level,
                            const std::vector<Halving>& halvings) {
  const std::vector<double> scores = ladder.scores(widening);
  const auto halves = static_cast<double>(2 * halvings.size());
  HalfMeasures measures;
  for (const Halving& halving : halvings) {
    for (const size_t side : {0, 1}) {
      const std::vector<size_t>& judged = halving[1 - side];
      const double radius = conformal_quantile(values_at(scores, halving[side]), level);
      measures.lengths.push_back(ladder.mean_length(radius, widening, judged));
      measures.distances.push_back(ladder.mean_distance(radius, widening, judged));
      measures.radius += radius / halves;
      measures.coverage += share_within(values_at(scores, judged), radius) / halves;
    }
  }
  return measures;
}

QuickCut find_cut(const Graph& network, const ScoreOptions& score, const torch::Tensor& x,
                  const torch::Tensor& y, const SelectionOptions& options) {
  const torch::NoGradGuard no_gradients;
  return CutSearch(network, score, x, y, options).find();
}

}  // namespace fcp
