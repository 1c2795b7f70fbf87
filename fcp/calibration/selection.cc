#include "fcp/calibration/selection.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <new>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/calibration/calibration.h"
#include "fcp/calibration/scored_network.h"
#include "fcp/network/cut.h"
#include "fcp/network/simplify.h"
#include "fcp/scores/head_outputs.h"
#include "fcp/scores/outputs.h"
#include "fcp/scores/region_measures.h"

namespace fcp {
namespace {

struct JudgedHalves {
  double length = 0;
  double loss = 0;
  double coverage = 0;
};

// The rows' own scores as a split calibration would keep them.
CalibrationScores rows_of(const Score& score, const std::vector<double>& scores, int64_t begin,
                          int64_t count) {
  CalibrationScores rows;
  rows.sides = score.sides();
  const auto first = scores.begin() + begin * rows.sides;
  rows.scores.assign(first, first + count * rows.sides);
  return rows;
}

// Radius from one half of the rows, length, loss and coverage on the other; the mean of both ways.
JudgedHalves judge(const Score& score, const torch::Tensor& features, const torch::Tensor& truth,
                   const SelectionOptions& options) {
  const Level& level = options.level;
  const double penalty = miss_penalty(options.objective, level);
  const std::vector<double> scores = score.score(features, truth);
  const int64_t rows = features.size(0), half = rows / 2;
  JudgedHalves result;
  for (const bool first : {true, false}) {
    const int64_t begin = first ? half : 0;
    const int64_t count = first ? rows - half : half;
    const auto calibration =
        make_calibration({}, rows_of(score, scores, first ? 0 : half, first ? half : rows - half));
    const TestInputs fresh{features.narrow(0, begin, count), {}, {}};
    const Regions regions = score.region(fresh.features, calibration->radii(fresh, level));
    const double length = region_lengths(regions).mean().item<double>();
    result.length += length / 2;
    result.loss += length / 2;
    if (penalty > 0) {
      const torch::Tensor y = truth_matrix(truth.narrow(0, begin, count), regions.prediction);
      result.loss += penalty * region_distances(regions, y).mean().item<double>() / 2;
    }
    const std::vector<double> own = rows_of(score, scores, begin, count).scores;
    const std::vector<double> p_values = calibration->p_values(fresh, own);
    const auto covered = std::count_if(p_values.begin(), p_values.end(),
                                       [&](double p) { return p > level.value(); });
    result.coverage += static_cast<double>(covered) / static_cast<double>(count) / 2;
  }
  return result;
}

// Why cuts were passed over: each reason once, with the cuts that it holds for.
class SkippedCuts {
 public:
  void add(const std::string& cut, const std::string& why) {
    const auto known = std::find_if(reasons_.begin(), reasons_.end(),
                                    [&](const Reason& reason) { return reason.why == why; });
    if (known == reasons_.end()) {
      reasons_.push_back({why, cut, 1});
    } else {
      ++known->cuts;
    }
  }

  std::string text() const {
    std::string all;
    for (const Reason& reason : reasons_) {
      all += concat("; ", reason.first, ": ", reason.why);
      if (reason.cuts > 1) all += concat(" (at ", reason.cuts, " cuts)");
    }
    return all;
  }

