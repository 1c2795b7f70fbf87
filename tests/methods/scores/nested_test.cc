// nested against closed forms and against scans that are slow and obviously right.
#include "fcp/methods/scores/nested.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

#include "tests/methods/scores/heads.h"

namespace fcp {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

const std::vector<BoundMethod> kMethods = {BoundMethod::kIbp, BoundMethod::kCrownIbp,
                                           BoundMethod::kCrown, BoundMethod::kAlphaCrown};

std::vector<double> nested_scores(const NestedOptions& options,
                                  const std::shared_ptr<const Network>& head,
                                  const HeadRows& rows) {
  return make_score(options, SharedOptions{}, head)->score(rows.features, rows.truth);
}

// All bounds of one linear layer are exact: the band is μ ± (r‖w‖* + c r s / 2).
TEST(Nested, LinearHeadInClosedForm) {
  Random random(1);
  const torch::Tensor weight = random_normal(random, {2, 5});
  const auto head = network_of(linear_head(weight, random_normal(random, {2})));
  HeadRows rows;
  rows.features = random_normal(random, {30, 5});
  const torch::Tensor prediction = head->forward(rows.features).to(torch::kDouble);
  rows.truth = prediction + 5 * random_normal(random, {30, 2}).to(torch::kDouble);
  for (const BoundMethod method : kMethods) {
    for (const Norm norm : {Norm::kInf, Norm::kTwo, Norm::kOne}) {
      for (const double floor : {0.0, 0.5}) {
        NestedOptions options;
        options.bound.method = method;
        options.bound.outward = false;
        options.norm = norm;
        options.floor = floor;
        options.slope = 1.5;
        const torch::Tensor w = weight.to(torch::kDouble).abs();
        const torch::Tensor dual = norm == Norm::kInf   ? w.sum(1)
                                   : norm == Norm::kTwo ? w.square().sum(1).sqrt()
                                                        : w.amax(1);
        const torch::Tensor expected =
            ((rows.truth - prediction).abs() / (dual + floor * 0.75)).amax(1);
        const std::vector<double> scores = nested_scores(options, head, rows);
        for (size_t i = 0; i < scores.size(); ++i) {
          const double exact = expected[static_cast<int64_t>(i)].item<double>();
          EXPECT_NEAR(scores[i], exact, 1e-5 * (1 + exact)) << bound_name(method) << ' ' << i;
        }
        const Regions regions =
            make_score(options, SharedOptions{}, head)->region(rows.features, 0.7);
        const torch::Tensor half = 0.7 * (dual + floor * 0.75).unsqueeze(0);
        EXPECT_TRUE(torch::allclose(regions.lower, prediction - half, 1e-5, 1e-5));
        EXPECT_TRUE(torch::allclose(regions.upper, prediction + half, 1e-5, 1e-5));
        EXPECT_TRUE(torch::equal(regions.prediction, prediction));
      }
    }
  }
}

// The radius at which y enters, by trying 4000 radii one after the other.
TEST(Nested, EqualsAScanOverRadii) {
  Random random(2);
  for (int i = 0; i < 10; ++i) {
    Graph graph = make_mlp({4, 6, 6, 1 + i % 2});
    for (auto& [name, tensor] : graph.initializers) {
      tensor = random_normal(random, tensor.shape());
    }
    const auto head = network_of(graph);
    HeadRows rows;
    rows.features = random_normal(random, {1, 4});
    rows.truth = head->forward(rows.features).to(torch::kDouble) +
                 8 * random_normal(random, {1, 1 + i % 2}).to(torch::kDouble);
    NestedOptions options;
    const double found = nested_scores(options, head, rows)[0];
    const int64_t many = 4000;
    const torch::Tensor radii = torch::linspace(0, 20, many);
    const Range range = make_bounds(head, options.bound)
                            ->ranges({rows.features.expand({many, -1}), radii, Norm::kInf, {}})[0];
    const torch::Tensor in =
        (range.lower <= rows.truth).logical_and(rows.truth <= range.upper).all(1);
    ASSERT_TRUE(in[many - 1].item<bool>());
    const int64_t first = in.to(torch::kInt).argmax().item<int64_t>();
    EXPECT_LE(found, radii[first].item<double>());
    if (first > 0) {
      EXPECT_GT(found, radii[first - 1].item<double>());
    }
  }
}

// Multiplying features by 8 and dividing the first weights by 8 changes no product inside the head.
TEST(Nested, FollowsTheScaleOfFeatures) {
  Random random(3);
  for (const BoundMethod method : kMethods) {
    Graph graph = make_mlp({3, 5, 5, 2});
    for (auto& [name, tensor] : graph.initializers) {
      tensor = random_normal(random, tensor.shape());
    }
    const auto head = network_of(graph);
    HeadRows rows = wild_rows(random, *head, 12);
    graph.initializers["w1"] = graph.initializers["w1"].tensor() / 8;
    const auto scaled_head = network_of(graph);
    HeadRows scaled = rows;
    scaled.features = rows.features * 8;
    NestedOptions options;
    options.bound.method = method;
    options.bound.iterations = 3;
    const Ball ball{rows.features, torch::full({12}, 0.375), Norm::kInf, {}};
    const Ball scaled_ball{scaled.features, torch::full({12}, 3.0), Norm::kInf, {}};
    const Range band = make_bounds(head, options.bound)->ranges(ball)[0];
    const Range scaled_band = make_bounds(scaled_head, options.bound)->ranges(scaled_ball)[0];
    EXPECT_TRUE(torch::equal(band.lower, scaled_band.lower)) << bound_name(method);
    EXPECT_TRUE(torch::equal(band.upper, scaled_band.upper)) << bound_name(method);
    if (method != BoundMethod::kIbp) continue;  // the path of the search is part of the others
    const std::vector<double> scores = nested_scores(options, head, rows);
    const std::vector<double> scaled_scores = nested_scores(options, scaled_head, scaled);
    for (size_t i = 0; i < scores.size(); ++i) EXPECT_EQ(scaled_scores[i], 8 * scores[i]) << i;
  }
}

TEST(Nested, BatchesOfAnySizeGiveTheSameScores) {
  Random random(4);
  for (const BoundMethod method : {BoundMethod::kIbp, BoundMethod::kCrown}) {
    const auto head = network_of(wild_head(random, 2));
    const HeadRows rows = wild_rows(random, *head, 40);
    NestedOptions options;
    options.bound.method = method;
    const std::unique_ptr<Score> score = make_score(options, SharedOptions{}, head);
    const std::vector<double> whole = score->score(rows.features, rows.truth);
    for (const int64_t batch : {1, 3, 7}) {
      if (batch == 1 && method == BoundMethod::kCrown) continue;
      for (int64_t first = 0; first < 40; first += batch) {
        const int64_t count = std::min(batch, 40 - first);
        const std::vector<double> part =
            score->score(rows.features.narrow(0, first, count), rows.truth.narrow(0, first, count));
        for (int64_t i = 0; i < count; ++i) {
          const double expected = whole[static_cast<size_t>(first + i)];
          // A library may sum another order in another batch: float32 roundoff of the answer,
          // which near the prediction is all there is of a score.
          EXPECT_NEAR(part[static_cast<size_t>(i)], expected, 1e-5 * expected + 1e-5);
        }
      }
    }
  }
}

// The prediction is in every band, whatever rounding does, so the score of the one that the region
// reports is 0.
TEST(Nested, ThePredictionHasScoreZero) {
  Random random(5);
  for (int i = 0; i < 3; ++i) {
    const auto head = network_of(wild_head(random, 3));
    HeadRows rows = wild_rows(random, *head, 20);
    const torch::Tensor answer = head->forward(rows.features).to(torch::kDouble);
    for (const bool outward : {false, true}) {
      NestedOptions options;
      options.bound.outward = outward;
      options.bound.method = kMethods[static_cast<size_t>(i % 3)];
      rows.truth = make_score(options, head)->region(rows.features, 0.0).prediction;
      EXPECT_TRUE(
          torch::allclose(rows.truth, answer, 1e-5, 1e-5 * answer.abs().max().item<double>()));
      EXPECT_THAT(nested_scores(options, head, rows), testing::Each(0.0));
    }
  }
}

// A head Linear, ReLU, Linear has a fast path; the same head less 0 has not.
TEST(Nested, FastPathAgreesWithTheGeneral) {
  Random random(7);
  for (const int64_t outputs : {1, 4}) {
    torch::manual_seed(outputs);
    Graph graph = make_mlp({16, 40, outputs});
    const auto fast_head = network_of(graph);
    graph.outputs[0].name = "same";
    graph.initializers["zero"] = torch::zeros({1});
    graph.nodes.push_back(make_node("Sub", {"y", "zero"}, {"same"}));
    const auto general_head = network_of(graph);
    const HeadRows rows = wild_rows(random, *fast_head, 200);
    NestedOptions options;
    for (const Norm norm : {Norm::kInf, Norm::kTwo, Norm::kOne}) {
      options.norm = norm;
      options.scale = norm == Norm::kOne ? std::vector<double>(16, 0.5) : std::vector<double>();
      options.floor = options.slope = norm == Norm::kTwo ? 0.5 : 0;
      const std::vector<double> fast = nested_scores(options, fast_head, rows);
      const std::vector<double> general = nested_scores(options, general_head, rows);
      for (size_t i = 0; i < fast.size(); ++i) {
        // Beside a large answer a small radius is lost in the roundoff of the answer.
        EXPECT_NEAR(fast[i], general[i], 1e-5 * general[i] + 1e-5) << i;
      }
      for (const double radius : {-1.0, 0.0, 0.3, 50.0, kForever}) {
        const Regions found = make_score(options, fast_head)->region(rows.features, radius);
        const Regions expected = make_score(options, general_head)->region(rows.features, radius);
        EXPECT_TRUE(torch::allclose(found.lower, expected.lower, 1e-5, 1e-4));
        EXPECT_TRUE(torch::allclose(found.upper, expected.upper, 1e-5, 1e-4));
      }
    }
  }
}

TEST(Nested, TellsWhatIsWrong) {
  Random random(6);
  const auto head = network_of(wild_head(random, 2));
  HeadRows rows = wild_rows(random, *head, 4);
  rows.truth = rows.truth.narrow(1, 0, 1);
  EXPECT_THAT(
      [&] { nested_scores({}, head, rows); },
      ThrowsMessage<Error>(HasSubstr("the network answers 2 numbers where the target is one")));
  EXPECT_THAT([&] { make_score(ScoreOptions(NestedOptions{}, {.output = "z"}), head); },
              ThrowsMessage<Error>("the network has no output 'z', only 'y'"));
  EXPECT_THAT(
      [&] { ScoreOptions("nestled"); },
      ThrowsMessage<Error>(
          "there is no score 'nestled'; there are aps, cqr, density, ellipsoid, feature_cqr, "
          "feature_margin, feature_sampled, lac, linearized, nested, quantiles, raps, "
          "residual, saps, spread, surrogate"));
  const auto wide = network_of(make_mlp({2, 257}));
  rows.features = torch::zeros({1, 2});
  rows.truth = torch::zeros({1, 257});
  NestedOptions crown;
  crown.bound.method = BoundMethod::kCrown;
  EXPECT_THAT([&] { nested_scores(crown, wide, rows); },
              ThrowsMessage<Error>("this bound searches each of the 257 outputs by itself; use "
                                   "the bound ibp for more than 256"));
}

}  // namespace
}  // namespace fcp
