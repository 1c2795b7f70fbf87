// Conformal predictive distributions against counts in a loop, and their one promise: a truth is
// equally likely anywhere in its distribution.

#include "fcp/predictor/distribution.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/predictor/predict.h"

#include "tests/methods/scores/heads.h"

namespace fcp {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// y = v, σ = 1 + v².
Graph spread_network() {
  Graph graph = linear_head(torch::ones({1, 1}), torch::zeros({1}));
  graph.initializers["one"] = torch::ones({1});
  graph.nodes.push_back(make_node("Mul", {"x", "x"}, {"square"}));
  graph.nodes.push_back(make_node("Add", {"square", "one"}, {kSpreadOutput}));
  graph.outputs.push_back(make_info(kSpreadOutput, {kDynamic, 1}));
  return graph;
}

// Calibrated on the truths y [n, 1] of the rows x.
CalibrationArtifact calibrated(const ScoreOptions& score, const torch::Tensor& x,
                               const torch::Tensor& y) {
  CalibrationArtifact artifact;
  artifact.network = spread_network();
  artifact.method.score = score;
  artifact.method.score.output = "y";
  const ScoredNetwork scored(artifact.network, artifact.method.score, "");
  artifact.rows.sides = scored.score().sides();
  artifact.rows.scores = scored.score().score(scored.features(x), y);
  return artifact;
}

struct Sample {
  torch::Tensor x, y;
};

Sample draw(Random& random, int64_t rows) {
  const torch::Tensor x = random_normal(random, {rows, 1});
  return {x, x + 0.5 + random_normal(random, {rows, 1}) * (1 + x.abs())};
}

// (y_i − μ_i) / σ_i of the calibration rows, and the same of a threshold at a row.
std::vector<double> standard_scores(bool spread, const Sample& rows) {
  std::vector<double> scores;
  for (int64_t i = 0; i < rows.x.size(0); ++i) {
    const double x = rows.x[i][0].item<double>(), y = rows.y[i][0].item<double>();
    scores.push_back((y - x) / (spread ? 1 + x * x : 1));
  }
  return scores;
}

std::vector<ScoreOptions> forms(bool spread) {
  const ScoreOptions plain = spread ? ScoreOptions(SpreadOptions{}) : ResidualOptions{};
  std::vector<ScoreOptions> all(3, plain);
  all[0].side = BoundSide::kUpper;
  all[1].side = BoundSide::kLower;
  all[2].set(field::asymmetric, true);
  return all;
}

TEST(Distribution, CountsTheScoresBelowAndAtTheThreshold) {
  Random random(81);
  const Sample seen = draw(random, 60), fresh = draw(random, 20);
  for (const bool spread : {false, true}) {
    const std::vector<double> scores = standard_scores(spread, seen);
    const std::vector<double> asked = standard_scores(spread, fresh);
    for (const ScoreOptions& form : forms(spread)) {
      const PredictiveDistribution distribution(calibrated(form, seen.x, seen.y));
      const TestInputs rows = distribution.describe(fresh.x);
      const torch::Tensor truths = fresh.y.to(torch::kDouble).contiguous();
      const auto bands = distribution.below(rows, {truths.data_ptr<double>(), 20});
      for (size_t i = 0; i < asked.size(); ++i) {
        const auto below = static_cast<double>(
            std::count_if(scores.begin(), scores.end(), [&](double s) { return s < asked[i]; }));
        EXPECT_NEAR(bands[i].lower, below / 61, 1e-12);
        EXPECT_NEAR(bands[i].upper, (below + 1) / 61, 1e-12);
      }
    }
  }
}

TEST(Distribution, QuantilesAreThoseOfTheScores) {
  Random random(82);
  const Sample seen = draw(random, 39), fresh = draw(random, 5);
  const std::vector<Level> asked = {Level(0.05), Level(0.5), Level(0.95), Level(0.975)};
  for (const bool spread : {false, true}) {
    std::vector<double> scores = standard_scores(spread, seen);
    std::sort(scores.begin(), scores.end());
    const PredictiveDistribution distribution(calibrated(forms(spread)[0], seen.x, seen.y));
    const torch::Tensor found = distribution.quantiles(distribution.describe(fresh.x), asked);
    ASSERT_EQ(found.sizes(), torch::IntArrayRef({5, 4}));
    for (int64_t i = 0; i < 5; ++i) {
      const double x = fresh.x[i][0].item<double>(), width = spread ? 1 + x * x : 1;
      for (const auto& [column, rank] : {std::pair(0, 2), {1, 20}, {2, 38}, {3, 39}}) {
        EXPECT_NEAR(found[i][column].item<double>(),
                    x + width * scores[static_cast<size_t>(rank) - 1], 1e-6);
      }
    }
  }
  const PredictiveDistribution few(calibrated(forms(false)[0], seen.x, seen.y));
  const Level beyond(0.98);
  EXPECT_EQ(few.quantiles(few.describe(fresh.x), {&beyond, 1})[0][0].item<double>(), kInfinity);
}

// 500 calibrations with a fresh row each: independent numbers, uniform if the promise holds. By
// Massart's bound their distance from uniform is beyond 0.1205 with a chance below 1e-6.
TEST(Distribution, TruthsAreUniform) {
  for (const char* calibration : {"split", "grouped", "weighted"}) {
    Random random(83);
    std::vector<double> places;
    for (int repeat = 0; repeat < 500; ++repeat) {
      const Sample seen = draw(random, 40), fresh = draw(random, 1);
      CalibrationArtifact artifact = calibrated(forms(repeat % 2 == 0)[0], seen.x, seen.y);
      artifact.method.calibration = CalibrationOptions(calibration);
      if (std::string* group = artifact.method.calibration.find(field::group)) *group = "column";
      artifact.rows.group_names = {"low", "high"};
      SideInformation known{.groups = {1}, .weights = {1}};
      for (int64_t i = 0; i < 40; ++i) {
        artifact.rows.groups.push_back(i % 2);
        artifact.rows.weights.push_back(1);
      }
      const PredictiveDistribution distribution(artifact);
      const double truth = fresh.y[0][0].item<double>();
      const ProbabilityBand band =
          distribution.below(distribution.describe(fresh.x, known), {&truth, 1})[0];
      places.push_back(band.lower + random.uniform() * (band.upper - band.lower));
    }
    std::sort(places.begin(), places.end());
    double distance = 0;
    for (size_t i = 0; i < places.size(); ++i) {
      distance = std::max({distance, places[i] - static_cast<double>(i) / 500,
                           static_cast<double>(i + 1) / 500 - places[i]});
    }
    EXPECT_LT(distance, 0.1205) << calibration;
  }
}

// Shares of weight in place of counts, the new row's among them.
TEST(Distribution, WeightsCountAsShares) {
  Random random(84);
  const Sample seen = draw(random, 30), fresh = draw(random, 1);
  CalibrationArtifact artifact = calibrated(forms(false)[0], seen.x, seen.y);
  artifact.method.calibration = WeightedOptions{};
  double below = 0, all = 2;
  const double asked = standard_scores(false, fresh)[0];
  for (const double score : standard_scores(false, seen)) {
    artifact.rows.weights.push_back(random.uniform());
    all += artifact.rows.weights.back();
    if (score < asked) below += artifact.rows.weights.back();
  }
  const PredictiveDistribution distribution(artifact);
  const double truth = fresh.y[0][0].item<double>();
  const TestInputs rows = distribution.describe(fresh.x, {.groups = {}, .weights = {2}});
  const ProbabilityBand band = distribution.below(rows, {&truth, 1})[0];
  EXPECT_NEAR(band.lower, below / all, 1e-9);
  EXPECT_NEAR(band.upper, (below + 2) / all, 1e-9);
}

TEST(Distribution, EventsAreDifferencesOfCounts) {
  Random random(85);
  const Sample seen = draw(random, 50), fresh = draw(random, 10);
  const PredictiveDistribution distribution(calibrated(forms(false)[0], seen.x, seen.y));
  const TestInputs rows = distribution.describe(fresh.x);
  const auto above = distribution.probability(rows, event_above("1.25"));
  const auto below = distribution.probability(rows, event_below("1.25"));
  const auto between = distribution.probability(rows, event_between("-0.5:1.25"));
  const std::vector<double> scores = standard_scores(false, seen);
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_NEAR(above[i].lower + below[i].upper, 1, 1e-12);
    EXPECT_NEAR(above[i].upper + below[i].lower, 1, 1e-12);
    const double x = fresh.x[static_cast<int64_t>(i)][0].item<double>();
    const auto in = static_cast<double>(std::count_if(
        scores.begin(), scores.end(), [&](double s) { return x + s > -0.5 && x + s <= 1.25; }));
    EXPECT_NEAR(between[i].lower, in / 51, 1e-12);
    EXPECT_NEAR(between[i].upper, (in + 1) / 51, 1e-12);
  }
  EXPECT_THAT([] { event_above("much"); }, ThrowsMessage<Error>(HasSubstr("found much")));
  EXPECT_THAT([] { event_between("3:1"); }, ThrowsMessage<Error>(HasSubstr("FROM below TO")));
  EXPECT_THAT([] { event_between("3"); }, ThrowsMessage<Error>(HasSubstr("FROM:TO")));
}

