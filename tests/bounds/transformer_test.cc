// Heads that begin before the last block of a transformer.
#include "tests/nn/transformer.h"

#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "fcp/nn/graph/cut.h"
#include "fcp/nn/runtime/bound_support.h"

#include "tests/bounds/soundness.h"

namespace fcp {
namespace {

NamedGraph last_block(const std::string& name, TransformerShape shape) {
  shape.blocks = 2;
  CutGraph parts = cut(make_transformer(shape), "block1");
  declare_feature(parts, {torch::zeros({1, shape.tokens, shape.width})});
  return {name, parts.head};
}

double mean_width(const std::shared_ptr<const Network>& head, BoundMethod method, double radius) {
  BoundOptions options;
  options.method = method;
  options.outward = false;
  options.iterations = 5;
  std::vector<int64_t> shape = head->inputs()[0].shape;
  shape[0] = 4;
  torch::manual_seed(77);
  const Ball ball = {torch::randn(shape), torch::full({4}, radius), Norm::kInf, {}};
  const Range range = make_bounds(head, options)->ranges(ball)[0];
  return (range.upper - range.lower).mean().item<double>();
}

TEST(Transformer, BoundsOfTheLastBlockHold) {
  torch::manual_seed(31);
  const TransformerShape small = {.tokens = 2, .width = 4, .heads = 1, .hidden = 3};
  check_soundness(last_block("norm first", small), 2, {6, 1, 0.02});
  TransformerShape last = small;
  last.norm_first = false;
  last.masked = -1e4;
  check_soundness(last_block("norm last", last), 2, {6, 1, 0.4});
}

// The mask that exporters write for "never": the least float, with which sums overflow.
TEST(Transformer, MasksOfTheLeastFloat) {
  torch::manual_seed(32);
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  for (const double masked : {-3.4028234663852886e38, kNever}) {
    const NamedGraph named =
        last_block("masked", {.tokens = 2, .width = 2, .heads = 1, .hidden = 2, .masked = masked});
    check_soundness(named, 1, {3, 1, 0.05});
    const auto head = head_of(named.graph);
    const double width = mean_width(head, BoundMethod::kCrown, 0.01);
    EXPECT_TRUE(std::isfinite(width)) << masked;
  }
}

// Attention as one operator has the bounds of the operators it means.
TEST(Transformer, AttentionAsOneOperatorHasTheBoundsOfItsParts) {
  TransformerShape shape = {.tokens = 2, .width = 4, .heads = 2, .hidden = 3};
  for (const double masked : {0.0, -1e4}) {
    shape.masked = masked;
    torch::manual_seed(34);
    shape.one_operator = false;
    const auto parts = head_of(last_block("parts", shape).graph);
    torch::manual_seed(34);
    shape.one_operator = true;
    const NamedGraph whole = last_block("whole", shape);
    const auto head = head_of(whole.graph);
    const torch::Tensor x = torch::randn({3, 2, 4});
    ASSERT_TRUE(torch::allclose(head->forward(x), parts->forward(x), 1e-5, 1e-6));
    for (const BoundMethod method : kAllMethods) {
      const double ratio = mean_width(head, method, 0.02) / mean_width(parts, method, 0.02);
      EXPECT_NEAR(ratio, 1, 0.01) << bound_name(method);
    }
    for (const BoundSupport support : bound_support(*head)) {
      EXPECT_EQ(support, BoundSupport::kLinear);
    }
    check_soundness(whole, 2, {6, 1, 0.05});
  }
}

// In small balls planes follow the head where intervals forget it, and all shrink with the radius.
TEST(Transformer, PlanesAreTighterThanIntervals) {
  torch::manual_seed(33);
  for (const bool first : {true, false}) {
    const auto head =
        head_of(last_block("", {.tokens = 2, .width = 4, .hidden = 5, .norm_first = first}).graph);
    const double ibp = mean_width(head, BoundMethod::kIbp, 0.01);
    const double mixed = mean_width(head, BoundMethod::kCrownIbp, 0.01);
    const double crown = mean_width(head, BoundMethod::kCrown, 0.01);
    const double smaller = mean_width(head, BoundMethod::kCrown, 0.001);
    EXPECT_LE(mixed, ibp);
    EXPECT_LT(crown, 0.2 * ibp);
    EXPECT_LT(smaller, 0.11 * crown);
  }
}

}  // namespace
}  // namespace fcp
