#include "fcp/calibration/score_contest.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/random.h"
#include "fcp/calibration/calibration.h"
#include "fcp/conformal/quantile.h"
#include "fcp/network/libtorch_error.h"
#include "fcp/scores/outputs.h"
#include "fcp/scores/region_measures.h"

namespace fcp {
namespace {

constexpr int kHalvings = 4;
constexpr double kPriceOfSimplicity = 0.02;  // of the least loss, at most

torch::Tensor places_of(const std::vector<size_t>& rows) {
  return torch::tensor(std::vector<int64_t>(rows.begin(), rows.end()), torch::kLong);
}

CalibrationScores rows_at(const Score& score, const torch::Tensor& scores,
                          const torch::Tensor& which) {
  const torch::Tensor some = scores.index_select(0, which).contiguous();  // [n, S]
  CalibrationScores rows;
  rows.sides = score.sides();
  rows.scores.assign(some.data_ptr<double>(), some.data_ptr<double>() + some.numel());
  return rows;
}

void add_half(const Regions& regions, const torch::Tensor& truth, HalfMeasures& measures) {
  if (regions.members.defined()) {
    measures.lengths.push_back(regions.members.sum(1).to(torch::kDouble).mean().item<double>());
    measures.distances.push_back(0);
    return;
  }
  const torch::Tensor y = truth_matrix(truth, regions.prediction);
  measures.lengths.push_back(region_lengths(regions).mean().item<double>());
  measures.distances.push_back(region_distances(regions, y).mean().item<double>());
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// The deviation of a − b, over √2.
double noise_of(const std::vector<double>& a, const std::vector<double>& b) {
  const double mean = mean_of(a) - mean_of(b);
  double squares = 0;
  for (size_t i = 0; i < a.size(); ++i) squares += (a[i] - b[i] - mean) * (a[i] - b[i] - mean);
  return std::sqrt(squares / static_cast<double>(a.size() - 1) / 2);
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

}  // namespace

HalfMeasures measure_halves(const Score& score, const torch::Tensor& features,
                            const torch::Tensor& truth, const Level& level,
                            const std::vector<Halving>& halvings) {
  const std::vector<double> plain = score.score(features, truth);
  const torch::Tensor scores =
      torch::tensor(plain, torch::kDouble).reshape({features.size(0), score.sides()});
  if (scores.isnan().any().item<bool>()) fail("some of its scores are not numbers");
  HalfMeasures measures;
  for (const Halving& halving : halvings) {
    for (const size_t side : {0, 1}) {
      check_interrupted();
      const torch::Tensor judged = places_of(halving[1 - side]);
      const auto calibration =
          make_calibration({}, rows_at(score, scores, places_of(halving[side])));
      const TestInputs fresh{features.index_select(0, judged.to(features.device())), {}, {}};
      const torch::Tensor radii = calibration->radii(fresh, level);
      add_half(score.region(fresh.features, radii),
               truth.index_select(0, judged.to(truth.device())), measures);
      measures.radius += radii.mean().item<double>() / (2 * kHalvings);
      const torch::Tensor in = (scores.index_select(0, judged) <= radii.cpu()).all(1);
      measures.coverage += in.to(torch::kDouble).mean().item<double>() / (2 * kHalvings);
    }
  }
  return measures;
}

HalfMeasures measure_halves(const RegionLadder& ladder, double widening, const Level& level,
                            const std::vector<Halving>& halvings) {
  const std::vector<double> scores = ladder.scores(widening);
  HalfMeasures measures;
  for (const Halving& halving : halvings) {
    for (const size_t side : {0, 1}) {
      const std::vector<size_t>& judged = halving[1 - side];
      const double radius = conformal_quantile(values_at(scores, halving[side]), level);
      measures.lengths.push_back(ladder.mean_length(radius, widening, judged));
      measures.distances.push_back(ladder.mean_distance(radius, widening, judged));
      measures.radius += radius / (2 * kHalvings);
      measures.coverage += share_within(values_at(scores, judged), radius) / (2 * kHalvings);
    }
  }
  return measures;
}

ScoreContest::ScoreContest(int64_t rows, const ScoreSelectionOptions& options)
    : rows_(rows), options_(options) {
  Random random(options.seed);
  for (int i = 0; i < kHalvings; ++i) {
    const std::vector<size_t> order = random.permutation(static_cast<size_t>(rows));
    const auto middle = order.begin() + rows / 2;
    halvings_.push_back({std::vector(order.begin(), middle), std::vector(middle, order.end())});
  }
}

void ScoreContest::enter(const ScoreOptions& score,
                         const std::function<HalfMeasures(ScoreCandidate&)>& measure) {
  ScoreCandidate candidate{.name = score.name, .cut = "", .score = score};
  candidate.length = candidate.interval_score = std::numeric_limits<double>::infinity();
  HalfMeasures measures;
  std::vector<double> losses;
  try {
    measures = measure(candidate);
    const double penalty = miss_penalty(options_.objective, options_.level);
    for (size_t i = 0; i < measures.lengths.size(); ++i) {
      losses.push_back(measures.lengths[i] + (penalty > 0 ? penalty * measures.distances[i] : 0));
    }
    candidate.length = mean_of(measures.lengths);
    candidate.interval_score =
        candidate.length +
        miss_penalty(Objective::kIntervalScore, options_.level) * mean_of(measures.distances);
    candidate.coverage = measures.coverage;
    candidate.radius = measures.radius;
  } catch (const std::exception&) {
    candidate.skipped = failure_reason();
  }
  selection_.candidates.push_back(candidate);
  losses_.push_back(std::move(losses));
  if (options_.observe) options_.observe(selection_.candidates.back());
}

// Losses as they are compared: those that were tuned carry a handicap.
std::vector<double> ScoreContest::compared_losses() const {
  const std::vector<ScoreCandidate>& all = selection_.candidates;
  std::vector<double> losses;
  size_t plain = all.size();  // the best that was not tuned
  for (size_t i = 0; i < all.size(); ++i) {
    losses.push_back(losses_[i].empty() ? std::numeric_limits<double>::infinity()
                                        : mean_of(losses_[i]));
    const bool better = plain == all.size() || losses[i] < losses[plain];
    if (!all[i].tuned && std::isfinite(losses[i]) && better) plain = i;
  }
  for (size_t i = 0; plain < all.size() && i < all.size(); ++i) {
    const bool handicapped = all[i].tuned && std::isfinite(losses[i]);
    if (handicapped) losses[i] += noise_of(losses_[i], losses_[plain]);
  }
  return losses;
}

ScoreSelection ScoreContest::choose() {
  std::vector<ScoreCandidate>& all = selection_.candidates;
  const std::vector<double> compared = compared_losses();
  const auto least = std::min_element(compared.begin(), compared.end());
  if (all.empty() || !std::isfinite(*least)) fail_selection();
  const auto best = static_cast<size_t>(least - compared.begin());
  std::vector<size_t> alike;  // the best, and those that are as good for all that is known
  for (size_t i = 0; i < all.size(); ++i) {
    if (!std::isfinite(compared[i])) continue;
    all[i].standard_error = noise_of(losses_[i], losses_[best]);
    const double allowed = std::min(all[i].standard_error, kPriceOfSimplicity * *least);
    if (compared[i] <= *least + allowed) alike.push_back(i);
  }
  const auto exportable = [&](size_t i) {
    return !options_.exportable || options_.exportable(all[i]);
  };
  selection_.chosen = alike.front();
  auto preferred = std::find_if(alike.begin(), alike.end(), exportable);
  if (preferred == alike.end()) {  // 2 % are less than an export is worth, noise or not
    alike.clear();
    for (size_t i = 0; i < all.size(); ++i) {
      if (compared[i] <= *least * (1 + kPriceOfSimplicity)) alike.push_back(i);
    }
    preferred = std::find_if(alike.begin(), alike.end(), exportable);
  }
  if (preferred != alike.end()) selection_.chosen = *preferred;
  all[selection_.chosen].chosen = true;
  return std::move(selection_);
}

void ScoreContest::fail_selection() const {
  std::string reasons;
  for (const ScoreCandidate& candidate : selection_.candidates) {
    reasons += concat("; ", candidate.name, ": ",
                      candidate.skipped.empty() ? "infinite" : candidate.skipped);
  }
  fail("no score gives finite regions on the ", rows_, " selection rows", reasons);
}

}  // namespace fcp
