#include "fcp/calibrate/fit_heads.h"

#include <cmath>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/calibrate/choose_score.h"
#include "fcp/conformal/quantile.h"
#include "fcp/methods/method.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/predictor/scored_network.h"

#include "tests/methods/scores/label_heads.h"
#include "tests/nn/graphs.h"
#include "tests/reference/conformal_reference.h"

namespace fcp {
namespace {

struct NoisyRows {
  torch::Tensor x, y;
};

// A network of 3 inputs, and rows with noise of deviation exp(slope · x_0) around its answers.
Graph small_network(uint64_t seed, int64_t outputs = 1) {
  Random random(seed);
  Graph graph = make_mlp({3, 16, outputs});
  for (const auto& [name, constant] : graph.initializers) {
    const torch::Tensor tensor = constant;
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      tensor.data_ptr<float>()[i] = static_cast<float>(random.normal() * 0.6);
    }
  }
  return graph;
}

NoisyRows noisy_rows(const Graph& network, Random& random, int64_t rows, double slope) {
  NoisyRows made{torch::empty({rows, 3}), {}};
  for (int64_t i = 0; i < made.x.numel(); ++i) {
    made.x.data_ptr<float>()[i] = static_cast<float>(random.normal());
  }
  const torch::NoGradGuard no_gradients;
  made.y = Network(without_heads(network)).forward(made.x).to(torch::kDouble);
  for (int64_t i = 0; i < rows; ++i) {
    const double deviation = std::exp(slope * made.x[i][0].item<double>());
    for (int64_t k = 0; k < made.y.size(1); ++k) made.y[i][k] += deviation * random.normal();
  }
  return made;
}

struct Measured {
  double coverage = 0, length = 0;
  double worst = 1;  // coverage of the rows with the loudest fifth of the noise
};

Measured measured(const Graph& network, const ScoreOptions& score, const NoisyRows& calibration,
                  const NoisyRows& test, double alpha) {
  const ScoredNetwork scored(network, score, "h1");
  const double radius = conformal_quantile(
      scored.score().score(scored.features(calibration.x), calibration.y), Level(alpha));
  const Regions regions = scored.score().region(scored.features(test.x), radius);
  const torch::Tensor in = in_regions(regions, test.y).to(torch::kDouble);
  return {in.mean().item<double>(), region_lengths(regions).mean().item<double>(),
          in.masked_select(test.x.select(1, 0) > 0.84).mean().item<double>()};
}

TEST(FeatureHeads, ShortenIntervalsOfANetworkFromElsewhere) {
  Random random(1);
  const Graph plain = small_network(2);
  const NoisyRows slice = noisy_rows(plain, random, 1500, 1);
  const NoisyRows calibration = noisy_rows(plain, random, 2000, 1);
  const NoisyRows test = noisy_rows(plain, random, 2000, 1);
  const Graph network = with_heads(plain, "h1", "", slice.x, slice.y);
  EXPECT_FALSE(find_leak(network, "h1").has_value());
  const Measured before = measured(plain, ResidualOptions{}, calibration, test, 0.1);
  for (const char* name : {"spread", "quantiles", "density"}) {
    const Measured after = measured(network, ScoreOptions(name), calibration, test, 0.1);
    EXPECT_LT(after.length, 0.9 * before.length) << name;
    EXPECT_NEAR(after.coverage, 0.9, 0.03) << name;
    EXPECT_GT(after.worst, before.worst + 0.1) << name;
  }
  // What needs no heads is what it was.
  const Measured same = measured(network, ResidualOptions{}, calibration, test, 0.1);
  EXPECT_EQ(same.length, before.length);
}

TEST(FeatureHeads, RectifyingEvensOutCoverage) {
  Random random(3);
  const Graph plain = small_network(4);
  const NoisyRows slice = noisy_rows(plain, random, 1500, 1);
  const NoisyRows calibration = noisy_rows(plain, random, 2000, 1);
  const NoisyRows test = noisy_rows(plain, random, 3000, 1);
  for (const char* name : {"residual", "nested"}) {
    ScoreOptions score(name);
    const Measured before = measured(plain, score, calibration, test, 0.1);
    const Graph network = with_rectifier(plain, "h1", score, slice.x, slice.y, 0.1);
    EXPECT_EQ(score.rectifier, kRectifierOutput);
    const Measured after = measured(network, score, calibration, test, 0.1);
    EXPECT_NEAR(after.coverage, 0.9, 0.03) << name;
    EXPECT_GT(after.worst, 0.83) << name;
    EXPECT_LT(before.worst, 0.75) << name;
  }
}

// The marginal law of a rectified score whose rectifier was fitted on other rows: over T
// calibrations of n rows drawn with replacement from a population, coverage follows Beta(k, n+1−k)
// at the values it can take; a distance beyond `limit` has a chance of at most 1e-6 (Massart).
TEST(FeatureHeads, RectifiedCoverageFollowsTheBetaLaw) {
  Random random(5);
  const Graph plain = small_network(6);
  const NoisyRows slice = noisy_rows(plain, random, 300, 1);
  const NoisyRows population = noisy_rows(plain, random, 160, 1);
  ScoreOptions score = ResidualOptions{};
  const Graph network = with_rectifier(plain, "h1", score, slice.x, slice.y, 0.1);
  const ScoredNetwork scored(network, score, "h1");
  const torch::Tensor features = scored.features(population.x);
  const std::vector<double> scores = scored.score().score(features, population.y);
  constexpr size_t kTrials = 2000, kCalibrated = 99;
  std::map<double, double> covered_at;  // by radius: few differ
  std::vector<double> coverage;
  for (size_t t = 0; t < kTrials; ++t) {
    std::vector<double> drawn(kCalibrated);
    for (double& one : drawn) one = scores[random.below(scores.size())];
    const double radius = conformal_quantile(drawn, Level(0.1));
    if (!covered_at.contains(radius)) {
      covered_at[radius] = in_regions(scored.score().region(features, radius), population.y)
                               .to(torch::kDouble)
                               .mean()
                               .item<double>();
    }
    coverage.push_back(covered_at[radius]);
  }
  std::sort(coverage.begin(), coverage.end());
  const double limit = std::sqrt(std::log(2e6) / (2.0 * kTrials));
  const auto distance_to = [&](size_t rank) {
    double distance = 0;
    for (size_t i = 0; i < coverage.size(); ++i) {
      if (i + 1 < coverage.size() && coverage[i + 1] == coverage[i]) continue;
      const double share = static_cast<double>(i + 1) / static_cast<double>(kTrials);
      distance =
          std::max(distance, std::abs(share - reference::beta_cdf(coverage[i], rank, kCalibrated)));
    }
    return distance;
  };
  const size_t rank = conformal_rank(Level(0.1), kCalibrated);
  EXPECT_LT(distance_to(rank), limit);
  EXPECT_GT(distance_to(rank - 1), limit) << "the test cannot tell neighbouring ranks";
}

TEST(FeatureHeads, QuantileNetworksAreLowered) {
  Random random(7);
  Graph plain = small_network(8, 1);
  plain.initializers["w_high"] = plain.initializers["w2"];
  plain.initializers["b_high"] = plain.initializers["b2"].tensor() + 1;
  plain.nodes.push_back(
      make_node("Gemm", {"h1", "w_high", "b_high"}, {"high"}, {{"transB", int64_t{1}}}));
  plain.outputs.push_back(make_info("high", {kDynamic, 1}));
  Graph mean = plain;
  mean.outputs.pop_back();
  const NoisyRows slice = noisy_rows(mean, random, 800, 1);
  const NoisyRows calibration = noisy_rows(mean, random, 1000, 1);
  for (const bool asymmetric : {false, true}) {
    ScoreOptions score = CqrOptions{.asymmetric = asymmetric};
    const Graph network = with_rectifier(plain, "h1", score, slice.x, slice.y, 0.1);
    const ScoredNetwork scored(network, score, "h1");
    const auto scores = scored.score().score(scored.features(calibration.x), calibration.y);
    EXPECT_EQ(scores.size(), calibration.x.size(0) * (asymmetric ? 2 : 1));
    const auto above = std::count_if(scores.begin(), scores.end(), [](double s) { return s > 0; });
    EXPECT_NEAR(static_cast<double>(above) / static_cast<double>(scores.size()),
                asymmetric ? 0.05 : 0.1, 0.08);
  }
}

TEST(ScoreSelection, TakesTheBestAndTheSimplestWhereNothingIsGained) {
  Random random(9);
  for (const double slope : {0.0, 1.0}) {
    const Graph plain = small_network(10);
    const NoisyRows fit = noisy_rows(plain, random, 1000, slope);
    const NoisyRows slice = noisy_rows(plain, random, 1000, slope);
    const Graph network = with_heads(plain, "h1", "", fit.x, fit.y);
    int seen = 0;
    ScoreSelectionOptions options;
    options.observe = [&](const ScoreCandidate&) { ++seen; };
    const ScoreSelection selection = select_score(network, {}, slice.x, slice.y, options);
    ASSERT_EQ(selection.candidates.size(), 6U);  // cqr has no quantiles to read
    EXPECT_EQ(seen, 6);
    const ScoreCandidate& best = selection.best();
    if (slope == 0) {
      EXPECT_EQ(best.name, "residual")
          << "better by " << selection.candidates[0].interval_score - best.interval_score << " ± "
          << selection.candidates[0].standard_error;
    } else {
      EXPECT_THAT(best.name, testing::AnyOf("spread", "quantiles", "density"));
      EXPECT_LT(best.length, 0.9 * selection.candidates[0].length);
    }
    for (const ScoreCandidate& candidate : selection.candidates) {
      EXPECT_EQ(candidate.skipped, "") << candidate.name;
      EXPECT_NEAR(candidate.coverage, 0.9, 0.03) << candidate.name;
      EXPECT_GE(candidate.interval_score * 1.02, best.interval_score) << candidate.name;
      EXPECT_GT(candidate.interval_score, candidate.length) << candidate.name;
    }
  }
}

// One row in twelve is twenty times as noisy, and a spread output says which. Intervals of one
// length are shorter because they give these rows up; the interval score sees how far they miss.
TEST(ScoreSelection, LengthCanBeBoughtByMissingBadlyAndTheIntervalScoreCannot) {
  Graph network = small_network(15);
  network.initializers["s"] = torch::tensor({{0.0F, 0.0F, 1.0F}});
  network.nodes.push_back(make_node("Gemm", {"x", "s"}, {kSpreadOutput}, {{"transB", int64_t{1}}}));
  network.outputs.push_back(make_info(kSpreadOutput, {kDynamic, 1}));
  Random random(16);
  NoisyRows slice = noisy_rows(network, random, 1000, 0);
  const torch::NoGradGuard no_gradients;
  for (int64_t i = 0; i < slice.x.size(0); ++i) slice.x[i][2] = i % 12 == 0 ? 20 : 1;
  slice.y = Network(without_heads(network)).forward(slice.x).to(torch::kDouble);
  for (int64_t i = 0; i < slice.x.size(0); ++i) {
    slice.y[i][0] += slice.x[i][2].item<double>() * random.normal();
  }
  ScoreSelectionOptions options;
  options.scores = {"residual", "spread"};
  EXPECT_EQ(select_score(network, {}, slice.x, slice.y, options).best().name, "spread");
  options.objective = Objective::kLength;
  const ScoreSelection shortest = select_score(network, {}, slice.x, slice.y, options);
  EXPECT_EQ(shortest.best().name, "residual");
  EXPECT_GT(shortest.candidates[0].interval_score, 2 * shortest.candidates[1].interval_score);
}

TEST(ScoreSelection, SaysWhyACandidateIsSkipped) {
  Random random(11);
  const Graph plain = small_network(12);
  const NoisyRows slice = noisy_rows(plain, random, 60, 0);
  ScoreSelectionOptions options;
  options.scores = {"residual", "spread"};
  const ScoreSelection selection = select_score(plain, {}, slice.x, slice.y, options);
  EXPECT_EQ(selection.best().name, "residual");
  EXPECT_THAT(selection.candidates[1].skipped, testing::HasSubstr("no output 'fcp.spread'"));
  options.scores = {"nonsense"};
  EXPECT_THROW(select_score(plain, {}, slice.x, slice.y, options), Error);
  options.scores = {"residual"};
  const NoisyRows few = noisy_rows(plain, random, 10, 0);  // 5 rows have no 90 % quantile
  EXPECT_THROW(select_score(plain, {}, few.x, few.y, options), Error);
}

// Of candidates that are alike, one that can be exported; not at the price of length.
TEST(ScoreSelection, PrefersWhatCanBeExported) {
  Random random(21);
  const Graph network = small_network(22);
  const NoisyRows slice = noisy_rows(network, random, 400, 0);  // even noise: all are alike
  ScoreSelectionOptions options;
  EXPECT_EQ(select_score(network, {}, slice.x, slice.y, options).best().name, "residual");
  std::vector<std::string> asked;
  options.exportable = [&](const ScoreCandidate& one) {
    asked.push_back(one.name);
    return one.name != "residual";
  };
  const ScoreSelection selection = select_score(network, {}, slice.x, slice.y, options);
  EXPECT_THAT(asked, testing::Contains("residual"));
  const ScoreCandidate& best = selection.best();
  EXPECT_EQ(best.name == "residual", asked.size() == 1);
  EXPECT_LE(best.length, 1.02 * selection.candidates[0].length);
  options.exportable = [](const ScoreCandidate&) { return false; };  // then the simplest again
  EXPECT_EQ(select_score(network, {}, slice.x, slice.y, options).best().name, "residual");
}

TEST(ScoreSelection, LeavesOutWhatCostsTooMuch) {
  Random random(23);
  const Graph network = small_network(24);
  const NoisyRows slice = noisy_rows(network, random, 200, 0);
  ScoreSelectionOptions options;
  options.work = 0;
  const ScoreSelection selection = select_score(network, {}, slice.x, slice.y, options);
  EXPECT_EQ(selection.best().name, "residual");
  for (const ScoreCandidate& one : selection.candidates) {
    if (one.name == "residual") continue;
    EXPECT_THAT(one.skipped, testing::HasSubstr("operations")) << one.name;
  }
  options.scores = {"linearized"};  // by name
  EXPECT_EQ(select_score(network, {}, slice.x, slice.y, options).best().name, "linearized");
}

// An Identity behind probabilities, as ZipMap leaves it, makes no logits of them.
TEST(ScoreSelection, ProbabilitiesBehindANodeThatKeepsThemAreStillProbabilities) {
  Random random(25);
  Graph network = small_network(26, 5);
  NoisyRows slice = noisy_rows(network, random, 400, 0);
  slice.y = slice.y.argmax(1, true).to(torch::kDouble);
  Graph shares = network;
  const std::string logits = shares.outputs[0].name;
  shares.nodes.push_back(make_node("Softmax", {logits}, {"p"}, {{"axis", int64_t{1}}}));
  shares.nodes.push_back(make_node("Identity", {"p"}, {"maps"}));
  shares.outputs[0].name = "maps";
  ScoreSelectionOptions options;
  options.scores = {"lac"};
  const ScoreSelection one = select_label_score(network, {}, slice.x, slice.y, options);
  const ScoreSelection two = select_label_score(shares, {}, slice.x, slice.y, options);
  EXPECT_NEAR(one.best().score.value(field::temperature),
              two.best().score.value(field::temperature), 1e-3);
  EXPECT_NEAR(one.best().length, two.best().length, 0.02);
}

TEST(ScoreSelection, LabelsByTheIntervalScoreOfTheirSets) {
  Random random(13);
  const Graph network = small_network(14, 5);
  NoisyRows slice = noisy_rows(network, random, 800, 0);
  slice.y = slice.y.argmax(1, true).to(torch::kDouble);  // the noise makes labels uncertain
  const ScoreSelection selection = select_label_score(network, {}, slice.x, slice.y, {});
  ASSERT_EQ(selection.candidates.size(), 5U);
  for (const ScoreCandidate& candidate : selection.candidates) {
    EXPECT_EQ(candidate.skipped, "") << candidate.name;
    const bool sums = candidate.score.find(field::randomized) != nullptr;
    EXPECT_TRUE(!sums || !candidate.score.value(field::randomized)) << candidate.name;
    EXPECT_GT(candidate.coverage, 0.86) << candidate.name;
    EXPECT_TRUE(sums || candidate.coverage < 0.94) << candidate.name;
  }
  EXPECT_EQ(selection.candidates[0].name, "lac");
  for (const ScoreCandidate& candidate : selection.candidates) {
    EXPECT_GE(candidate.interval_score, candidate.length) << candidate.name;
    EXPECT_LE(selection.best().interval_score, candidate.interval_score * 1.02) << candidate.name;
  }
}

// Half of the rows are sure of one label of two; of the other half all labels beyond two are nearly
// alike. lac saves on the hard rows and misses them by many labels; sums of probabilities miss
// alike everywhere.
TEST(ScoreSelection, SetsThatAdaptBeatSmallerOnesThatMissHardRows) {
  constexpr int64_t kDrawn = 3000, kClasses = 30;
  Random random(27);
  torch::Tensor logits = torch::full({kDrawn, kClasses}, -20.0f);
  for (int64_t i = 0; i < kDrawn; ++i) {
    const bool hard = i % 2 == 1;
    logits[i][i % kClasses] = hard ? 1.5f : 3.0f;
    logits[i][(i + 1) % kClasses] = hard ? 1.0f : 0.0f;
    for (int64_t k = 2; hard && k < kClasses; ++k) {
      logits[i][(i + k) % kClasses] = static_cast<float>(0.3 * random.normal());
    }
  }
  const torch::Tensor y = drawn_labels(random, logits).to(torch::kDouble);
  const Graph network = linear_head(torch::eye(kClasses), torch::zeros({kClasses}));
  ScoreSelectionOptions options;
  options.scores = {"lac", "aps"};
  ScoreOptions plain;
  plain = ScoreOptions(AutoOptions{.allow_empty = true});
  const ScoreSelection by_score = select_label_score(network, plain, logits, y, options);
  EXPECT_EQ(by_score.best().name, "aps");
  EXPECT_GT(by_score.best().length, by_score.candidates[0].length);
  options.objective = Objective::kLength;
  EXPECT_EQ(select_label_score(network, plain, logits, y, options).best().name, "lac");
}

}  // namespace
}  // namespace fcp
