#include "fcp/calibrate/choose_score.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <limits>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/calibrate/choose.h"
#include "fcp/calibrate/choose_cut.h"
#include "fcp/calibrate/fit_heads.h"
#include "fcp/calibrate/label_options.h"
#include "fcp/calibrate/quick_cut.h"
#include "fcp/data/split.h"
#include "fcp/export/export.h"
#include "fcp/methods/options.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/graph/output_kind.h"
#include "fcp/nn/graph/simplify.h"
#include "fcp/nn/runtime/libtorch_error.h"
#include "fcp/predictor/scored_network.h"

namespace fcp {
namespace {

constexpr int64_t kMostContestRows = 4000;
constexpr int64_t kMostRowsForCuts = 1000;  // where every cut is scored exactly
constexpr int kHalvings = 4;
constexpr double kPriceOfSimplicity = 0.02;  // of the least loss, at most
constexpr std::array kIntervalScores = {"residual", "cqr",        "spread", "quantiles",
                                        "density",  "linearized", "nested", "ellipsoid"};
constexpr std::array kLabelScores = {"lac", "raps", "saps", "aps", "feature_margin"};

template <size_t count>
std::vector<std::string> wanted_scores(const std::array<const char*, count>& order,
                                       const std::vector<std::string>& asked) {
  std::vector<std::string> wanted;
  for (const char* name : order) {
    if (asked.empty() || std::find(asked.begin(), asked.end(), name) != asked.end()) {
      wanted.push_back(name);
    }
  }
  for (const std::string& name : asked) {
    if (std::find(order.begin(), order.end(), name) == order.end()) {
      fail("'", name, "' is not among the scores that are compared");
    }
  }
  return wanted;
}

// Whether the network has the outputs that the score reads.
bool has_heads_for(const Graph& network, const ScoreOptions& score) {
  if (const auto* low = score.find(field::low)) {
    return !low->empty() && !score.value(field::high).empty();
  }
  const std::vector<std::string> learned = score.learned_outputs();
  return std::all_of(learned.begin(), learned.end(),
                     [&](const std::string& name) { return has_output(network, name); });
}

// The last tensor at which the network can be cut for the score: what is measured behind it runs
// the backbone once. What makes an output probabilities stays behind it. Empty where there is none.
std::string last_cut(const Graph& network, const ScoreOptions& score) {
  Graph folded = graph_for_score(network, score);
  fold_constants(folded);
  const std::string output = score.output.empty() ? folded.outputs[0].name : score.output;
  const OutputKind kind = output_meaning(folded, output).kind;
  const std::vector<std::string> cuts = feature_cuts(folded);
  for (auto tensor = cuts.rbegin(); tensor != cuts.rend(); ++tensor) {
    if (output_meaning(cut(folded, *tensor).head, output).kind == kind) return *tensor;
  }
  return "";
}

// The deviation of a − b, over √2.
double noise_of(const std::vector<double>& a, const std::vector<double>& b) {
  const double mean = mean_of(a) - mean_of(b);
  double squares = 0;
  for (size_t i = 0; i < a.size(); ++i) squares += (a[i] - b[i] - mean) * (a[i] - b[i] - mean);
  return std::sqrt(squares / static_cast<double>(a.size() - 1) / 2);
}

// The groups of the rows that spread_rows takes.
std::vector<int64_t> spread_groups(const std::vector<int64_t>& groups, int64_t rows) {
  const torch::Tensor some = spread_rows(torch::tensor(groups, torch::kLong), rows).contiguous();
  return {some.data_ptr<int64_t>(), some.data_ptr<int64_t>() + some.numel()};
}

// Whole groups in either half, as equal as they allow in a random order.
Halving halve_groups(const std::vector<int64_t>& groups, uint64_t seed) {
  const GroupedOrder order = grouped_order(groups, seed);
  size_t middle = order.rows.size() / 2;
  while (middle < order.rows.size() && order.first[middle] != middle) ++middle;
  if (middle == order.rows.size()) middle = order.first.back();
  const auto at = order.rows.begin() + static_cast<std::ptrdiff_t>(middle);
  if (middle == 0) fail("the rows that choose the score are of one group, expected two or more");
  return {std::vector(order.rows.begin(), at), std::vector(at, order.rows.end())};
}

// Which of the candidates that were measured on halves of the rows wins.
class ScoreContest {
 public:
  ScoreContest(int64_t rows, const ScoreSelectionOptions& options);

