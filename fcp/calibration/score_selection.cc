#include "fcp/calibration/score_selection.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <new>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/random.h"
#include "fcp/calibration/calibration.h"
#include "fcp/calibration/label_selection.h"
#include "fcp/calibration/scored_network.h"
#include "fcp/network/cut.h"
#include "fcp/scores/head_outputs.h"
#include "fcp/scores/region_measures.h"

namespace fcp {
namespace {

constexpr int kHalvings = 4;
constexpr double kLargestLoss = 0.02;  // of the length, for the sake of simplicity
constexpr std::array kIntervalScores = {"residual", "cqr",       "linearized", "spread",
                                        "nested",   "quantiles", "density"};
constexpr std::array kLabelScores = {"lac", "raps", "aps", "feature_margin"};

// Lengths, or sizes of sets, at the radius of the other half.
struct HalfMeasures {
  std::vector<double> lengths;  // one for each half
  double coverage = 0;
};

// Row numbers of both halves, for each halving.
using Halving = std::array<torch::Tensor, 2>;

std::vector<Halving> make_halvings(int64_t rows, uint64_t seed) {
  Random random(seed);
  std::vector<Halving> halvings;
  for (int i = 0; i < kHalvings; ++i) {
    const std::vector<size_t> order = random.permutation(static_cast<size_t>(rows));
    const torch::Tensor all =
        torch::tensor(std::vector<int64_t>(order.begin(), order.end()), torch::kLong);
    halvings.push_back({all.narrow(0, 0, rows / 2), all.narrow(0, rows / 2, rows - rows / 2)});
  }
  return halvings;
}

CalibrationScores rows_at(const Score& score, const torch::Tensor& scores,
                          const torch::Tensor& which) {
  const torch::Tensor some = scores.index_select(0, which).contiguous();  // [n, S]
  CalibrationScores rows;
  rows.sides = score.sides();
  rows.scores.assign(some.data_ptr<double>(), some.data_ptr<double>() + some.numel());
  return rows;
}

double mean_size(const Regions& regions) {
  return regions.members.defined() ? regions.members.sum(1).to(torch::kDouble).mean().item<double>()
                                   : region_lengths(regions).mean().item<double>();
}

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
      const torch::Tensor& judged = halving[1 - side];
      const auto calibration = make_calibration({}, rows_at(score, scores, halving[side]));
      const TestInputs fresh{features.index_select(0, judged.to(features.device())), {}, {}};
      const torch::Tensor radii = calibration->radii(fresh, level);
      measures.lengths.push_back(mean_size(score.region(fresh.features, radii)));
      const torch::Tensor in = (scores.index_select(0, judged) <= radii.cpu()).all(1);
      measures.coverage += in.to(torch::kDouble).mean().item<double>() / (2 * kHalvings);
    }
  }
  return measures;
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

// All candidates, measured one after the other; then the choice.
class ScoreContest {
 public:
  ScoreContest(const Graph& network, const torch::Tensor& x, const torch::Tensor& y,
               const ScoreSelectionOptions& options)
      : network_(network),
        x_(x),
        y_(y),
        options_(options),
        halvings_(make_halvings(x.size(0), options.seed)) {}

  // `prepare` settles cut and options; what it throws is why the candidate is skipped.
  template <typename Prepare>
  void enter(const ScoreOptions& score, const std::string& cut, const Prepare& prepare) {
    ScoreCandidate candidate{score.name, cut, score, std::numeric_limits<double>::infinity(),
                             0,          0,   "",    false};
    HalfMeasures measures;
    try {
      prepare(candidate);
      const ScoredNetwork scored(network_, candidate.score, candidate.cut, options_.device);
      candidate.cut = scored.cut();
      measures = measure_halves(scored.score(), scored.features(x_), y_, options_.level, halvings_);
      candidate.length = mean_of(measures.lengths);
      candidate.coverage = measures.coverage;
    } catch (const Error& error) {
      candidate.skipped = error.what();
    } catch (const std::bad_alloc&) {
      candidate.skipped = "out of memory";
    }
    selection_.candidates.push_back(candidate);
    lengths_.push_back(measures.lengths);
    if (options_.observe) options_.observe(selection_.candidates.back());
  }