TEST(Distribution, KeepsToASupport) {
  Random random(86);
  Sample seen = draw(random, 50);
  seen.y = seen.y.abs().round();
  ScoreOptions score = forms(false)[0];
  score.support = "0:6";
  score.integer = true;
  const PredictiveDistribution distribution(calibrated(score, seen.x, seen.y));
  const TestInputs rows = distribution.describe(draw(random, 8).x);
  const torch::Tensor found = distribution.quantiles(rows, even_levels(9));
  EXPECT_TRUE(found.equal(found.round()));
  EXPECT_GE(found.min().item<double>(), 0);
  EXPECT_LE(found.max().item<double>(), 6);
  const auto at = [&](double threshold) {
    return distribution.below(rows, std::vector<double>(8, threshold))[0];
  };
  EXPECT_EQ(at(-0.5), (ProbabilityBand{0, 0}));
  EXPECT_EQ(at(6), (ProbabilityBand{1, 1}));
  EXPECT_EQ(at(2.75), at(2));
}

TEST(Distribution, SaysWhatHasNone) {
  Random random(87);
  const Sample seen = draw(random, 30);
  const auto refused = [&](const ScoreOptions& score, const CalibrationOptions& calibration,
                           const char* why) {
    CalibrationArtifact artifact = calibrated(score, seen.x, seen.y);
    artifact.method.calibration = calibration;
    EXPECT_THAT([&] { PredictiveDistribution{artifact}; }, ThrowsMessage<Error>(HasSubstr(why)));
  };
  refused(ResidualOptions{}, {}, "needs the scores of one end, which residual does not have");
  refused(forms(false)[0], LocalizedOptions{}, "split, grouped or weighted; this one is localized");
  const CalibrationArtifact artifact = calibrated(forms(false)[0], seen.x, seen.y);
  const auto asked = [&](const DistributionRequest& request) {
    return [&artifact, request] { DistributionColumns{artifact, request, torch::kCPU}; };
  };
  EXPECT_THAT(asked({.quantiles = {"1.5"}}), ThrowsMessage<Error>(HasSubstr("found 1.5")));
  EXPECT_THAT(asked({.point = "mode"}), ThrowsMessage<Error>(HasSubstr("point: found mode")));
  EXPECT_THAT(asked({.grid = "grid.csv"}), ThrowsMessage<Error>(HasSubstr(".npy")));
}

}  // namespace

