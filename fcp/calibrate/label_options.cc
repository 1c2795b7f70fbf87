#include "fcp/calibrate/label_options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/random.h"
#include "fcp/calibrate/choose.h"
#include "fcp/calibrate/choose_cut.h"
#include "fcp/calibrate/halves.h"
#include "fcp/conformal/quantile.h"
#include "fcp/methods/scores/aps.h"
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

namespace {

constexpr int64_t kMostTermRows = 2000;
constexpr size_t kTermHalvings = 10;
constexpr std::array kWeights = {0.001, 0.003, 0.006, 0.01, 0.03, 0.06, 0.1, 0.2, 0.5};
constexpr std::array<int64_t, 8> kFreeRanks = {1, 2, 3, 4, 5, 8, 13, 21};
constexpr std::array kCoolings = {1.0, 0.85, 0.7, 0.5};
constexpr std::array kMarginShares = {0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3};

std::vector<double> own_scores(const torch::Tensor& scores, const torch::Tensor& truth) {
  return plain_scores(scores.gather(1, truth).squeeze(1));
}

// The 1 − α quantile of the rank of the truth, at most the last rank.
int64_t last_free_rank(const torch::Tensor& ranks, const torch::Tensor& truth, const Level& level) {
  const std::vector<double> own = own_scores(ranks.to(torch::kDouble), truth);
  const auto most = static_cast<double>(ranks.size(1));
  return static_cast<int64_t>(std::min(conformal_quantile(own, level), most));
}

// A score of labels and its rows, without a rank term.
struct LabelledScore {
  LabelledScore(ScoreOptions options, const std::shared_ptr<const Network>& head,
                const LabelledFeatures& rows) {
    *options.find(field::rank_weight) = 0;
    const std::unique_ptr<Score> score = make_score(options, head);
    const auto& labels = dynamic_cast<const LabelScore&>(*score);
    const torch::Tensor logits = logits_of(labels.head(), rows.features);
    scores = labels.label_scores(rows.features, logits);
    ranks = label_ranks(logits);
    truth = labels_of(rows.labels, rows.features.size(0), labels.classes()).unsqueeze(1);
  }

  torch::Tensor scores;  // [N, C]
  torch::Tensor ranks;   // [N, C]
  torch::Tensor truth;   // [N, 1]
};

struct TermCandidate {
  double temperature = 1;
  RankTerm term{};
  double size = 0;  // the sum of the halves' mean sizes
};

// Scores that ascend with the rank, so that a set is the first few ranks.
class RankedRows {
 public:
  // `shift`: what a score adds to the ranks beyond the free ones, row by row; saps u − 1.
  RankedRows(const LabelledScore& rows, std::vector<double> shift)
      : shift_(std::move(shift)),
        classes_(rows.scores.size(1)),
        by_rank_(torch::empty_like(rows.scores).scatter_(1, rows.ranks - 1, rows.scores)),
        scores_(by_rank_.data_ptr<double>()) {
    const torch::Tensor own = rows.ranks.gather(1, rows.truth).contiguous();
    truth_.assign(own.data_ptr<int64_t>(), own.data_ptr<int64_t>() + own.numel());
  }

  // The mean size of the rows of one half at the radius of the other.
  double mean_size(const Halving& halving, size_t side, const RankTerm& term,
                   const Level& level) const {
    std::vector<double> scores;
    for (const size_t row : halving[side]) scores.push_back(score_at(row, truth_[row], term));
    const double radius = conformal_quantile(scores, level);
    int64_t labels = 0;
    for (const size_t row : halving[1 - side]) labels += size_of(row, radius, term);
    return static_cast<double>(labels) / static_cast<double>(halving[1 - side].size());
  }

 private:
  double score_at(size_t row, int64_t rank, const RankTerm& term) const {
    const double plain = scores_[static_cast<int64_t>(row) * classes_ + rank - 1];
    if (rank <= term.free) return plain;
    return plain + term.weight * (static_cast<double>(rank - term.free) + shift_[row]);
  }

  int64_t size_of(size_t row, double radius, const RankTerm& term) const {
    int64_t in = 0, out = classes_ + 1;
    while (out - in > 1) {
      const int64_t middle = in + (out - in) / 2;
      (score_at(row, middle, term) <= radius ? in : out) = middle;
    }
    return in;
  }