 private:
  struct Reason {
    std::string why;
    std::string first;
    size_t cuts = 0;
  };
  std::vector<Reason> reasons_;
};

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

double miss_penalty(Objective objective, const Level& level) {
  return objective == Objective::kIntervalScore ? 2 / level.value() : 0;
}

torch::Tensor spread_rows(const torch::Tensor& all, int64_t most) {
  const int64_t rows = all.size(0);
  if (rows <= most) return all;
  const torch::Tensor places = torch::arange(most, torch::kLong) * rows / most;
  return all.index_select(0, places.to(torch::kLong));
}

std::vector<double> feature_spread(const torch::Tensor& features) {
  const torch::Tensor spread =
      features.flatten(1).to(torch::kCPU, torch::kDouble).std(0, /*unbiased=*/false);
  const double mean = spread.mean().item<double>();
  if (!(mean > 0) || !std::isfinite(mean)) return {};
  return plain_scores(spread.clamp_min(mean / 1000));
}

void check_time(const Score& score, const torch::Tensor& features, const torch::Tensor& truth,
                double times, double limit) {
  const int64_t rows = features.size(0);
  for (int64_t probe = 1;; probe = std::min(8 * probe, rows)) {
    const Clock::time_point start = Clock::now();
    score.score(features.narrow(0, 0, probe), truth.narrow(0, 0, probe));
    const double seconds = seconds_since(start);
    const double expected =
        seconds * static_cast<double>(rows) / static_cast<double>(probe) * times;
    if (expected <= limit) return;
    if (probe == rows || seconds > limit / 100) {
      fail("would take about ", static_cast<int64_t>(expected), " s, more than ", limit);
    }
  }
}

double measure_slope(const Score& score, const torch::Tensor& features, const torch::Tensor& truth,
                     const Level& level) {
  const CalibrationScores own = rows_of(score, score.score(features, truth), 0, features.size(0));
  const TestInputs rows{features, {}, {}};
  const torch::Tensor radii = make_calibration({}, own)->radii(rows, level);
  const double radius = radii.mean().item<double>();
  if (!std::isfinite(radius) || radius == 0) return 0;
  const auto mean_width = [&](const torch::Tensor& at) {
    return region_lengths(score.region(features, at)).mean().item<double>();
  };
  return (mean_width(radii) - mean_width(torch::zeros_like(radii))) / radius;
}

Selection select_cut(const Graph& network, const ScoreOptions& score, const torch::Tensor& x,
                     const torch::Tensor& y, const SelectionOptions& options) {
  torch::NoGradGuard no_grad;
  Graph folded = graph_for_score(network, score);
  fold_constants(folded);
  const std::vector<std::string> cuts = options.cuts.empty() ? valid_cuts(folded) : options.cuts;
  const double infinity = std::numeric_limits<double>::infinity();
  const bool takes_scale = score.name == "nested" || score.name == "feature_cqr";
  Selection selection;
  double best = infinity;
  SkippedCuts skipped;
  for (const std::string& tensor : cuts) {
    check_interrupted();
    Candidate candidate{tensor, score, infinity, infinity, 0, ""};
    candidate.score.floor = 0;
    const auto skip = [&](const std::string& why) {
      candidate.skipped = why;
      skipped.add(tensor, why);
      selection.candidates.push_back(candidate);
      if (options.observe) options.observe(candidate);
    };
    try {
      const ScoredNetwork predictor(network, candidate.score, tensor, options.device);
      const torch::Tensor features = predictor.features(x);
      if (options.scaled && takes_scale) candidate.score.scale = feature_spread(features);
      const std::unique_ptr<Score> sharp = make_score(candidate.score, predictor.shared_head());
      check_time(*sharp, features, y, static_cast<double>(options.floors.size() + 1),
                 options.seconds);
      const double slope = measure_slope(*sharp, features, y, options.level);
      for (const double floor : options.floors) {
        candidate.score.floor = floor;
        candidate.score.slope = floor > 0 ? slope : 0;
        const std::unique_ptr<Score> wide = make_score(candidate.score, predictor.shared_head());
        const JudgedHalves judged = judge(*wide, features, y, options);
        candidate.length = judged.length;
        candidate.loss = judged.loss;
        candidate.coverage = judged.coverage;
        selection.candidates.push_back(candidate);
        if (options.observe) options.observe(candidate);
        if (candidate.loss < best) {
          best = candidate.loss;
          selection.chosen = selection.candidates.size() - 1;
        }
      }
    } catch (const Error& error) {
      skip(error.what());
    } catch (const std::bad_alloc&) {
      skip("out of memory");
    }
  }
  if (!std::isfinite(best)) {
    fail("no cut gives finite intervals on the ", x.size(0), " selection rows", skipped.text());
  }
  return selection;
}

}  // namespace fcp