// The probabilities of classes against the predictors of each class, asked one by one, and files.

namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

struct KnownClasses {
  CalibrationArtifact artifact;
  torch::Tensor x;              // [N, C], the logits
  std::vector<int64_t> labels;  // of the largest of x and noise
};

// Calibrated on these rows by their labels.
KnownClasses known_classes(int64_t classes, int64_t rows, double temperature = 1) {
  Random random(21 + static_cast<uint64_t>(classes));
  KnownClasses made;
  made.artifact.network = linear_head(torch::eye(classes), torch::zeros({classes}));
  made.artifact.method.score = LacOptions{.temperature = temperature};
  made.artifact.rows.scores = {0.1, 0.2, 0.3};
  made.x = random_normal(random, {rows, classes});
  const torch::Tensor noisy = made.x + random_normal(random, {rows, classes});
  const torch::Tensor answer = noisy.argmax(1);
  made.labels = {answer.data_ptr<int64_t>(), answer.data_ptr<int64_t>() + rows};
  made.artifact.method.score.probabilities = "venn-abers";
  const ScoredNetwork network(made.artifact.network, made.artifact.method.score, "");
  const torch::Tensor scores = LogitShares(network, made.artifact.method.score).scores(made.x);
  made.artifact.chances =
      fit_chances({scores.data_ptr<double>(), static_cast<size_t>(scores.numel())}, made.labels);
  return made;
}

double softmax_of(const torch::Tensor& logits, int64_t k, double temperature) {
  double sum = 0;
  for (int64_t j = 0; j < logits.size(0); ++j) {
    sum += std::exp(logits[j].item<double>() / temperature);
  }
  return std::exp(logits[k].item<double>() / temperature) / sum;
}