  std::vector<double> shift_;
  int64_t classes_;
  torch::Tensor by_rank_;       // [N, C]
  const double* scores_;        // its numbers
  std::vector<int64_t> truth_;  // ranks
};

// Both halves are the rows themselves where half of them have no finite radius.
std::vector<Halving> term_halvings(size_t rows, const Level& level, uint64_t seed) {
  Random random(seed);
  std::vector<Halving> halvings;
  for (size_t i = 0; i < kTermHalvings; ++i) {
    const std::vector<size_t> order = random.permutation(rows);
    const auto middle = order.begin() + static_cast<std::ptrdiff_t>(rows / 2);
    halvings.push_back({std::vector(order.begin(), middle), std::vector(middle, order.end())});
    if (conformal_rank(level, rows / 2) > rows / 2) halvings.back() = {order, order};
  }
  return halvings;
}

std::vector<TermCandidate> term_candidates(double temperature, const ScoreOptions& options,
                                           int64_t last) {
  std::vector<int64_t> free = {1};  // saps
  if (options.find(field::rank_free) != nullptr) {
    free.clear();
    for (const int64_t ranks : kFreeRanks) {
      if (ranks < last) free.push_back(ranks);
    }
    free.push_back(last);
  }
  std::vector<TermCandidate> candidates;
  for (const int64_t ranks : free) {
    for (const double weight : kWeights) candidates.push_back({temperature, {weight, ranks}});
  }
  return candidates;
}

// All terms at the temperature of the options, each measured on all halvings.
std::vector<TermCandidate> measured_terms(ScoreOptions options,
                                          const std::shared_ptr<const Network>& head,
                                          const LabelledFeatures& rows, const Level& level,
                                          const std::vector<Halving>& halvings) {
  const bool randomized = options.value(field::randomized);
  const bool counts_shares = randomized && options.find(field::rank_free) == nullptr;
  const auto count = static_cast<size_t>(rows.features.size(0));
  std::vector<TermCandidate> candidates;
  for (size_t draw = 0; draw < (randomized ? halvings.size() : 1); ++draw) {
    check_interrupted();
    options.seed += draw > 0 ? 1 : 0;
    const LabelledScore labelled(options, head, rows);
    std::vector<double> shift(count, 0);
    if (counts_shares) {
      const torch::Tensor u = random_shares(rows.features, options.seed);
      for (size_t i = 0; i < count; ++i) shift[i] = u.data_ptr<double>()[i] - 1;
    }
    const RankedRows ranked(labelled, std::move(shift));
    if (candidates.empty()) {
      const int64_t last = last_free_rank(labelled.ranks, labelled.truth, level);
      candidates = term_candidates(options.value(field::temperature), options, last);
    }
    for (TermCandidate& candidate : candidates) {
      for (size_t i = 0; i < halvings.size(); ++i) {
        if (randomized && i != draw) continue;
        for (const size_t side : {0, 1}) {
          candidate.size += ranked.mean_size(halvings[i], side, candidate.term, level);
        }
      }
    }
  }
  return candidates;
}

ScoreOptions choose_share_term(ScoreOptions options, const std::shared_ptr<const Network>& head,
                               const LabelledFeatures& rows, const Level& level, bool cooler) {
  const LabelledFeatures some{spread_rows(rows.features, kMostTermRows),
                              spread_rows(rows.labels, kMostTermRows)};
  const std::vector<Halving> halvings =
      term_halvings(static_cast<size_t>(some.features.size(0)), level, options.seed);
  const double own = options.value(field::temperature);
  TermCandidate best{.size = std::numeric_limits<double>::infinity()};
  for (const double cooling : kCoolings) {
    if (cooling != 1 && !cooler) break;
    options.set(field::temperature, cooling * own);
    for (const TermCandidate& one : measured_terms(options, head, some, level, halvings)) {
      if (one.size < best.size) best = one;
    }
  }
  options.set(field::temperature, best.temperature);
  options.set(field::rank_weight, best.term.weight);
  if (int64_t* const free = options.find(field::rank_free)) *free = best.term.free;
  return options;
}

// The labels in all sets together, at the radius of the rows themselves.
int64_t labels_in_sets(const LabelledScore& rows, const RankTerm& term, const Level& level,
                       bool allow_empty) {
  torch::Tensor scores = rows.scores + rank_terms(rows.ranks, term);
  if (!allow_empty) scores = scores.masked_fill(rows.ranks == 1, 0);
  const double radius = conformal_quantile(own_scores(scores, rows.truth), level);
  return (scores <= radius).sum().item<int64_t>();
}

ScoreOptions choose_margin_term(ScoreOptions options, const std::shared_ptr<const Network>& head,
                                const LabelledFeatures& rows, const Level& level) {
  const LabelledScore labelled(options, head, rows);
  const double radius = conformal_quantile(own_scores(labelled.scores, labelled.truth), level);
  const double unit = std::isfinite(radius) && radius > 0 ? radius : 1;
  const int64_t last = last_free_rank(labelled.ranks, labelled.truth, level);
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const double share : kMarginShares) {
    check_interrupted();
    const int64_t labels =
        labels_in_sets(labelled, {share * unit, last}, level, options.value(field::allow_empty));
    if (labels >= least) continue;
    least = labels;
    options.set(field::rank_weight, share * unit);
    options.set(field::rank_free, last);
  }
  return options;
}

}  // namespace

ScoreOptions choose_rank_term(ScoreOptions options, const std::shared_ptr<const Network>& head,
                              const LabelledFeatures& rows, const Level& level, bool cooler) {
  if (options.find(field::rank_weight) == nullptr) {
    fail(options.name(), " has no rank term to choose; raps, saps and feature_margin have");
  }
  const torch::NoGradGuard no_gradients;
  if (options.traits().uses_features) {
    return choose_margin_term(std::move(options), head, rows, level);
  }
  return choose_share_term(std::move(options), head, rows, level, cooler);
}

}  // namespace fcp
