// The law y ∈ region(v, r) ⟺ score(v, y) ≤ r for every score that promises it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/methods/method.h"

#include "tests/methods/scores/heads.h"

namespace fcp {
namespace {

constexpr std::array kNorms = {Norm::kInf, Norm::kTwo, Norm::kOne};

// More heads in law_slow_test.cc.
TEST(Law, NestedByIbp) { EXPECT_GT(expect_nested_law(BoundMethod::kIbp, 60, 10, 1), 25000); }

TEST(Law, NestedByCrownIbp) { EXPECT_GT(expect_nested_law(BoundMethod::kCrownIbp, 5, 2, 2), 700); }

TEST(Law, NestedByCrown) { EXPECT_GT(expect_nested_law(BoundMethod::kCrown, 3, 2, 2), 400); }

TEST(Law, NestedByAlphaCrown) {
  EXPECT_GT(expect_nested_law(BoundMethod::kAlphaCrown, 1, 1, 4), 80);
}

// Where CROWN's band of a larger radius leaves something out, the law must not.
TEST(Law, NestedWithBandsThatShrink) {
  Random random(5);
  int shrinking = 0;
  for (int i = 0; i < 60 && shrinking < 1; ++i) {
    const auto head = network_of(wild_head(random, 1));
    const HeadRows made = wild_rows(random, *head, 1);
    ScoreOptions options;
    options.find(field::bound)->method = BoundMethod::kCrownIbp;
    options.find(field::bound)->outward = false;
    const std::unique_ptr<HeadBounds> bounds = make_bounds(head, *options.find(field::bound));
    std::vector<double> radii;
    for (double radius = 0.01; radius < 20; radius *= 1.05) radii.push_back(radius);
    const auto many = static_cast<int64_t>(radii.size());
    const Range range = bounds->ranges(
        {made.features.expand({many, -1}), torch::tensor(radii, torch::kFloat), Norm::kInf, {}})[0];
    const torch::Tensor upper = range.upper.to(torch::kDouble).flatten();
    const torch::Tensor drop = upper.slice(0, 0, many - 1) - upper.slice(0, 1);  // > 0: shrinks
    const int64_t at = drop.argmax().item<int64_t>();
    const double margin = 1e-4 * upper[at].abs().item<double>();
    if (drop[at].item<double>() <= margin) continue;
    ++shrinking;
    // Truths between the two ends, where the radius at which y enters is not the only question.
    HeadRows between;
    const int64_t rows = 9;
    between.features = made.features.expand({rows, -1}).contiguous();
    between.truth = (torch::linspace(-0.3, 1.3, rows, torch::kDouble) * drop[at] + upper[at + 1])
                        .reshape({rows, 1});
    const std::unique_ptr<Score> score = make_score(options, head);
    const std::vector<double> scores = score->score(between.features, between.truth);
    std::vector<double> tried = exact_radii(random, scores, 3);
    tried.push_back(radii[static_cast<size_t>(at)]);
    tried.push_back(radii[static_cast<size_t>(at + 1)]);
    expect_law(*score, between, scores, tried);
  }
  EXPECT_EQ(shrinking, 1);
}

// Radii around the scores, to the last bit.
std::vector<double> closest_radii(Random& random, const std::vector<double>& scores) {
  std::vector<double> radii = {-kForever, -1, 0, kForever, std::pow(10, 6 * random.uniform() - 3)};
  for (const double score : scores) {
    radii.push_back(score);
    radii.push_back(std::nextafter(score, -kForever));
  }
  return radii;
}

TEST(Law, Residual) {
  Random random(6);
  int pairs = 0;
  for (int i = 0; i < 200; ++i) {
    const auto head = network_of(wild_head(random, 1 + i % 3));
    const HeadRows made = wild_rows(random, *head, 20);
    ScoreOptions options = ResidualOptions{};
    const std::unique_ptr<Score> score = make_score(options, head);
    const std::vector<double> scores = score->score(made.features, made.truth);
    pairs += expect_law(*score, made, scores, closest_radii(random, scores));
  }
  EXPECT_GT(pairs, 150000);
}

TEST(Law, NormalisedResidual) {
  Random random(7);
  int pairs = 0;
  for (int i = 0; i < 200; ++i) {
    // A second output: the exponential of a linear function of the feature.
    Graph graph = wild_head(random, 1 + i % 3);
    const int64_t width = graph.inputs[0].shape[1];
    graph.initializers["spread_w"] = random_normal(random, {i % 2 == 0 ? 1 : 1 + i % 3, width});
    graph.nodes.push_back(
        make_node("Gemm", {"x", "spread_w"}, {"log_spread"}, {{"transB", int64_t{1}}}));
    graph.nodes.push_back(make_node("Exp", {"log_spread"}, {"spread"}));
    graph.outputs.push_back(make_info("spread", {kDynamic, i % 2 == 0 ? 1 : 1 + i % 3}));
    const auto head = network_of(graph);
    HeadRows made = wild_rows(random, *head, 20);
    made.features = made.features.clamp(-3, 3);
    const ScoreOptions options(ResidualOptions{.normalize = "spread"}, {.output = "y"});
    const std::unique_ptr<Score> score = make_score(options, head);
    const std::vector<double> scores = score->score(made.features, made.truth);
    pairs += expect_law(*score, made, scores, closest_radii(random, scores));
  }
  EXPECT_GT(pairs, 150000);
}

TEST(Law, Linearized) {
  Random random(8);
  int pairs = 0;
  for (int i = 0; i < 100; ++i) {
    const auto head = network_of(wild_head(random, 1 + i % 3));
    const HeadRows made = wild_rows(random, *head, 20);
    ScoreOptions options = LinearizedOptions{};
    options.set(field::norm, kNorms[static_cast<size_t>(i % 3)]);
    options.set(field::floor, i % 2);
    options.set(field::slope, i % 2 * 0.5);
    const std::unique_ptr<Score> score = make_score(options, head);
    const std::vector<double> scores = score->score(made.features, made.truth);
    pairs += expect_law(*score, made, scores, closest_radii(random, scores));
  }
  EXPECT_GT(pairs, 80000);
}

// Scores over heads on features: exact to the last bit, whatever the heads learned.
int expect_feature_head_law(ScoreOptions options, int heads, uint64_t seed) {
  Random random(seed);
  int pairs = 0;
  for (int i = 0; i < heads && !testing::Test::HasFailure(); ++i) {
    const int64_t outputs = 1 + i % 3;
    const Graph graph =
        wild_feature_heads(random, outputs, 2 + static_cast<int64_t>(random.below(12)));
    const HeadRows made = feature_head_rows(random, *network_of(graph), 20);
    if (options.value(field::level_set)) {
      options.find(field::units)->clear();
      for (int64_t k = 0; k < outputs; ++k) {
        options.find(field::units)->push_back(std::exp(random.normal()));
      }
    }
    const double tail = 0.01 + 0.4 * random.uniform();
    if (auto* quantiles = options.as<QuantilesOptions>()) quantiles->tail = tail;
    const auto score = make_score(options, network_of(graph_for_score(graph, options)));
    const std::vector<double> scores = score->score(made.features, made.truth);
    pairs += expect_law(*score, made, scores, closest_radii(random, scores));
  }
  return pairs;
}

TEST(Law, Spread) { EXPECT_GT(expect_feature_head_law(SpreadOptions{}, 100, 41), 80000); }

TEST(Law, Quantiles) { EXPECT_GT(expect_feature_head_law(QuantilesOptions{}, 100, 42), 80000); }

TEST(Law, Density) { EXPECT_GT(expect_feature_head_law(DensityOptions{}, 100, 43), 80000); }

// Truths on the surface of an ellipsoid as well, where rounding decides.
TEST(Law, Ellipsoid) {
  Random random(50);
  int pairs = 0;
  for (int i = 0; i < 100 && !testing::Test::HasFailure(); ++i) {
    const int64_t outputs = 1 + i % 4;
    Graph graph = wild_head(random, outputs);
    add_linear_output(random, graph, kCholeskyOutput, outputs * outputs, i % 2 == 0 ? "Exp" : "");
    const auto head = network_of(graph);
    HeadRows made = wild_rows(random, *head, 20);
    made.features = made.features.clamp(-3, 3);
    const auto score = make_score(EllipsoidOptions{}, head);
    const Regions unit = score->region(made.features, 1.0);
    for (int64_t row = 0; row < 20; row += 2) {
      torch::Tensor direction = random_normal(random, {outputs}).to(torch::kDouble);
      direction = direction / direction.norm() * (row % 4 == 0 ? 1.0 : random.uniform());
      made.truth[row] = unit.prediction[row] + unit.factor[row].matmul(direction);
    }
    made.truth = made.truth.to(torch::kFloat).to(torch::kDouble);
    const std::vector<double> scores = score->score(made.features, made.truth);
    pairs += expect_law(*score, made, scores, closest_radii(random, scores));
  }
  EXPECT_GT(pairs, 80000);
}

TEST(Law, DensityLevelSet) {
  EXPECT_GT(expect_feature_head_law(DensityOptions{.level_set = true}, 100, 44), 80000);
}

TEST(Law, Rectified) {
  for (const char* name : {"spread", "quantiles", "density"}) {
    const ScoreOptions options(name, {.rectifier = kRectifierOutput});
    EXPECT_GT(expect_feature_head_law(options, 50, 45), 40000) << name;
  }
}

// As the scores inside are: residual and nested are divided, cqr is lowered, side by side.
TEST(Law, RectifiedOfOtherScores) {
  Random random(46);
  int pairs = 0;
  for (int i = 0; i < 40; ++i) {
    Graph graph = wild_quantile_head(random, 1 + i % 2);
    add_linear_output(random, graph, kRectifierOutput, 1, i % 2 == 0 ? "Exp" : "Softplus");
    for (const char* name : {"residual", "nested", "cqr"}) {
      ScoreOptions options(name, {.rectifier = kRectifierOutput});
      const bool quantiles = options.as<CqrOptions>() != nullptr;
      if (quantiles) options.set(field::asymmetric, i % 4 < 2);
      if (!quantiles) graph.outputs = {graph.outputs[0], graph.outputs.back()};
      Graph whole = graph;
      if (quantiles)
        whole.outputs.insert(whole.outputs.begin() + 1, make_info("high", {kDynamic, 1 + i % 2}));
      const auto head = network_of(whole);
      const HeadRows made = wild_rows(random, *head, 12);
      const auto score = make_score(options, head);
      const std::vector<double> scores = score->score(made.features, made.truth);
      pairs += quantiles ? expect_side_law(*score, made, scores, random, 10)
                         : expect_law(*score, made, scores, exact_radii(random, scores, 4));
    }
  }
  EXPECT_GT(pairs, 10000);
}

// Truths and answers at which rounding shows: tiny beside large ones, on an end of the region or a
// number beside it, denormal, huge. `from` of the wild rows stay as they are.
HeadRows adversarial_rows(Random& random, const Score& score, HeadRows made, int64_t from) {
  const double radius = std::pow(10, 6 * random.uniform() - 3);
  const Regions regions = score.region(made.features, radius);
  for (int64_t i = from; i < made.truth.size(0); ++i) {
    for (int64_t k = 0; k < made.truth.size(1); ++k) {
      const double size = std::pow(10, -45 * random.uniform()) * (random.below(2) == 0 ? 1 : -1);
      const double center = regions.prediction[i][k].item<double>();
      const double ends[] = {regions.lower[i][k].item<double>(),
                             regions.upper[i][k].item<double>()};
      const double end = std::isfinite(ends[i % 2]) ? ends[i % 2] : center;
      const double truths[] = {size,
                               -center * std::abs(size),
                               end,
                               std::nextafter(end, size > 0 ? kForever : -kForever),
                               static_cast<double>(static_cast<float>(end)),
                               1e38 * size,
                               std::numeric_limits<double>::denorm_min() * (size > 0 ? 3 : -3),
                               0.0};
      made.truth[i][k] = truths[random.below(std::size(truths))];
    }
  }
  return made;
}

TEST(Law, AdversarialTruths) {
  std::vector<ScoreOptions> all = {
      ResidualOptions{},
      ScoreOptions(ResidualOptions{.normalize = kSpreadOutput}, {.output = "y"}),
      LinearizedOptions{},
      LinearizedOptions{.norm = Norm::kTwo, .floor = 1, .slope = 0.5},
      ScoreOptions(CqrOptions{.low = "y", .high = "high"}, {.output = "y"}),
      ScoreOptions(CqrOptions{.low = "y", .high = "high", .asymmetric = true}, {.output = "y"}),
      ScoreOptions(FeatureCqrOptions{.low = "y", .high = "high"}, {.output = "y"}),
      SpreadOptions{},
      QuantilesOptions{},
      DensityOptions{},
      DensityOptions{.level_set = true},
      NestedOptions{}};
  for (ScoreOptions options : std::vector<ScoreOptions>(all)) {
    if (options.as<ResidualOptions>() || options.as<SpreadOptions>()) {
      options.rectifier = kRectifierOutput;
    }
    if (!options.rectifier.empty()) all.push_back(options);
  }
  Random random(48);
  int pairs = 0;
  for (int i = 0; i < 12 && !testing::Test::HasFailure(); ++i) {
    Graph graph = wild_quantile_head(random, 1 + i % 3);
    const double scale = std::array{1.0, 1e-12, 1e8, 1e-36}[static_cast<size_t>(i / 3 % 4)];
    for (const char* name : {"w_high", "b_high"})
      graph.initializers[name] = graph.initializers[name].tensor() * scale;
    const Node& last = graph.nodes[graph.nodes.size() - 2];  // that of y
    for (size_t k : {1, 2})
      graph.initializers[last.inputs[k]] = graph.initializers[last.inputs[k]].tensor() * scale;
    add_linear_output(random, graph, kSpreadOutput, 1 + i % 3, "Exp");
    add_linear_output(random, graph, kQuantilesOutput, 5 * (1 + i % 3), "");
    add_linear_output(random, graph, kRectifierOutput, 1, "Softplus");
    for (ScoreOptions options : all) {
      if (options.output.empty()) options.output = "y";
      if (options.value(field::level_set)) {
        options.find(field::units)->assign(static_cast<size_t>(1 + i % 3), 0.3);
      }
      const auto head = network_of(graph_for_score(graph, options));
      const auto score = make_score(options, head);
      HeadRows rows = wild_rows(random, *head, 12);
      rows.features = rows.features.clamp(-3, 3);
      rows = adversarial_rows(random, *score, rows, 2);
      const std::vector<double> scores = score->score(rows.features, rows.truth);
      if (score->sides() == 2) {
        pairs += expect_side_law(*score, rows, scores, random, 10);
        continue;
      }
      std::vector<double> radii = closest_radii(random, scores);
      radii.insert(radii.end(), {1e-320, 1e-40, 1e30, 1e300});
      pairs += expect_law(*score, rows, scores, radii);
      // As one column of float32 numbers, which has loops of its own.
      rows.truth = rows.truth.to(torch::kFloat);
      const std::vector<double> single = score->score(rows.features, rows.truth);
      rows.truth = rows.truth.to(torch::kDouble);
      EXPECT_EQ(single, score->score(rows.features, rows.truth)) << options.name();
      pairs += expect_law(*score, rows, single, closest_radii(random, single));
    }
  }
  EXPECT_GT(pairs, 40000);
}

// |y − 2| is 2 for all these truths as doubles, and [2 − 2, 2 + 2] holds none below 0.
TEST(Law, TinyTruthsBesideALargeAnswerAreCovered) {
  const auto head = network_of(linear_head(torch::zeros({1, 1}), torch::full({1}, 2.0f)));
  const std::unique_ptr<Score> score = make_score(ResidualOptions{}, head);
  Random random(49);
  for (const bool both : {false, true}) {
    const auto draw = [&](int64_t rows) {
      HeadRows made{torch::zeros({rows, 1}), random_normal(random, {rows, 1}) * 1e-20};
      if (!both) made.truth = -made.truth.abs();
      return made;
    };
    const HeadRows seen = draw(99), fresh = draw(1000);
    std::vector<double> scores = score->score(seen.features, seen.truth);
    std::sort(scores.begin(), scores.end());
    // The 90th of 99. Where either sign is as likely, all 90 are positive with a chance of 1e-15.
    const Regions regions = score->region(fresh.features, scores[89]);
    EXPECT_TRUE(in_regions(regions, fresh.truth).all().item<bool>()) << both;
  }
}

TEST(Law, NotANumberStaysNotANumberInHeads) {
  Random random(47);
  const Graph graph = wild_feature_heads(random, 2, 9);
  const std::vector<ScoreOptions> all = {
      SpreadOptions{}, QuantilesOptions{}, DensityOptions{}, DensityOptions{.level_set = true},
      ScoreOptions(SpreadOptions{}, {.rectifier = kRectifierOutput})};
  for (const ScoreOptions& options : all) {
    const std::string name = options.name();
    const auto head = network_of(graph_for_score(graph, options));
    HeadRows made = wild_rows(random, *head, 4);
    made.truth[1][1] = std::nan("");
    made.features[3][0] = std::nanf("");
    const auto score = make_score(options, head);
    const std::vector<double> scores = score->score(made.features, made.truth);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(std::isnan(scores[i]), i % 2 == 1) << name << i;
    const Regions whole = score->region(made.features, kForever);
    EXPECT_TRUE((whole.lower[0] == -kForever).all().item<bool>()) << name;
    EXPECT_TRUE((whole.upper[0] == kForever).all().item<bool>()) << name;
    const Regions none = score->region(made.features, -kForever);
    EXPECT_FALSE(in_regions(none, made.truth).any().item<bool>()) << name;
  }
}

// A ball of another radius in each direction.
TEST(Law, NestedWithScales) {
  Random random(18);
  int pairs = 0;
  for (int i = 0; i < 20; ++i) {
    const auto head = network_of(wild_head(random, 1 + i % 3));
    const HeadRows made = wild_rows(random, *head, 10);
    ScoreOptions options;
    options.set(field::norm, kNorms[static_cast<size_t>(i % 3)]);
    for (int64_t d = 0; d < made.features.size(1); ++d) {
      options.find(field::scale)->push_back(std::pow(10, 2 * random.uniform() - 1));
    }
    const std::unique_ptr<Score> score = make_score(options, head);
    const std::vector<double> scores = score->score(made.features, made.truth);
    pairs += expect_law(*score, made, scores, exact_radii(random, scores, 4));
    ScoreOptions wrong = options;
    wrong.find(field::scale)->push_back(1);
    EXPECT_THROW(make_score(wrong, head)->score(made.features, made.truth), Error);
  }
  EXPECT_GT(pairs, 1500);
}

// A radius per side, in double precision.
TEST(Law, Cqr) {
  Random random(13);
  int pairs = 0;
  for (int i = 0; i < 120; ++i) {
    const auto head = network_of(wild_quantile_head(random, 1 + i % 3));
    const HeadRows made = wild_quantile_rows(random, *head, 20);
    ScoreOptions options = CqrOptions{};
    options.set(field::asymmetric, i % 2 == 1);
    const std::unique_ptr<Score> score = make_score(options, head);
    const std::vector<double> scores = score->score(made.features, made.truth);
    pairs += expect_side_law(*score, made, scores, random, 20);
  }
  EXPECT_GT(pairs, 40000);
}

TEST(Law, FeatureCqrByIbp) {
  EXPECT_GT(expect_feature_cqr_law(BoundMethod::kIbp, 60, 12, 14), 15000);
}

TEST(Law, FeatureCqrByCrownIbp) {
  EXPECT_GT(expect_feature_cqr_law(BoundMethod::kCrownIbp, 2, 2, 16), 80);
}

TEST(Law, FeatureCqrByCrown) {
  EXPECT_GT(expect_feature_cqr_law(BoundMethod::kCrown, 2, 3, 16), 100);
}

// A radius below all there are leaves nothing, on one side as on both.
TEST(Law, CqrWithoutAnyRadius) {
  Random random(17);
  const auto head = network_of(wild_quantile_head(random, 2));
  const HeadRows made = wild_quantile_rows(random, *head, 6);
  for (const char* name : {"cqr", "feature_cqr"}) {
    for (const BoundMethod method : {BoundMethod::kIbp, BoundMethod::kCrownIbp}) {
      ScoreOptions options(name);
      options.set(field::asymmetric, true);
      if (BoundOptions* bound = options.find(field::bound)) bound->method = method;
      const std::unique_ptr<Score> score = make_score(options, head);
      for (const int64_t side : {0, 1}) {
        torch::Tensor radius = torch::full({6, 2}, kForever, torch::kDouble);
        radius.select(1, side).fill_(-kForever);
        const Regions none = score->region(made.features, radius);
        EXPECT_FALSE(
            (none.lower <= made.truth).logical_and(made.truth <= none.upper).any().item<bool>())
            << name << side;
      }
      const Regions all = score->region(made.features, kForever);
      EXPECT_TRUE((all.lower == -kForever).all().item<bool>()) << name;
      EXPECT_TRUE((all.upper == kForever).all().item<bool>()) << name;
    }
  }
}

// tanh keeps the output within ‖w‖₁ of b whatever the feature. ibp sees that to the last digit;
// CROWN's lines leave the reach for some radii, but not by far.
TEST(Law, NothingReachesBeyondABoundedHead) {
  Random random(9);
  for (const BoundMethod method :
       {BoundMethod::kIbp, BoundMethod::kCrownIbp, BoundMethod::kAlphaCrown}) {
    Graph graph = make_mlp({3, 4, 1});
    for (auto& [name, tensor] : graph.initializers) {
      tensor = random_normal(random, tensor.shape());
    }
    graph.nodes[1].op = "Tanh";
    const double reach = graph.initializers["w2"].tensor().abs().sum().item<double>() *
                         (method == BoundMethod::kIbp ? 1 : 20);
    const double center = graph.initializers["b2"].number(0);
    const auto head = network_of(graph);
    ScoreOptions options;
    options.find(field::bound)->method = method;
    options.find(field::bound)->iterations = 1;
    const std::unique_ptr<Score> score = make_score(options, head);
    HeadRows made = wild_rows(random, *head, 4);
    made.truth =
        torch::tensor({1.01, -1.01, 50.0, -1e9}, torch::kDouble).reshape({4, 1}) * reach + center;
    const std::vector<double> scores = score->score(made.features, made.truth);
    EXPECT_THAT(scores, testing::Each(kForever)) << bound_name(method);
    expect_law(*score, made, scores, {0, 1e6, std::numeric_limits<float>::max(), 1e200, kForever});
    options.set(field::floor, 1);
    options.set(field::slope, 0.5);
    const auto widened = make_score(options, head)->score(made.features, made.truth);
    EXPECT_THAT(widened, testing::Each(testing::Lt(kForever))) << bound_name(method);
  }
}

// A head whose output does not depend on the feature at all.
TEST(Law, NothingReachesBeyondADeadHead) {
  Random random(12);
  Graph graph = make_mlp({3, 4, 1});
  graph.initializers["w2"] = torch::zeros({1, 4});
  const auto head = network_of(graph);
  HeadRows made = wild_rows(random, *head, 3);
  made.truth = torch::tensor({1.0, -1e-3, 0.0}, torch::kDouble).reshape({3, 1}) +
               head->forward(made.features);
  for (const char* name : {"nested", "linearized"}) {
    ScoreOptions options(name);
    const std::unique_ptr<Score> score = make_score(options, head);
    const std::vector<double> scores = score->score(made.features, made.truth);
    // nested: up to where the radius itself overflows float32 inside the head.
    const auto never = testing::Ge(name == std::string("nested") ? 1e37 : kForever);
    EXPECT_THAT(scores, testing::ElementsAre(never, never, 0)) << name;
    expect_law(*score, made, scores, {-1, 0, 1, 1e6, 1e30, std::numeric_limits<float>::max()});
  }
}

TEST(Law, InfiniteAndNegativeRadii) {
  Random random(10);
  const auto head = network_of(wild_head(random, 2));
  const HeadRows made = wild_rows(random, *head, 5);
  for (const char* name : {"nested", "residual", "linearized"}) {
    ScoreOptions options(name);
    const std::unique_ptr<Score> score = make_score(options, head);
    const Regions all = score->region(made.features, kForever);
    EXPECT_TRUE((all.lower == -kForever).all().item<bool>()) << name;
    EXPECT_TRUE((all.upper == kForever).all().item<bool>()) << name;
    for (const double radius : {-1e-300, -1.0, -kForever}) {
      const Regions none = score->region(made.features, radius);
      EXPECT_FALSE((none.lower <= none.upper).any().item<bool>()) << name << ' ' << radius;
      EXPECT_EQ(none.prediction.sizes(), none.lower.sizes());
    }
  }
}

TEST(Law, NotANumberStaysNotANumberInQuantiles) {
  Random random(18);
  const auto head = network_of(wild_quantile_head(random, 2));
  for (const char* name : {"cqr", "feature_cqr"}) {
    for (const bool asymmetric : {false, true}) {
      HeadRows made = wild_quantile_rows(random, *head, 4);
      made.truth[1][1] = std::nan("");
      made.features[3][0] = std::nanf("");
      ScoreOptions options(name);
      options.set(field::asymmetric, asymmetric);
      const auto score = make_score(options, head);
      const std::vector<double> scores = score->score(made.features, made.truth);
      const auto sides = static_cast<size_t>(score->sides());
      ASSERT_EQ(scores.size(), 4 * sides);
      for (size_t i = 0; i < scores.size(); ++i) {
        EXPECT_EQ(std::isnan(scores[i]), i / sides % 2 == 1) << name << ' ' << i;
      }
    }
  }
}

TEST(Law, NotANumberStaysNotANumber) {
  Random random(11);
  const auto head = network_of(wild_head(random, 2));
  for (const char* name : {"nested", "residual", "linearized"}) {
    HeadRows made = wild_rows(random, *head, 4);
    made.truth[1][1] = std::nan("");
    made.features[3][0] = std::nanf("");
    ScoreOptions options(name);
    const std::vector<double> scores = make_score(options, head)->score(made.features, made.truth);
    EXPECT_FALSE(std::isnan(scores[0])) << name;
    EXPECT_TRUE(std::isnan(scores[1])) << name;
    EXPECT_FALSE(std::isnan(scores[2])) << name;
    EXPECT_TRUE(std::isnan(scores[3])) << name;
  }
}

}  // namespace
}  // namespace fcp