  const std::vector<Halving>& halvings() const { return halvings_; }

  // `measure` settles cut and options of the candidate and measures it; what it throws is why the
  // candidate is skipped.
  void enter(const ScoreOptions& score,
             const std::function<HalfMeasures(ScoreCandidate&)>& measure);

  // Once, at the end. An Error where no candidate has a finite loss.
  ScoreSelection choose();

 private:
  std::vector<double> compared_losses() const;
  [[noreturn]] void fail_selection() const;

  int64_t rows_;
  const ScoreSelectionOptions& options_;
  std::vector<Halving> halvings_;
  ScoreSelection selection_;
  std::vector<std::vector<double>> losses_;  // of each candidate, one for each half
};

ScoreContest::ScoreContest(int64_t rows, const ScoreSelectionOptions& options)
    : rows_(rows), options_(options) {
  Random random(options.seed);
  for (int i = 0; i < kHalvings; ++i) {
    if (!options.groups.empty()) {
      halvings_.push_back(halve_groups(spread_groups(options.groups, rows), random.bits()));
      continue;
    }
    const std::vector<size_t> order = random.permutation(static_cast<size_t>(rows));
    const auto middle = order.begin() + rows / 2;
    halvings_.push_back({std::vector(order.begin(), middle), std::vector(middle, order.end())});
  }
}

void ScoreContest::enter(const ScoreOptions& score,
                         const std::function<HalfMeasures(ScoreCandidate&)>& measure) {
  ScoreCandidate candidate;
  candidate.name = score.name();
  candidate.score = score;
  candidate.length = candidate.interval_score = std::numeric_limits<double>::infinity();
  std::vector<double> losses;
  try {
    const HalfMeasures measures = measure(candidate);
    losses = measures.losses(options_.objective, options_.level);
    candidate.length = measures.length();
    candidate.interval_score = measures.interval_score(options_.level);
    if (!measures.volumes.empty()) candidate.volume = mean_of(measures.volumes);
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

// Everything that the candidates have in common.
struct ContestRows {
  const Graph& network;
  torch::Tensor x, y;
  const ScoreSelectionOptions& options;
  const std::vector<Halving>& halvings;
};

HalfMeasures measure_at(const ContestRows& rows, const ScoreOptions& score,
                        const std::string& cut) {
  const ScoredNetwork scored(rows.network, score, cut, rows.options.device);
  return measure_halves(scored.score(), scored.features(rows.x), rows.y, rows.options.level,
                        rows.halvings);
}

// nested and linearized, with the cut and floor that are found.
HalfMeasures measure_features(const ContestRows& rows, ScoreCandidate& entry) {
  entry.tuned = rows.options.cut.empty();
  SelectionOptions cuts;
  cuts.level = rows.options.level;
  cuts.floors = rows.options.floors;
  cuts.objective = rows.options.objective;
  cuts.work = rows.options.work;
  cuts.cheapest = !rows.options.scores.empty();  // it is asked for
  cuts.device = rows.options.device;
  if (!rows.options.cut.empty()) cuts.cuts = {resolve_cut(rows.network, rows.options.cut)};
  if (has_ladder(entry.score)) {
    const QuickCut found = find_cut(rows.network, entry.score, rows.x, rows.y, cuts);
    entry.cut = found.cut;
    entry.score = found.score;
    return measure_halves(found.ladder, found.widening(), rows.options.level, rows.halvings);
  }
  const Selection found =
      select_cut(rows.network, entry.score, spread_rows(rows.x, kMostRowsForCuts),
                 spread_rows(rows.y, kMostRowsForCuts), cuts);
  entry.cut = found.best().cut;
  entry.score = found.best().score;
  return measure_at(rows, entry.score, entry.cut);
}

HalfMeasures measure_labels(const ContestRows& rows, ScoreCandidate& entry) {
  const bool by_features = entry.score.traits().uses_features;
  if (by_features) entry.cut = rows.options.cut;
  if (by_features && entry.cut.empty()) {
    entry.cut = default_cut(rows.network, entry.score).cut;
  }
  const std::string cut = by_features ? entry.cut : last_cut(rows.network, entry.score);
  const ScoredNetwork scored(rows.network, entry.score, cut, rows.options.device);
  const LabelledFeatures labelled{scored.features(rows.x), rows.y};
  if (by_features) {
    entry.cut = scored.cut();
  } else {
    entry.score = choose_temperature(entry.score, scored.shared_head(), labelled);
  }
  if (entry.score.find(field::rank_weight) != nullptr) {
    entry.score = choose_rank_term(entry.score, scored.shared_head(), labelled, rows.options.level,
                                   !by_features);
  }
  const std::unique_ptr<Score> chosen = make_score(entry.score, scored.shared_head());
  return measure_halves(*chosen, labelled.features, rows.y, rows.options.level, rows.halvings);
}

// Whether the plan with this score gives a network with the region as outputs, at a radius like its
// own.
bool can_be_exported(const CalibrationPlan& plan, const ScoreCandidate& candidate,
                     const Level& level) {
  constexpr size_t kAnyRows = 1000;
  CalibrationArtifact artifact;
  artifact.network = plan.network;
  artifact.method.score = candidate.score;
  artifact.method.cut = candidate.cut;
  artifact.method.calibration = plan.method.calibration;
  try {
    const ScoredNetwork scored(artifact.network, artifact.method.score, artifact.method.cut);
    artifact.rows.sides = scored.score().sides();
    artifact.rows.targets = scored.score().targets();
    artifact.rows.scores.assign(kAnyRows * static_cast<size_t>(artifact.rows.sides),
                                candidate.radius);
    export_artifact(artifact, {.levels = {level}});
    return true;
  } catch (const std::exception&) {
    failure_reason();
    return false;
  }
}

}  // namespace

ScoreSelection select_score(const Graph& network, const ScoreOptions& score, const torch::Tensor& x,
                            const torch::Tensor& y, const ScoreSelectionOptions& options) {
  const torch::NoGradGuard no_gradients;
  if (score.value(field::allow_empty)) {
    fail_option("allow_empty", "applies only to label sets; this network is a regression");
  }
  ScoreContest contest(std::min(x.size(0), kMostContestRows), options);
  const ContestRows rows{network, spread_rows(x, kMostContestRows),
                         spread_rows(y, kMostContestRows), options, contest.halvings()};
  for (const std::string& name : wanted_scores(kIntervalScores, options.scores)) {
    ScoreOptions candidate = as_score(score, name);
    const bool two_outputs = candidate.find(field::low) != nullptr;
    // One output is the prediction, two others are the quantiles.
    if (two_outputs) candidate.output.clear();
    if (auto* normalize = candidate.find(field::normalize); normalize && normalize->empty()) {
      *normalize = options.target_scales;
    }
    if (std::find(options.without.begin(), options.without.end(), name) != options.without.end()) {
      continue;
    }
    if (options.scores.empty() && !has_heads_for(network, candidate)) {
      if (two_outputs || options.no_heads.empty()) continue;
      contest.enter(candidate, [&](ScoreCandidate&) -> HalfMeasures { fail(options.no_heads); });
      continue;
    }
    if (double* const tail = candidate.find(field::tail)) {
      *tail = std::clamp(options.level.value() / 2, 1e-3, 0.25);
    }
    contest.enter(candidate, [&](ScoreCandidate& entry) {
      if (entry.score.traits().uses_features) return measure_features(rows, entry);
      return measure_at(rows, entry.score, last_cut(network, entry.score));
    });
  }
  return contest.choose();
}

ScoreSelection select_label_score(const Graph& network, const ScoreOptions& score,
                                  const torch::Tensor& x, const torch::Tensor& y,
                                  const ScoreSelectionOptions& options) {
  const torch::NoGradGuard no_gradients;
  ScoreContest contest(std::min(x.size(0), kMostContestRows), options);
  const ContestRows rows{network, spread_rows(x, kMostContestRows),
                         spread_rows(y, kMostContestRows), options, contest.halvings()};
  for (const std::string& name : wanted_scores(kLabelScores, options.scores)) {
    ScoreOptions candidate = as_score(score, name);
    bool* const randomized = candidate.find(field::randomized);
    if (randomized != nullptr && options.scores.empty()) *randomized = false;
    contest.enter(candidate, [&](ScoreCandidate& entry) { return measure_labels(rows, entry); });
  }
  return contest.choose();
}

ChoiceState choose_score(ChoiceState state, const ChoiceRows& rows) {
  if (!state.open.score) return state;
  const CalibrateSettings& settings = rows.settings;
  CalibrationPlan& plan = state.plan;
  const bool by_length = settings.method.text("objective") == kByLength;
  const std::string joint = settings.method.text("joint");
  Stage stage(rows.context, "choose the score", 0);
  ScoreSelectionOptions options;
  options.level = settings.level;
  options.seed = rows.context.seed;
  options.groups = rows.slice_groups;
  options.device = rows.context.device;
  options.objective = joint == kJointAuto ? Objective::kVolume
                      : by_length         ? Objective::kLength
                                          : Objective::kIntervalScore;
  if (const auto* place = std::get_if<std::string>(&settings.method.cut)) options.cut = *place;
  // Density counts probability, so that coverage is nearly even already; its tails grow so fast
  // that a radius times a few per cent is far out in them.
  if (state.open.rectifier) options.without = {"density"};
  // Cuts are compared by intervals of all outputs alike.
  if (joint != kJointAll) {
    options.without.emplace_back(LinearizedOptions::kName);
    options.without.emplace_back(NestedOptions::kName);
  }
  if (joint != kJointAuto) options.without.emplace_back(EllipsoidOptions::kName);
  options.no_heads = state.no_heads;
  if (has_output(plan.network, kScaleOutput)) options.target_scales = kScaleOutput;
  options.exportable = [&](const ScoreCandidate& one) {
    return can_be_exported(plan, one, settings.level);
  };
  options.observe = [&](const ScoreCandidate&) { stage.advance(1); };
  const auto select = state.labels ? select_label_score : select_score;
  const ScoreSelection selection =
      select(plan.network, plan.method.score, rows.x(), rows.y(), options);
  plan.method.score = selection.best().score;
  if (!selection.best().cut.empty()) plan.method.cut = selection.best().cut;
  plan.choices.score = plan.method.score.name();
  ScoresTried& tried = plan.choices.scores.emplace();
  tried.candidates.assign(selection.candidates.begin(), selection.candidates.end());
  tried.chosen = selection.chosen;
  tried.by = state.labels          ? (by_length ? ChosenBy::kSize : ChosenBy::kSetScore)
             : joint == kJointAuto ? ChosenBy::kVolume
             : by_length           ? ChosenBy::kLength
                                   : ChosenBy::kIntervalScore;
  state.open = {.rectifier = state.open.rectifier,
                .bandwidth = state.open.bandwidth,
                .ratio = state.open.ratio};
  return state;
}

}  // namespace fcp