  ScoreSelection choose() {
    std::vector<ScoreCandidate>& all = selection_.candidates;
    const size_t shortest = static_cast<size_t>(
        std::min_element(all.begin(), all.end(),
                         [](const auto& a, const auto& b) { return a.length < b.length; }) -
        all.begin());
    if (all.empty() || !std::isfinite(all[shortest].length)) fail_selection();
    const double best = all[shortest].length;
    selection_.chosen = shortest;
    for (size_t i = all.size(); i-- > 0;) {
      if (!std::isfinite(all[i].length)) continue;
      all[i].standard_error = noise_of(lengths_[i], lengths_[shortest]);
      const double allowed = std::min(all[i].standard_error, kLargestLoss * best);
      if (all[i].length <= best + allowed) selection_.chosen = i;
    }
    all[selection_.chosen].chosen = true;
    return std::move(selection_);
  }

 private:
  [[noreturn]] void fail_selection() const {
    std::string reasons;
    for (const ScoreCandidate& candidate : selection_.candidates) {
      reasons += concat("; ", candidate.name, ": ",
                        candidate.skipped.empty() ? "infinite" : candidate.skipped);
    }
    fail("no score gives finite regions on the ", x_.size(0), " selection rows", reasons);
  }

  const Graph& network_;
  const torch::Tensor& x_;
  const torch::Tensor& y_;
  const ScoreSelectionOptions& options_;
  std::vector<Halving> halvings_;
  ScoreSelection selection_;
  std::vector<std::vector<double>> lengths_;  // of each candidate
};

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
  if (score.name == "cqr") {
    return !score.low.empty() || without_heads(network).outputs.size() == 2;
  }
  return true;
}

}  // namespace

ScoreSelection select_score(const Graph& network, const ScoreOptions& score, const torch::Tensor& x,
                            const torch::Tensor& y, const ScoreSelectionOptions& options) {
  const torch::NoGradGuard no_gradients;
  ScoreContest contest(network, x, y, options);
  for (const std::string& name : wanted_scores(kIntervalScores, options.scores)) {
    ScoreOptions candidate = score;
    candidate.name = name;
    if (options.scores.empty() && !has_heads_for(network, candidate)) continue;
    if (name == "quantiles") candidate.tail = std::clamp(options.level.value() / 2, 1e-3, 0.25);
    contest.enter(candidate, "", [&](ScoreCandidate& entry) {
      if (!uses_features(name)) return;
      SelectionOptions cuts;
      cuts.level = options.level;
      cuts.floors = options.floors;
      cuts.seconds = options.seconds;
      cuts.device = options.device;
      if (!options.cut.empty()) cuts.cuts = {resolve_cut(network, options.cut)};
      const Selection found = select_cut(network, entry.score, x, y, cuts);
      entry.cut = found.candidates[found.chosen].cut;
      entry.score = found.candidates[found.chosen].score;
    });
  }
  return contest.choose();
}

ScoreSelection select_label_score(const Graph& network, const ScoreOptions& score,
                                  const torch::Tensor& x, const torch::Tensor& y,
                                  const ScoreSelectionOptions& options) {
  const torch::NoGradGuard no_gradients;
  ScoreContest contest(network, x, y, options);
  for (const std::string& name : wanted_scores(kLabelScores, options.scores)) {
    ScoreOptions candidate = score;
    candidate.name = name;
    contest.enter(candidate, options.cut, [&](ScoreCandidate& entry) {
      const bool by_features = uses_features(name);
      if (!by_features) entry.cut.clear();
      if (by_features && entry.cut.empty()) entry.cut = default_cut(network);
      const ScoredNetwork scored(network, entry.score, entry.cut, options.device);
      const LabelledFeatures rows{scored.features(x), y};
      if (!by_features) {
        entry.score = choose_temperature(entry.score, scored.shared_head(), rows);
      }
      if (name == "raps" || by_features) {
        entry.score = choose_rank_term(entry.score, scored.shared_head(), rows, options.level);
      }
    });
  }
  return contest.choose();
}

}  // namespace fcp
