// The lines and intervals of each activation, against dense evaluation.
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/bounds/relax.h"

#include "tests/bounds/heads.h"

namespace fcp {
namespace {

// Random ranges around 0 of all sizes, some of them points.
Range random_ranges(int64_t count) {
  const torch::Tensor center = torch::randn({count}, torch::kDouble) * 3;
  const torch::Tensor half = torch::exp(torch::randn({count}, torch::kDouble) * 2 - 1);
  const torch::Tensor width =
      torch::where(torch::rand({count}) < 0.05, torch::zeros({1}, torch::kDouble), half);
  return {center - width, center + width};
}

struct CurveCase {
  std::string name;
  std::shared_ptr<const Op> op;
  Curve curve;
};

std::vector<CurveCase> curve_cases() {
  std::vector<CurveCase> cases;
  std::vector<NamedGraph> heads = activated_heads({1, 1, 1});
  heads.push_back({"Reciprocal", make_activated({1, 1, 1}, "Reciprocal")});
  heads.push_back({"Log", make_activated({1, 1, 1}, "Log")});
  heads.push_back({"Sqrt", make_activated({1, 1, 1}, "Sqrt")});
  heads.push_back({"Pow -2", make_activated({1, 1, 1}, "Pow", {}, torch::tensor(-2.0f))});
  heads.push_back({"Pow 1.5", make_activated({1, 1, 1}, "Pow", {}, torch::tensor(1.5f))});
  for (NamedGraph& head : heads) {
    const Network network(std::move(head.graph));
    const Step& step = network.steps()[1];
    Tensors inputs;
    for (const int slot : step.inputs)
      inputs.push_back(network.constants()[static_cast<size_t>(slot)]);
    cases.push_back({head.name, step.op, step.op->curve(inputs)});
  }
  return cases;
}

TEST(Curve, EveryPointLiesBetweenTheLinesAndInTheInterval) {
  torch::manual_seed(1);
  for (const CurveCase& test : curve_cases()) {
    const Range range = random_ranges(400);
    const Relaxation lines = relax(test.curve, range, 0x1p-24);
    const Range values = curve_interval(test.curve, range, 0x1p-24);
    for (int i = 0; i <= 300; ++i) {
      const double t = i / 300.0;
      const torch::Tensor x = torch::minimum(
          torch::maximum(range.lower * (1 - t) + range.upper * t, range.lower), range.upper);
      const torch::Tensor y = test.curve.value(x);
      const torch::Tensor valid = y.isnan().logical_not();
      const torch::Tensor below = (lines.lower_slope * x + lines.lower_bias <= y);
      const torch::Tensor above = (lines.upper_slope * x + lines.upper_bias >= y);
      const torch::Tensor inside = (values.lower <= y).logical_and(values.upper >= y);
      const torch::Tensor right = below.logical_and(above).logical_and(inside);
      EXPECT_TRUE(right.logical_or(valid.logical_not()).all().item<bool>())
          << test.name << " " << t;
    }
  }
}

// No line can be closer in the middle than the function's own convex hull allows; ours comes near.
TEST(Curve, LinesAreTightInTheMiddle) {
  torch::manual_seed(2);
  for (const CurveCase& test : curve_cases()) {
    if (test.curve.value(torch::tensor({-1.0})).isnan().item<bool>() || test.curve.pole) continue;
    const Range range = random_ranges(200);
    const Relaxation lines = relax(test.curve, range, 0);
    // The hull at the middle: the best chord between points left and right of it, on a grid.
    const torch::Tensor middle = (range.lower + range.upper) / 2;
    const int grid = 60;
    const torch::Tensor a = torch::arange(grid, torch::kDouble).reshape({-1, 1, 1}) / (2.0 * grid);
    const torch::Tensor b = 1 - a.reshape({1, -1, 1});
    const torch::Tensor left = test.curve.value(range.lower * (1 - a) + range.upper * a);
    const torch::Tensor right = test.curve.value(range.lower * (1 - b) + range.upper * b);
    const torch::Tensor weight = (0.5 - a) / (b - a);
    const torch::Tensor chords = left * (1 - weight) + right * weight;  // [grid, grid, ranges]
    const torch::Tensor at_middle = test.curve.value(middle);
    const torch::Tensor lowest = torch::minimum(chords.amin({0, 1}), at_middle);
    const torch::Tensor highest = torch::maximum(chords.amax({0, 1}), at_middle);
    const torch::Tensor size = (highest - lowest).abs() + 1e-6;
    const torch::Tensor low_gap = (lowest - (lines.lower_slope * middle + lines.lower_bias)) / size;
    const torch::Tensor high_gap = (lines.upper_slope * middle + lines.upper_bias - highest) / size;
    // Gelu changes curvature twice, and the tangents we try do not include the one that touches it
    // twice.
    const double allowed = test.name.rfind("Gelu", 0) == 0 ? 0.35 : 0.02;
    EXPECT_LT(low_gap.max().item<double>(), allowed) << test.name;
    EXPECT_LT(high_gap.max().item<double>(), allowed) << test.name;
  }
}

TEST(Curve, AFreeSlopeIsSoundAnywhereBetweenItsLimits) {
  torch::manual_seed(3);
  for (const CurveCase& test : curve_cases()) {
    if (!test.curve.hinge) continue;
    const Range range = random_ranges(300);
    const Relaxation lines = relax(test.curve, range, 0);
    for (int k = 0; k <= 4; ++k) {
      const torch::Tensor slope =
          lines.least_slope + (lines.most_slope - lines.least_slope) * (k / 4.0);
      for (int i = 0; i <= 50; ++i) {
        const torch::Tensor x = range.lower + (range.upper - range.lower) * (i / 50.0);
        const torch::Tensor gap = test.curve.value(x) - (slope * x + lines.lower_bias);
        EXPECT_GE(gap.min().item<double>(), -1e-12) << test.name;
      }
    }
  }
}

TEST(Curve, ReluTakesTheSlopesOfCrown) {
  const Network network(make_activated({1, 1, 1}, "Relu"));
  const Curve curve = network.steps()[1].op->curve({});
  const Range range = {torch::tensor({-1.0, -2.0, 1.0, -3.0}),
                       torch::tensor({2.0, 1.0, 2.0, -1.0})};
  const Relaxation lines = relax(curve, range, 0);
  EXPECT_TRUE(torch::allclose(
      lines.upper_slope,
      torch::tensor({2.0 / 3, 1.0 / 3, 1.0, 0.0}).to(lines.upper_slope.scalar_type())));
  EXPECT_TRUE(torch::equal(
      lines.lower_slope, torch::tensor({1.0, 0.0, 1.0, 0.0}).to(lines.lower_slope.scalar_type())));
  EXPECT_TRUE(torch::equal(lines.lower_bias, torch::zeros_like(lines.lower_bias)));
}

}  // namespace
}  // namespace fcp
