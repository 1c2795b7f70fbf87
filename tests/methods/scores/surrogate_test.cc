// surrogate against the closed form of gradient descent on a linear head:
//
//   u_{m+1} = u_m − 2η (w·u_m + b − y) w,  so with e = μ − y and q = 1 − 2η‖w‖₂²
//   u_M − v = −e (1 − q^M) / ‖w‖₂² · w
#include "fcp/methods/scores/surrogate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

#include "tests/methods/scores/heads.h"

namespace fcp {
namespace {

TEST(Surrogate, LinearHeadInClosedForm) {
  Random random(1);
  const torch::Tensor weight = random_normal(random, {1, 4});
  const auto head = network_of(linear_head(weight, random_normal(random, {1})));
  HeadRows rows;
  rows.features = random_normal(random, {12, 4});
  const torch::Tensor prediction = head->forward(rows.features).to(torch::kDouble);
  rows.truth = prediction + 3 * random_normal(random, {12, 1}).to(torch::kDouble);
  const torch::Tensor w = weight.to(torch::kDouble).flatten();
  const double square = w.square().sum().item<double>();
  for (const Norm norm : {Norm::kInf, Norm::kTwo, Norm::kOne}) {
    const torch::Tensor size = norm == Norm::kInf   ? w.abs().max()
                               : norm == Norm::kTwo ? w.square().sum().sqrt()
                                                    : w.abs().sum();
    for (const int steps : {1, 7, 50}) {
      ScoreOptions options = SurrogateOptions{};
      options.set(field::norm, norm);
      options.set(field::steps, steps);
      options.set(field::step_rate, 0.02);
      const double walked = 1 - std::pow(1 - 2 * options.value(field::step_rate) * square, steps);
      const std::vector<double> scores =
          make_score(options, head)->score(rows.features, rows.truth);
      for (int64_t i = 0; i < 12; ++i) {
        const double error = (prediction - rows.truth)[i][0].abs().item<double>();
        const double expected = error * walked / square * size.item<double>();
        EXPECT_NEAR(scores[static_cast<size_t>(i)], expected, 1e-5 * (1 + expected)) << steps;
      }
    }
  }
}

TEST(Surrogate, RegionIsTheBand) {
  Random random(2);
  const auto head = network_of(wild_head(random, 2));
  const HeadRows rows = wild_rows(random, *head, 6);
  ScoreOptions options = SurrogateOptions{};
  options.set(field::steps, 3);
  const Regions regions = make_score(options, head)->region(rows.features, 0.25);
  const Range range = make_bounds(head, *options.find(field::bound))
                          ->ranges({rows.features, torch::full({6}, 0.25), Norm::kInf, {}})[0];
  EXPECT_TRUE(torch::equal(regions.lower, range.lower.to(torch::kDouble)));
  EXPECT_TRUE(torch::equal(regions.upper, range.upper.to(torch::kDouble)));
  const Regions all = make_score(options, head)->region(rows.features, kForever);
  EXPECT_TRUE((all.lower == -kForever).all().item<bool>());
  EXPECT_TRUE((all.upper == kForever).all().item<bool>());
}

TEST(Surrogate, NeedsSteps) {
  ScoreOptions options = SurrogateOptions{};
  EXPECT_THAT(
      [&] {
        make_score(options, network_of(make_mlp({2, 1})));
      },
      testing::ThrowsMessage<Error>("surrogate needs its number of steps; it was 0"));
}

}  // namespace
}  // namespace fcp
