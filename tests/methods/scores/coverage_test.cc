// The coverage of printed intervals over many calibrations.
//
// The population is a finite set of N rows, from which calibrations draw with replacement. Then the
// true coverage C of an interval is the share of the N rows whose truth lies in it, and at every
// value c that C can take P(C ≤ c) = P(Beta(k, n + 1 − k) ≤ c) exactly. Kolmogorov and Smirnov's
// distance over those values, with T calibrations, exceeds d with a chance of at most 2 exp(−2Td²)
// (Massart); d is chosen for 1e-6 over all tests of this file.
#include <map>

#include <gtest/gtest.h>

#include "fcp/conformal/quantile.h"
#include "fcp/methods/method.h"

#include "tests/methods/scores/heads.h"
#include "tests/methods/scores/label_heads.h"
#include "tests/nn/transformer.h"
#include "tests/reference/conformal_reference.h"

namespace fcp {
namespace {

constexpr size_t kCalibrations = 2000;
constexpr size_t kDrawn = 99;
constexpr int64_t kPopulation = 160;
constexpr double kTests = 29;  // at most, of this file

// y = g(v) + noise that grows with |v_0|; g is the middle of two quantiles.
HeadRows noisy_population(Random& random, const Network& head) {
  HeadRows rows;
  rows.features = random_normal(random, {kPopulation, head.inputs()[0].shape[1]});
  torch::NoGradGuard no_gradients;
  const torch::Tensor spread = (rows.features.select(1, 0).abs() + 0.1).unsqueeze(1);
  const Tensors outputs = head.run({rows.features});
  const bool heads = is_head_output(head.outputs().back().name);
  const torch::Tensor prediction = heads ? outputs.front() : (outputs.front() + outputs.back()) / 2;
  rows.truth =
      (prediction + spread * random_normal(random, prediction.sizes().vec())).to(torch::kDouble);
  return rows;
}

// Labels from the network's own probabilities.
HeadRows labelled_population(Random& random, const Network& head) {
  torch::NoGradGuard no_gradients;
  HeadRows rows;
  rows.features = random_normal(random, {kPopulation, head.inputs()[0].shape[1]});
  rows.truth = drawn_labels(random, head.run({rows.features})[0]).to(torch::kDouble);
  return rows;
}

// The largest distance between the distribution of the intervals' coverage and the Beta law of rank
// `rank`, over the values that the coverage took.
double beta_distance(std::vector<double> coverage, size_t rank) {
  std::sort(coverage.begin(), coverage.end());
  double distance = 0;
  for (size_t i = 0; i < coverage.size(); ++i) {
    if (i + 1 < coverage.size() && coverage[i + 1] == coverage[i]) continue;
    const double share = static_cast<double>(i + 1) / static_cast<double>(coverage.size());
    distance = std::max(distance, std::abs(share - reference::beta_cdf(coverage[i], rank, kDrawn)));
  }
  return distance;
}

// Returns the radius that covers 1 − α of the population.
double expect_beta_coverage(const ScoreOptions& options, const std::shared_ptr<const Network>& head,
                            uint64_t seed) {
  Random random(seed);
  const std::unique_ptr<Score> score = make_score(options, head);
  const HeadRows rows =
      score->classes() > 0 ? labelled_population(random, *head) : noisy_population(random, *head);
  const std::vector<double> scores = score->score(rows.features, rows.truth);
  const Level level(0.1);
  std::map<double, double> coverage_of;  // of the radius, by the intervals themselves
  std::vector<double> coverage;
  for (size_t t = 0; t < kCalibrations; ++t) {
    std::vector<double> drawn(kDrawn);
    for (double& one : drawn) one = scores[random.below(scores.size())];
    const double radius = conformal_quantile(drawn, level);
    if (!coverage_of.contains(radius)) {
      const std::vector<bool> in = inside(score->region(rows.features, radius), rows.truth);
      coverage_of[radius] =
          static_cast<double>(std::count(in.begin(), in.end(), true)) / kPopulation;
    }
    coverage.push_back(coverage_of[radius]);
  }
  const double limit = std::sqrt(std::log(2e6 * kTests) / (2.0 * kCalibrations));
  const size_t rank = conformal_rank(level, kDrawn);
  EXPECT_LT(beta_distance(coverage, rank), limit);
  EXPECT_GT(beta_distance(coverage, rank - 1), limit) << "the test cannot tell neighbouring ranks";
  return conformal_quantile(scores, level);
}

std::shared_ptr<const Network> deep_head(uint64_t seed) {
  Random random(seed);
  Graph graph = make_mlp({3, 10, 10, 10, 1});
  for (auto& [name, tensor] : graph.initializers) {
    tensor = random_normal(random, tensor.shape()) * (name[0] == 'w' ? 0.5 : 0.1);
  }
  return network_of(graph);
}

double mean_width(const std::shared_ptr<const Network>& head, BoundMethod method,
                  const torch::Tensor& features) {
  const torch::Tensor radius = torch::full({features.size(0)}, 0.5);
  BoundOptions options;
  options.method = method;
  const Range range = make_bounds(head, options)->ranges({features, radius, Norm::kInf, {}})[0];
  return (range.upper - range.lower).mean().item<double>();
}

// Else the tests below would say little: the bounds measure the same ball very differently.
TEST(Coverage, BoundsOfTheHeadDiffer) {
  Random random(1);
  const auto head = deep_head(20);
  const HeadRows rows = noisy_population(random, *head);
  const double ibp = mean_width(head, BoundMethod::kIbp, rows.features);
  const double crown = mean_width(head, BoundMethod::kCrown, rows.features);
  torch::Tensor least, most;
  for (int i = 0; i < 200; ++i) {
    const torch::Tensor corner = random_normal(random, rows.features.sizes().vec()).sign() * 0.5;
    const torch::Tensor y = head->forward(rows.features + corner);
    least = i == 0 ? y : torch::minimum(least, y);
    most = i == 0 ? y : torch::maximum(most, y);
  }
  const double seen = (most - least).mean().item<double>();
  EXPECT_GT(ibp, 3 * crown);
  EXPECT_GT(crown, 1.3 * seen);
}

std::shared_ptr<const Network> two_outputs(uint64_t seed) {
  Random random(seed);
  Graph graph = wild_head(random, 2);
  add_linear_output(random, graph, kSpreadOutput, 2, "Exp");
  add_linear_output(random, graph, kCholeskyOutput, 4, "Exp");
  return network_of(graph);
}

TEST(Coverage, Ellipsoid) { expect_beta_coverage(EllipsoidOptions{}, two_outputs(28), 29); }

// Of each output alone, whatever the other one does; both at once are in less often.
TEST(Coverage, EachOutput) {
  Random random(30);
  const auto head = two_outputs(31);
  const HeadRows rows = noisy_population(random, *head);
  const auto score = make_score(ScoreOptions(SpreadOptions{}, {.targets = 2}), head);
  const std::vector<double> scores = score->score(rows.features, rows.truth);
  std::array<std::map<double, double>, 2> coverage_of;  // of the radius, by the intervals
  std::array<std::vector<double>, 2> coverage;
  double joint = 0;
  for (size_t t = 0; t < kCalibrations; ++t) {
    CalibrationScores drawn;
    drawn.sides = drawn.targets = 2;
    for (size_t i = 0; i < kDrawn; ++i) {
      const size_t row = random.below(scores.size() / 2);
      drawn.scores.insert(drawn.scores.end(), {scores[2 * row], scores[2 * row + 1]});
    }
    const torch::Tensor radii =
        make_calibration(CalibrationOptions{}, drawn)->radii({rows.features, {}, {}}, Level(0.1));
    for (int64_t k = 0; k < 2; ++k) {
      const double radius = radii[0][k].item<double>();
      auto& known = coverage_of[static_cast<size_t>(k)];
      if (!known.contains(radius)) {
        const Regions regions = score->region(rows.features, radii.contiguous());
        known[radius] = (regions.lower <= rows.truth)
                            .logical_and(rows.truth <= regions.upper)
                            .select(1, k)
                            .to(torch::kDouble)
                            .mean()
                            .item<double>();
      }
      coverage[static_cast<size_t>(k)].push_back(known[radius]);
    }
    size_t both = 0;
    for (size_t i = 0; i < scores.size(); i += 2) {
      both +=
          scores[i] <= radii[0][0].item<double>() && scores[i + 1] <= radii[0][1].item<double>();
    }
    joint += static_cast<double>(both) / kPopulation / kCalibrations;
  }
  const double limit = std::sqrt(std::log(2e6 * kTests) / (2.0 * kCalibrations));
  const size_t rank = conformal_rank(Level(0.1), kDrawn);
  for (const std::vector<double>& one : coverage) {
    EXPECT_LT(beta_distance(one, rank), limit);
    EXPECT_GT(beta_distance(one, rank - 1), limit) << "the test cannot tell neighbouring ranks";
  }
  EXPECT_LT(joint, 0.87);
}

TEST(Coverage, NestedByIbp) {
  for (const double floor : {0.0, 1.0}) {
    ScoreOptions options;
    options.set(field::floor, floor);
    options.set(field::slope, 2);
    expect_beta_coverage(options, deep_head(20), 21);
  }
}

// The feature is what enters the last block.
TEST(Coverage, NestedBeforeTheLastBlockOfATransformer) {
  for (const bool norm_first : {true, false}) {
    torch::manual_seed(26);
    const TransformerShape shape = {.tokens = 2,
                                    .width = 4,
                                    .heads = 2,
                                    .hidden = 6,
                                    .norm_first = norm_first,
                                    .flat_input = true};
    expect_beta_coverage({}, network_of(make_transformer(shape)), 27);
  }
}

TEST(Coverage, NestedByCrown) {
  ScoreOptions options;
  options.find(field::bound)->method = BoundMethod::kCrownIbp;
  expect_beta_coverage(options, deep_head(20), 22);
}

TEST(Coverage, Linearized) {
  for (const double floor : {0.0, 0.5}) {
    ScoreOptions options = LinearizedOptions{};
    options.set(field::floor, floor);
    options.set(field::slope, 2);
    expect_beta_coverage(options, deep_head(20), 23);
  }
}

TEST(Coverage, Residual) {
  ScoreOptions options = ResidualOptions{};
  expect_beta_coverage(options, deep_head(20), 24);
}

// Heads on the features with random weights: coverage must not depend on what they learned.
TEST(Coverage, HeadsOnFeatures) {
  Random random(40);
  Graph graph = make_mlp({3, 10, 10, 10, 1});
  for (auto& [name, tensor] : graph.initializers) {
    tensor = random_normal(random, tensor.shape()) * (name[0] == 'w' ? 0.5 : 0.1);
  }
  add_linear_output(random, graph, kSpreadOutput, 1, "Softplus");
  add_linear_output(random, graph, kQuantilesOutput, 9, "");
  add_linear_output(random, graph, kRectifierOutput, 1, "Softplus");
  std::vector<ScoreOptions> all;
  for (const char* rectifier : {"", kRectifierOutput}) {
    for (const char* name : {"spread", "quantiles", "density"}) {
      all.push_back(ScoreOptions(name, {.rectifier = rectifier}));
    }
  }
  all.push_back(DensityOptions{.level_set = true});
  all.push_back(ScoreOptions(ResidualOptions{}, {.rectifier = kRectifierOutput}));
  uint64_t seed = 41;
  for (const ScoreOptions& options : all) {
    expect_beta_coverage(options, network_of(graph_for_score(graph, options)), seed++);
  }
}

std::shared_ptr<const Network> label_head(const std::vector<int64_t>& widths) {
  Random random(30);
  Graph graph = make_mlp(widths);
  for (auto& [name, tensor] : graph.initializers) {
    tensor = random_normal(random, tensor.shape());
  }
  return network_of(graph);
}

TEST(Coverage, Labels) {
  expect_beta_coverage(LacOptions{}, label_head({3, 5}), 31);
  expect_beta_coverage(ApsOptions{}, label_head({3, 5}), 32);
  expect_beta_coverage(RapsOptions{.rank_weight = 0.1, .rank_free = 1}, label_head({3, 5}), 33);
  expect_beta_coverage(SapsOptions{.rank_weight = 0.1}, label_head({3, 5}), 36);
}

TEST(Coverage, FeatureMargin) {
  const ScoreOptions options = FeatureMarginOptions{.rank_weight = 0.2};
  expect_beta_coverage(options, label_head({3, 5}), 34);
  expect_beta_coverage(options, label_head({3, 6, 5}), 35);
}

// The quantiles of the deep head: its output less, and plus, a number that makes the band too
// narrow (the radius is positive) or too wide (it is negative).
std::shared_ptr<const Network> quantile_head(float distance) {
  Graph graph = make_mlp({3, 10, 10, 10, 1});
  Random random(20);
  for (auto& [name, tensor] : graph.initializers) {
    tensor = random_normal(random, tensor.shape()) * (name[0] == 'w' ? 0.5 : 0.1);
  }
  const torch::Tensor bias = graph.initializers["b4"];
  graph.initializers["b4"] = bias - distance;
  add_high_output(graph, graph.initializers["w4"], bias + distance);
  return network_of(graph);
}

TEST(Coverage, Cqr) {
  ScoreOptions options = CqrOptions{};
  expect_beta_coverage(options, quantile_head(1), 25);
}

TEST(Coverage, FeatureCqrWithPositiveAndNegativeRadii) {
  ScoreOptions options = FeatureCqrOptions{};
  EXPECT_GT(expect_beta_coverage(options, quantile_head(0.2f), 26), 0);
  EXPECT_LT(expect_beta_coverage(options, quantile_head(6), 27), 0);
}

}  // namespace
}  // namespace fcp
