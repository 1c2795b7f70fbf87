#include "fcp/calibration/selection.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/calibration/predictor.h"
#include "fcp/conformal/quantile.h"
#include "fcp/network/cut.h"
#include "fcp/network/simplify.h"
#include "fcp/scores/outputs.h"
#include "fcp/search/surrogate_search.h"

namespace fcp {
namespace {

struct Judged {
  double length = 0;
  double coverage = 0;
};

// Radius from one half of the rows, length and coverage on the other; the mean of both ways.
Judged judge(const Score& score, const torch::Tensor& features, const torch::Tensor& truth,
             const Level& level) {
  const std::vector<double> scores = score.score(features, truth);
  const auto half = static_cast<int64_t>(scores.size() / 2);
  const auto rows = static_cast<int64_t>(scores.size());
  const std::span<const double> all(scores);
  Judged result;
  for (const bool first : {true, false}) {
    const int64_t begin = first ? half : 0;
    const int64_t count = first ? rows - half : half;
    const std::span<const double> others =
        first ? all.first(static_cast<size_t>(half)) : all.subspan(static_cast<size_t>(half));
    const double radius = conformal_quantile(others, level);
    const Regions regions = score.region(features.narrow(0, begin, count), radius);
    result.length += (regions.upper - regions.lower).mean().item<double>() / 2;
    const auto covered = std::count_if(all.begin() + begin, all.begin() + begin + count,
                                       [&](double s) { return s <= radius; });
    result.coverage += static_cast<double>(covered) / static_cast<double>(count) / 2;
  }
  return result;
}

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

std::string default_cut(const Graph& network) {
  Graph folded = network;
  fold_constants(folded);
  const size_t wanted = std::min<size_t>(2, count_layers(folded));
  const std::vector<std::string> cuts = valid_cuts(folded);
  for (auto tensor = cuts.rbegin(); tensor != cuts.rend(); ++tensor) {
    if (count_layers(cut(folded, *tensor).head) >= wanted) return *tensor;
  }
  fail("the network has no tensor at which it can be cut");
}

double measure_slope(const Score& score, const torch::Tensor& features, const torch::Tensor& truth,
                     const Level& level) {
  const double radius = conformal_quantile(score.score(features, truth), level);
  if (!std::isfinite(radius) || radius <= 0) return 0;
  const Regions regions = score.region(features, radius);
  return (regions.upper - regions.lower).mean().item<double>() / radius;
}

Selection select_cut(const Graph& network, const ScoreOptions& score, const torch::Tensor& x,
                     const torch::Tensor& y, const SelectionOptions& options) {
  torch::NoGradGuard no_grad;
  Graph folded = network;
  fold_constants(folded);
  const std::vector<std::string> cuts = options.cuts.empty() ? valid_cuts(folded) : options.cuts;
  const double infinity = std::numeric_limits<double>::infinity();
  Selection selection;
  double best = infinity;
  std::string skipped;
  for (const std::string& tensor : cuts) {
    check_interrupted();
    Candidate candidate{tensor, score, infinity, 0, ""};
    candidate.score.floor = 0;
    try {
      const Clock::time_point start = Clock::now();
      const Predictor predictor(network, candidate.score, tensor, options.device);
      const torch::Tensor features = predictor.features(x);
      const int64_t probe = std::min<int64_t>(8, x.size(0));
      predictor.score().score(features.narrow(0, 0, probe), y.narrow(0, 0, probe));
      const double expected =
          seconds_since(start) * static_cast<double>(x.size(0)) / static_cast<double>(probe);
      if (expected > options.seconds && seconds_since(start) > 1) {
        fail("would take about ", static_cast<int64_t>(expected), " s");
      }
      const double slope = measure_slope(predictor.score(), features, y, options.level);
      for (const double floor : options.floors) {
        candidate.score.floor = floor;
        candidate.score.slope = floor > 0 ? slope : 0;
        const Predictor widened(network, candidate.score, tensor, options.device);
        const Judged judged = judge(widened.score(), features, y, options.level);
        candidate.length = judged.length;
        candidate.coverage = judged.coverage;
        selection.candidates.push_back(candidate);
        if (options.observe) options.observe(candidate);
        if (candidate.length < best) {
          best = candidate.length;
          selection.chosen = selection.candidates.size() - 1;
        }
      }
    } catch (const Error& error) {
      candidate.skipped = error.what();
      skipped += concat("; ", tensor, ": ", error.what());
      selection.candidates.push_back(candidate);
      if (options.observe) options.observe(candidate);
    }
  }
  if (!std::isfinite(best)) {
    fail("no cut gives finite intervals on the ", x.size(0), " selection rows", skipped);
  }
  return selection;
}

StepsChoice choose_steps(std::shared_ptr<const Network> head, const ScoreOptions& score,
                         const StepsRows& rows, const Level& level, int most) {
  if (most < 1) fail("surrogate: at most ", most, " steps were allowed, expected 1 or more");
  torch::NoGradGuard no_grad;
  ScoreOptions one_step = score;
  one_step.steps = 1;  // region() does not depend on it
  const std::unique_ptr<Score> surrogate = make_score(one_step, head);
  const SurrogateSearch search(
      head, output_index(*head, score.output),
      {.rate = score.step_rate, .adam = score.adam, .weights = score.loss_weights});
  const torch::Tensor truth = rows.validation_truth.flatten(1).to(torch::kDouble);
  const auto validation_rows = static_cast<double>(truth.size(0));
  StepsChoice choice;
  search.walk(rows.calibration_features, rows.calibration_truth, most,
              [&](int step, const torch::Tensor& features) {
                check_interrupted();
                const std::vector<double> scores =
                    plain_scores(row_norms(features - rows.calibration_features, score.norm));
                double radius = conformal_quantile(scores, level);
                if (score.paper)
                  radius = std::min(radius, *std::max_element(scores.begin(), scores.end()));
                const Regions regions = surrogate->region(rows.validation_features, radius);
                const torch::Tensor inside =
                    (regions.lower <= truth).logical_and(truth <= regions.upper).all(1);
                const double covered = inside.sum().item<double>();
                choice.coverage.push_back(covered / validation_rows);
                // Strictly more than 1 − α: strictly fewer misses than α of the rows.
                if (level.at_most_share(validation_rows - covered + 1e-9, validation_rows)) {
                  choice.steps = step;
                  return false;
                }
                return true;
              });
  if (choice.steps == 0) {
    const double best = *std::max_element(choice.coverage.begin(), choice.coverage.end());
    fail("surrogate: after none of ", most, " steps do the bands cover more than ",
         100 * (1 - level.value()), " % of the validation rows (best ", 100 * best,
         " %); try another --rate, a looser --bound, or --score nested, which needs no steps");
  }
  return choice;
}

}  // namespace fcp
