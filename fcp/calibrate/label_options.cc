#include "fcp/calibrate/label_options.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/calibrate/choose.h"
#include "fcp/calibrate/rank_term.h"
#include "fcp/conformal/quantile.h"
#include "fcp/conformal/rank.h"
#include "fcp/methods/scores/labels.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/predictor/scored_network.h"
#include "fcp/search/surrogate_search.h"

namespace fcp {
namespace {

// Slope and curvature in b = 1/T of the mean of log Σ_j exp(b z_j) − b z_y.
struct Slope {
  double first = 0, second = 0;
};

Slope cross_entropy_slope(const torch::Tensor& logits, const torch::Tensor& own, double b) {
  const torch::Tensor p = torch::softmax(logits * b, 1);
  const torch::Tensor mean = (p * logits).sum(1, /*keepdim=*/true);
  const torch::Tensor variance = (p * (logits - mean).square()).sum(1);
  return {(mean - own).mean().item<double>(), variance.mean().item<double>()};
}

}  // namespace

double best_temperature(const torch::Tensor& logits, const torch::Tensor& labels) {
  const torch::Tensor z = logits.to(torch::kDouble);
  const torch::Tensor own = z.gather(1, labels.to(torch::kLong).reshape({-1, 1}));
  double low = 0.01, high = 100, b = 1;
  for (int i = 0; i < 60 && high / low > 1 + 1e-9; ++i) {
    const Slope slope = cross_entropy_slope(z, own, b);
    (slope.first > 0 ? high : low) = b;
    const double newton = b - slope.first / slope.second;
    const double next = newton > low && newton < high ? newton : std::sqrt(low * high);
    if (std::abs(next - b) <= 1e-10 * b) break;
    b = next;
  }
  return 1 / b;
}

ScoreOptions choose_temperature(ScoreOptions options, const std::shared_ptr<const Network>& head,
                                const LabelledFeatures& rows) {
  const LogitHead logits = logit_head(head, options.output);
  const int64_t count = rows.features.size(0);
  if (double* temperature = options.find(field::temperature)) {
    *temperature = best_temperature(logits_of(logits, rows.features),
                                    labels_of(rows.labels, count, logits.classes));
  }
  return options;
}

ScoreOptions choose_sampled_steps(ScoreOptions options, const std::shared_ptr<const Network>& head,
                                  const LabelledFeatures& rows, const Level& level, int most) {
  const torch::NoGradGuard no_gradients;
  int& steps = *options.find(field::steps);
  steps = 1;  // region() does not depend on it
  const std::unique_ptr<Score> score = make_score(options, head);
  const LogitHead logits = logit_head(head, options.output);
  const SurrogateSearch search(logits.network, 0,
                               {.rate = options.value(field::step_rate),
                                .adam = options.value(field::adam),
                                .weights = {},
                                .loss = SearchLoss::kCrossEntropy});
  const int64_t half = rows.features.size(0) / 2;
  if (conformal_rank(level, static_cast<size_t>(half)) > static_cast<size_t>(half)) {
    fail("feature_sampled: ", rows.features.size(0), " selection rows are too few to choose its ",
         "number of steps at this level");
  }
  const torch::Tensor features = rows.features.narrow(0, 0, half);
  const torch::Tensor others = rows.features.narrow(0, half, half);
  const torch::Tensor truth =
      labels_of(rows.labels, rows.features.size(0), logits.classes).unsqueeze(1);
  const auto count = static_cast<double>(half);
  double best = 0;
  steps = 0;
  search.walk(features, truth.narrow(0, 0, half), most, [&](int step, const torch::Tensor& found) {
    check_interrupted();
    const std::vector<double> scores =
        plain_scores(row_norms(found - features, options.value(field::norm)));
    const Regions regions = score->region(others, conformal_quantile(scores, level));
    const double covered =
        regions.members.gather(1, truth.narrow(0, half, half)).sum().item<double>();
    best = std::max(best, covered / count);
    // Strictly more than 1 − α: strictly fewer misses than α of the rows.
    if (level.at_most_share(count - covered + 1e-9, count)) steps = step;
    return steps == 0;
  });
  if (steps == 0) {
    fail("feature_sampled: after none of ", most, " steps do the sets cover more than ",
         100 * (1 - level.value()), " % of the selection rows (best ", 100 * best,
         " %); try a larger --rate, or --score feature_margin, which needs no steps");
  }
  return options;
}

ChoiceState choose_label_options(ChoiceState state, const ChoiceRows& rows) {
  CalibrationPlan& plan = state.plan;
  OpenOptions& open = state.open;
  if (open.score || !plan.method.score.traits().labels) return state;
  ScoreOptions& score = plan.method.score;
  ScoreOptions any = score;
  int* const steps = any.find(field::steps);
  if (steps != nullptr) *steps = std::max(*steps, 1);  // the head does not depend on it
  const ScoredNetwork predictor(plan.network, any, plan.method.cut, rows.context.device);
  const std::shared_ptr<const Network>& head = predictor.shared_head();
  const LabelledFeatures labelled{predictor.features(rows.x()), rows.y()};
  if (open.temperature) {
    score = choose_temperature(score, head, labelled);
    plan.choices.temperature = score.value(field::temperature);
  }
  if (open.rank_term) {
    score = choose_rank_term(score, head, labelled, rows.settings.level, open.temperature);
    const int64_t* const free = score.find(field::rank_free);  // of saps the first rank alone
    plan.choices.rank_term =
        ChosenRankTerm{score.value(field::rank_weight), free == nullptr ? 1 : *free};
    if (open.temperature) plan.choices.temperature = score.value(field::temperature);
  }
  if (open.steps) {
    score = choose_sampled_steps(score, head, labelled, rows.settings.level);
    plan.choices.sampled_steps = score.value(field::steps);
  }
  open.temperature = open.rank_term = open.steps = open.cut = open.floor = false;
  return state;
}

}  // namespace fcp