TEST(ClassProbabilities, EachClassStandsAgainstTheRest) {
  for (const int64_t classes : {2, 3, 5}) {
    const double temperature = classes == 3 ? 1.7 : 1;
    const KnownClasses known = known_classes(classes, 300, temperature);
    EXPECT_EQ(known.artifact.chances.size(), classes == 2 ? 1u : static_cast<size_t>(classes));
    const ScoredNetwork network(known.artifact.network, known.artifact.method.score, "");
    const ClassProbabilities probabilities(network, known.artifact);
    Random random(5);
    const torch::Tensor x = random_normal(random, {40, classes});
    const ClassChances found = probabilities.of(x);
    // Fitted here once more, of every class.
    for (int64_t k = 0; k < classes; ++k) {
      std::vector<double> scores;
      std::vector<bool> hits;
      for (int64_t i = 0; i < 300; ++i) {
        scores.push_back(softmax_of(known.x[i], k, temperature));
        hits.push_back(known.labels[static_cast<size_t>(i)] == k);
      }
      const VennAbers own(scores, hits);
      for (int64_t i = 0; i < 40; ++i) {
        const VennAbersPair pair = own.at(softmax_of(x[i], k, temperature));
        EXPECT_NEAR(found.p0[i][k].item<double>(), pair.p0, 1e-9);
        EXPECT_NEAR(found.p1[i][k].item<double>(), pair.p1, 1e-9);
        const double share = found.merged[i][k].item<double>() / pair.merged();
        EXPECT_NEAR(share,
                    found.merged[i][0].item<double>() /
                        (found.p1[i][0] / (1 - found.p0[i][0] + found.p1[i][0])).item<double>(),
                    1e-9);
      }
    }
    EXPECT_TRUE(found.merged.sum(1).allclose(torch::ones({40}, torch::kDouble)));
    EXPECT_EQ(found.columns().size(1), 3 * classes);
  }
}

TEST(ClassProbabilities, AreTheSoftmaxWhereNoneAreCalibrated) {
  KnownClasses known = known_classes(3, 50);
  known.artifact.chances.clear();
  const ScoredNetwork network(known.artifact.network, known.artifact.method.score, "");
  const ClassChances found = ClassProbabilities(network, known.artifact).of(known.x);
  EXPECT_FALSE(found.calibrated());
  EXPECT_TRUE(found.merged.allclose(torch::softmax(known.x.to(torch::kDouble), 1)));
  EXPECT_EQ(found.columns().size(1), 3);
}

TEST(ClassProbabilities, FilesKeepThem) {
  for (const int64_t classes : {2, 4}) {
    const KnownClasses known = known_classes(classes, 200);
    const Graph graph = artifact_graph(known.artifact);
    const CalibrationArtifact read = artifact_from_graph(graph, "file");
    ASSERT_EQ(read.chances.size(), known.artifact.chances.size());
    for (size_t k = 0; k < read.chances.size(); ++k) {
      EXPECT_EQ(read.chances[k].steps(), known.artifact.chances[k].steps());
    }
    EXPECT_EQ(read.method.score.probabilities, "venn-abers");
    const auto damaged = [&](const torch::Tensor& matrix) {
      Graph other = artifact_graph(known.artifact);
      other.initializers["fcp.probabilities"] = matrix;
      return [other] { artifact_from_graph(other, "file"); };
    };
    const torch::Tensor good = graph.initializers.at("fcp.probabilities");
    EXPECT_THAT(damaged(good.narrow(1, 0, 3).contiguous()),
                ThrowsMessage<Error>(HasSubstr("are damaged")));
    EXPECT_THAT(damaged(good.narrow(0, 1, good.size(0) - 1).contiguous()),
                ThrowsMessage<Error>(HasSubstr("not in order")));
    torch::Tensor second = good.clone();
    second[0][0] = 1;
    EXPECT_THAT(damaged(second), ThrowsMessage<Error>(HasSubstr("not in order")));
  }
}

TEST(ClassProbabilities, SaysWhatHasNone) {
  CalibrationArtifact intervals;
  intervals.network = linear_head(torch::ones({1, 1}), torch::zeros({1}));
  intervals.method.score = ResidualOptions{};
  const ScoredNetwork network(intervals.network, intervals.method.score, "");
  EXPECT_THAT([&] { ClassProbabilities(network, intervals); },
              ThrowsMessage<Error>(HasSubstr("residual gives intervals")));
  KnownClasses other = known_classes(3, 50);
  other.artifact.chances.pop_back();
  const ScoredNetwork three(other.artifact.network, other.artifact.method.score, "");
  EXPECT_THAT([&] { ClassProbabilities(three, other.artifact); },
              ThrowsMessage<Error>(HasSubstr("are of 2 classes, its network answers 3")));
  EXPECT_THAT([] { fit_chances({}, {}); }, ThrowsMessage<Error>(HasSubstr("need rows")));
}

}  // namespace
}  // namespace fcp
