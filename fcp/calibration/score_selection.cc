#include "fcp/calibration/score_selection.h"

#include <algorithm>
#include <array>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/calibration/default_cut.h"
#include "fcp/calibration/label_selection.h"
#include "fcp/calibration/quick_cut.h"
#include "fcp/calibration/score_contest.h"
#include "fcp/calibration/scored_network.h"
#include "fcp/network/cut.h"
#include "fcp/network/output_kind.h"
#include "fcp/network/simplify.h"
#include "fcp/scores/head_outputs.h"

namespace fcp {
namespace {

constexpr int64_t kMostContestRows = 4000;
constexpr int64_t kMostRowsForCuts = 1000;  // where every cut is scored exactly
constexpr std::array kIntervalScores = {"residual", "cqr",        "spread", "quantiles",
                                        "density",  "linearized", "nested"};
constexpr std::array kLabelScores = {"lac", "raps", "aps", "feature_margin"};

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
  if (score.name == "spread") return has_output(network, spread_output(score));
  if (score.name == "quantiles" || score.name == "density") {
    return has_output(network, quantiles_output(score));
  }
  if (score.name == "cqr") return !score.low.empty() && !score.high.empty();
  return true;
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
  entry.cut = found.candidates[found.chosen].cut;
  entry.score = found.candidates[found.chosen].score;
  return measure_at(rows, entry.score, entry.cut);
}

HalfMeasures measure_labels(const ContestRows& rows, ScoreCandidate& entry) {
  const bool by_features = uses_features(entry.name);
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
  if (entry.name == "raps" || by_features) {
    entry.score = choose_rank_term(entry.score, scored.shared_head(), labelled, rows.options.level);
  }
  const std::unique_ptr<Score> chosen = make_score(entry.score, scored.shared_head());
  return measure_halves(*chosen, labelled.features, rows.y, rows.options.level, rows.halvings);
}

}  // namespace

ScoreSelection select_score(const Graph& network, const ScoreOptions& score, const torch::Tensor& x,
                            const torch::Tensor& y, const ScoreSelectionOptions& options) {
  const torch::NoGradGuard no_gradients;
  ScoreContest contest(std::min(x.size(0), kMostContestRows), options);
  const ContestRows rows{network, spread_rows(x, kMostContestRows),
                         spread_rows(y, kMostContestRows), options, contest.halvings()};
  for (const std::string& name : wanted_scores(kIntervalScores, options.scores)) {
    ScoreOptions candidate = score;
    candidate.name = name;
    if (name != "residual") candidate.normalize.clear();
    // One output is the prediction, two others are the quantiles.
    if (name == "cqr") {
      candidate.output.clear();
    } else {
      candidate.low.clear();
      candidate.high.clear();
    }
    if (std::find(options.without.begin(), options.without.end(), name) != options.without.end()) {
      continue;
    }
    if (options.scores.empty() && !has_heads_for(network, candidate)) {
      if (name == "cqr" || options.no_heads.empty()) continue;
      contest.enter(candidate, [&](ScoreCandidate&) -> HalfMeasures { fail(options.no_heads); });
      continue;
    }
    if (name == "quantiles") candidate.tail = std::clamp(options.level.value() / 2, 1e-3, 0.25);
    contest.enter(candidate, [&](ScoreCandidate& entry) {
      if (uses_features(name)) return measure_features(rows, entry);
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
    ScoreOptions candidate = score;
    candidate.name = name;
    candidate.randomized = candidate.randomized && !options.scores.empty();
    contest.enter(candidate, [&](ScoreCandidate& entry) { return measure_labels(rows, entry); });
  }
  return contest.choose();
}

}  // namespace fcp
