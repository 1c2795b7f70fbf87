#include "fcp/methods/scores/ellipsoid.h"

#include <cmath>
#include <numbers>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/methods/scores/score_table.h"

#include "tests/methods/scores/heads.h"

namespace fcp {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

// Answers these numbers whatever the feature is.
std::shared_ptr<const Network> constant_head(const torch::Tensor& mean,
                                             const torch::Tensor& factor) {
  Graph graph = linear_head(torch::zeros({mean.numel(), 1}), mean);
  graph.initializers["factor_w"] = torch::zeros({factor.numel(), 1});
  graph.initializers["factor_b"] = factor.flatten();
  graph.nodes.push_back(make_node("Gemm", {"x", "factor_w", "factor_b"}, {kCholeskyOutput},
                                  {{"transB", int64_t{1}}}));
  graph.outputs.push_back(make_info(kCholeskyOutput, {kDynamic, factor.numel()}));
  return network_of(graph);
}

const torch::Tensor& two_factor() {
  static const torch::Tensor kFactor = torch::tensor({{2.0F, 99.0F}, {1.0F, 1.0F}});
  return kFactor;  // the upper triangle is not read
}

TEST(Ellipsoid, MeasuresDistancesByItsFactor) {
  const auto score =
      make_score(EllipsoidOptions{}, constant_head(torch::tensor({10.0F, 0.0F}), two_factor()));
  // L (1, 1) and L (0, −3).
  const torch::Tensor truth = torch::tensor({{12.0, 2.0}, {10.0, -3.0}}, torch::kDouble);
  EXPECT_THAT(score->score(torch::zeros({2, 1}), truth),
              ElementsAre(DoubleEq(std::sqrt(2.0)), DoubleEq(3)));
}

TEST(Ellipsoid, ItsBoxAndVolumeAreInClosedForm) {
  const auto score =
      make_score(EllipsoidOptions{}, constant_head(torch::tensor({10.0F, 0.0F}), two_factor()));
  const Regions regions = score->region(torch::zeros({1, 1}), 3.0);
  EXPECT_NEAR(regions.lower[0][0].item<double>(), 4, 1e-9);
  EXPECT_NEAR(regions.upper[0][0].item<double>(), 16, 1e-9);
  EXPECT_NEAR(regions.upper[0][1].item<double>(), 3 * std::sqrt(2.0), 1e-9);
  // π r² det L to the power 1/2.
  EXPECT_NEAR(region_volumes(regions)[0].item<double>(), std::sqrt(std::numbers::pi * 9 * 2),
              1e-12);
  EXPECT_EQ(region_volumes(score->region(torch::zeros({1, 1}), -1.0))[0].item<double>(), 0);
  EXPECT_EQ(region_volumes(score->region(torch::zeros({1, 1}), kForever))[0].item<double>(),
            kForever);
}

// Against the definition: points of a box around it, by an inverse instead of substitution. Of n
// points a share p is in with a deviation of at most √(1/4n): 5 of them, twice, have a chance of
// 1e-6.
TEST(Ellipsoid, HoldsWhatTheInverseSays) {
  constexpr int64_t kPoints = 20000;
  Random random(1);
  for (const int64_t outputs : {2, 3, 5}) {
    const torch::Tensor factor = random_normal(random, {outputs, outputs}).tril() +
                                 torch::diag(torch::full({outputs}, 3.0F));
    const auto score =
        make_score(EllipsoidOptions{}, constant_head(torch::zeros({outputs}), factor));
    const Regions one = score->region(torch::zeros({1, 1}), 1.5);
    torch::Tensor places = torch::empty({kPoints, outputs}, torch::kDouble);
    for (int64_t i = 0; i < places.numel(); ++i) {
      places.data_ptr<double>()[i] = 2 * random.uniform() - 1;
    }
    const torch::Tensor points = places * one.upper;
    const Regions regions = score->region(torch::zeros({kPoints, 1}), 1.5);
    const torch::Tensor in = in_regions(regions, points);
    const torch::Tensor norms =
        points.matmul(torch::linalg_inv(factor.to(torch::kDouble)).t()).norm(2, 1);
    EXPECT_TRUE(in.equal(norms <= 1.5)) << outputs;
    const double volume = std::pow(region_volumes(one)[0].item<double>(), outputs);
    const double box = (one.upper - one.lower).prod().item<double>();
    EXPECT_NEAR(in.to(torch::kDouble).mean().item<double>(), volume / box,
                5 * std::sqrt(0.25 / kPoints));
    // The box is the smallest: the farthest points of the surface in each direction reach it.
    const torch::Tensor rows = factor.to(torch::kDouble);
    const torch::Tensor far = 1.5 * rows.matmul((rows / rows.norm(2, 1, true)).t());
    EXPECT_NEAR((one.upper[0] - far.diagonal()).abs().max().item<double>(), 0, 1e-4) << outputs;
  }
}

TEST(Ellipsoid, ADiagonalThatIsNotPositiveIsNoError) {
  const torch::Tensor factor = torch::tensor({{0.0F, 0.0F}, {1.0F, -1.0F}});
  const auto score = make_score(EllipsoidOptions{}, constant_head(torch::zeros({2}), factor));
  const torch::Tensor truth = torch::tensor({{0.0, 0.0}, {1.0, 1.0}}, torch::kDouble);
  const std::vector<double> scores = score->score(torch::zeros({2, 1}), truth);
  EXPECT_EQ(scores[0], 0);
  EXPECT_GT(scores[1], 1e100);
  const Regions regions = score->region(torch::zeros({2, 1}), 1e50);
  EXPECT_TRUE(in_regions(regions, truth).equal(torch::tensor({true, false})));
}

TEST(Ellipsoid, OtherWidthsAreRefused) {
  const auto score =
      make_score(EllipsoidOptions{}, constant_head(torch::zeros({2}), torch::ones({3})));
  EXPECT_THAT(
      [&] {
        score->region(torch::zeros({1, 1}), 1.0);
      },
      ::testing::ThrowsMessage<Error>(::testing::HasSubstr("expected the 2 x 2")));
  EXPECT_THROW(make_score(ScoreOptions(EllipsoidOptions{}, {.side = BoundSide::kUpper}),
                          constant_head(torch::zeros({2}), two_factor())),
               Error);
}

// With a known support the box is cut, and what is outside is out.
TEST(Ellipsoid, KeepsToItsSupport) {
  const auto score = make_score(ScoreOptions(EllipsoidOptions{}, {.support = "0:"}),
                                constant_head(torch::ones({2}), torch::eye(2)));
  const Regions regions = score->region(torch::zeros({2, 1}), 3.0);
  EXPECT_EQ(regions.lower.min().item<double>(), 0);
  const torch::Tensor truth = torch::tensor({{0.5, 0.5}, {-0.5, 0.5}}, torch::kDouble);
  EXPECT_TRUE(in_regions(regions, truth).equal(torch::tensor({true, false})));
  EXPECT_EQ(score->score(torch::zeros({2, 1}), truth)[1], kForever);
}

}  // namespace
}  // namespace fcp
