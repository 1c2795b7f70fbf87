#include "fcp/calibrate/surrogate_steps.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/calibrate/choose.h"
#include "fcp/conformal/quantile.h"
#include "fcp/methods/method.h"
#include "fcp/methods/scores/cqr.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/methods/scores/surrogate.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/scored_network.h"
#include "fcp/search/surrogate_search.h"

namespace fcp {
namespace {

// The signed distances of Algorithm 4 after 1, 2, … steps, for both sides at once: one trajectory
// a side serves all numbers of steps.
std::vector<CalibrationScores> cqr_rows_by_step(const std::shared_ptr<const Network>& head,
                                                const FeatureCqrOptions& score,
                                                const StepsFolds& rows, int most) {
  const QuantileOutputs outputs = quantile_outputs(*head, score.low, score.high);
  const Tensors answers = head->run_rows({rows.calibration_features});
  std::vector<CalibrationScores> by_step(static_cast<size_t>(most));
  const auto n = static_cast<size_t>(rows.calibration_features.size(0));
  for (CalibrationScores& step : by_step) {
    step.sides = 2;
    step.scores.resize(2 * n);
  }
  for (const size_t side : {0, 1}) {
    const size_t output = side == 0 ? outputs.low : outputs.high;
    const torch::Tensor quantile = output_matrix(answers[output]);
    const torch::Tensor y = truth_matrix(rows.calibration_truth, quantile);
    const torch::Tensor outside = (side == 0 ? y < quantile : y > quantile).squeeze(1);
    const SurrogateSearch search(head, output,
                                 {.rate = score.step_rate, .adam = score.adam, .weights = {}});
    search.distances(rows.calibration_features, rows.calibration_truth, most,
                     distance_order(score.norm), [&](int step, const torch::Tensor& distance) {
                       check_interrupted();
                       const std::vector<double> signed_distance =
                           plain_scores(torch::where(outside, distance, -distance));
                       CalibrationScores& kept = by_step[static_cast<size_t>(step - 1)];
                       for (size_t i = 0; i < n; ++i)
                         kept.scores[2 * i + side] = signed_distance[i];
                       return true;
                     });
  }
  return by_step;
}

double count_inside(const Regions& regions, const torch::Tensor& truth) {
  return (regions.lower <= truth).logical_and(truth <= regions.upper).all(1).sum().item<double>();
}

// Strictly more than 1 − α of the rows: strictly fewer misses than α of them.
bool covers_more(double covered, double rows, const Level& level) {
  return level.at_most_share(rows - covered + 1e-9, rows);
}

[[noreturn]] void fail_steps(const StepsChoice& choice, int most, const Level& level) {
  const double best = *std::max_element(choice.coverage.begin(), choice.coverage.end());
  fail("surrogate: after none of ", most, " steps do the bands cover more than ",
       100 * (1 - level.value()), " % of the validation rows (best ", 100 * best,
       " %); try another rate, a looser bound, or a score that needs no steps");
}

StepsChoice choose_cqr_steps(const std::shared_ptr<const Network>& head, const ScoreOptions& score,
                             const FeatureCqrOptions& own, const StepsFolds& rows,
                             const Level& level, int most) {
  ScoreOptions one_step = score;
  *one_step.find(field::steps) = 1;  // region() does not depend on it
  const std::unique_ptr<Score> surrogate = make_score(one_step, head);
  const torch::Tensor truth = output_matrix(rows.validation_truth);
  const auto validation_rows = static_cast<double>(truth.size(0));
  const TestInputs fresh{rows.validation_features, {}, {}};
  const CalibrationOptions as_paper(SplitOptions{}, {.paper = true});
  StepsChoice choice;
  for (const CalibrationScores& step : cqr_rows_by_step(head, own, rows, most)) {
    const torch::Tensor radii = make_calibration(as_paper, step)->radii(fresh, level);
    const double covered = count_inside(surrogate->region(fresh.features, radii), truth);
    choice.coverage.push_back(covered / validation_rows);
    if (covers_more(covered, validation_rows, level)) {
      choice.steps = static_cast<int>(choice.coverage.size());
      return choice;
    }
  }
  fail_steps(choice, most, level);
}

// How many validation rows a band of that radius covers. Where bands only grow, a row is covered
// from its nested score on, so that the scores, made once, answer for every radius.
std::function<double(double)> count_by_radius(const std::shared_ptr<const Network>& head,
                                              const ScoreOptions& score,
                                              const SurrogateOptions& own, const StepsFolds& rows) {
  if (own.bound.method == BoundMethod::kIbp) {
    const ScoreOptions nested(NestedOptions{.norm = own.norm, .bound = own.bound}, score);
    std::vector<double> entered =
        make_score(nested, head)->score(rows.validation_features, rows.validation_truth);
    for (double& radius : entered) {
      if (std::isnan(radius)) radius = std::numeric_limits<double>::infinity();  // never
    }
    std::sort(entered.begin(), entered.end());
    return [entered](double radius) {
      const auto as_band = static_cast<double>(static_cast<float>(radius));
      const auto end = std::upper_bound(entered.begin(), entered.end(), as_band);
      return static_cast<double>(end - entered.begin());
    };
  }
  ScoreOptions options = score;
  *options.find(field::steps) = 1;  // region() does not depend on it
  const std::shared_ptr<const Score> surrogate = make_score(options, head);
  const torch::Tensor truth = output_matrix(rows.validation_truth);
  return [surrogate, truth, features = rows.validation_features](double radius) {
    return count_inside(surrogate->region(features, radius), truth);
  };
}

// Radii from one half of the rows that are left out, judged on the other; the paper takes the radii
// of the calibration rows themselves.
StepsFolds halves_of(const torch::Tensor& features, const torch::Tensor& truth) {
  const int64_t rows = features.size(0), half = rows / 2;
  return {features.narrow(0, 0, half), truth.narrow(0, 0, half),
          features.narrow(0, half, rows - half), truth.narrow(0, half, rows - half),
          /*clamp=*/true};
}

}  // namespace

StepsChoice choose_steps(std::shared_ptr<const Network> head, const ScoreOptions& score,
                         const StepsFolds& rows, const Level& level, int most) {
  if (most < 1) fail("surrogate: at most ", most, " steps were allowed, expected 1 or more");
  torch::NoGradGuard no_grad;
  if (const auto* cqr = score.as<FeatureCqrOptions>()) {
    return choose_cqr_steps(head, score, *cqr, rows, level, most);
  }
  const auto& own = std::get<SurrogateOptions>(score.own);
  const SurrogateSearch search(
      head, output_index(*head, score.output),
      {.rate = own.step_rate, .adam = own.adam, .weights = own.loss_weights});
  const auto validation_rows = static_cast<double>(rows.validation_truth.size(0));
  const std::function<double(double)> covered_at = count_by_radius(head, score, own, rows);
  FollowingQuantile quantile(level);
  StepsChoice choice;
  search.distances(rows.calibration_features, rows.calibration_truth, most,
                   distance_order(own.norm), [&](int step, const torch::Tensor& distances) {
                     check_interrupted();
                     const std::vector<double> scores = plain_scores(distances);
                     double radius = quantile.of(scores);
                     if (own.paper || rows.clamp)
                       radius = std::min(radius, *std::max_element(scores.begin(), scores.end()));
                     const double covered = covered_at(radius);
                     choice.coverage.push_back(covered / validation_rows);
                     if (covers_more(covered, validation_rows, level)) choice.steps = step;
                     return choice.steps == 0;
                   });
  if (choice.steps == 0) fail_steps(choice, most, level);
  return choice;
}

ChoiceState choose_search_steps(ChoiceState state, const ChoiceRows& rows) {
  if (!state.open.steps) return state;
  CalibrationPlan& plan = state.plan;
  const bool paper = plan.method.score.value(field::paper);
  ScoreOptions score = plan.method.score;
  score.set(field::steps, 1);
  const ScoredNetwork predictor(plan.network, score, plan.method.cut, rows.context.device);
  const torch::Tensor features = predictor.features(rows.x());
  const Rows rest = paper ? take_masked(rows.source, plan.left_out, false, rows.batch) : Rows();
  const StepsFolds folds =
      paper ? StepsFolds{predictor.features(view(rest.x)), view(rest.y), features, rows.y(), false}
            : halves_of(features, rows.y());
  const Level level = paper ? Level::fraction(1, 10) : rows.settings.level;
  const StepsChoice choice = choose_steps(predictor.shared_head(), score, folds, level);
  plan.method.score.set(field::steps, choice.steps);
  plan.choices.steps = ChosenSteps{choice.steps, choice.coverage.back()};
  // The paper calibrates on these rows too, where nothing else is chosen on them.
  plan.choices.left_out = !paper || state.open.bandwidth || state.open.ratio;
  state.open.steps = state.open.cut = state.open.floor = false;
  return state;
}

}  // namespace fcp
