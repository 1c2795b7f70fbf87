// Chunks of rows and outputs change nothing; per-row radii and scales; errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/nn/runtime/bound_support.h"

#include "tests/bounds/heads.h"

namespace fcp {
namespace {

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Chunks, OfRowsAndOutputsChangeNothing) {
  torch::manual_seed(6);
  const auto head = head_of(make_activated({6, 9, 8, 5}, "Relu"));
  const Ball ball = {torch::randn({7, 6}), torch::rand({7}) * 0.3, Norm::kTwo, torch::rand({6})};
  for (const BoundMethod method : kAllMethods) {
    BoundOptions options;
    options.method = method;
    options.iterations = 4;
    const Range whole = make_bounds(head, options)->ranges(ball)[0];
    for (const size_t memory : {size_t{10000}, size_t{20000}, size_t{60000}}) {
      options.memory = memory;
      const Range parts = make_bounds(head, options)->ranges(ball)[0];
      EXPECT_TRUE(torch::allclose(parts.lower, whole.lower, 1e-6, 1e-6)) << bound_name(method);
      EXPECT_TRUE(torch::allclose(parts.upper, whole.upper, 1e-6, 1e-6)) << bound_name(method);
    }
  }
}

TEST(Chunks, EachRowHasItsOwnRadius) {
  torch::manual_seed(7);
  const auto head = head_of(make_activated({4, 6, 3}, "Tanh"));
  const torch::Tensor center = torch::randn({3, 4}), radius = torch::tensor({0.0f, 0.1f, 0.7f});
  for (const BoundMethod method : kAllMethods) {
    BoundOptions options;
    options.method = method;
    const auto bounds = make_bounds(head, options);
    const Range all = bounds->ranges({center, radius, Norm::kInf, {}})[0];
    for (int64_t i = 0; i < 3; ++i) {
      const Range one =
          bounds->ranges({center.narrow(0, i, 1), radius.narrow(0, i, 1), Norm::kInf, {}})[0];
      EXPECT_TRUE(torch::allclose(one.lower[0], all.lower[i], 1e-5, 1e-6)) << bound_name(method);
      EXPECT_TRUE(torch::allclose(one.upper[0], all.upper[i], 1e-5, 1e-6)) << bound_name(method);
    }
    const torch::Tensor point = (all.upper - all.lower)[0];
    EXPECT_LT(point.max().item<double>(), 1e-4) << "radius 0 leaves rounding alone";
  }
}

// A file that fixes its batch, and shapes computed from the shape of the feature.
TEST(Chunks, HeadsThatKnowTheirBatch) {
  torch::manual_seed(8);
  Graph graph = make_mlp({6, 4});
  graph.inputs = {make_info("v", {4, 2, 3})};
  graph.outputs = {make_info("y", {4, 4})};
  graph.initializers["six"] = torch::tensor({int64_t{6}}, torch::kLong);
  graph.initializers["zero"] = torch::tensor({int64_t{0}}, torch::kLong);
  graph.nodes.insert(
      graph.nodes.begin(),
      {make_node("Shape", {"v"}, {"shape"}), make_node("Gather", {"shape", "zero"}, {"batch"}),
       make_node("Concat", {"batch", "six"}, {"flat"}, {{"axis", int64_t{0}}}),
       make_node("Tanh", {"v"}, {"t"}), make_node("Reshape", {"t", "flat"}, {"x"})});
  const auto head = head_of(graph);
  const Ball ball = {torch::randn({6, 2, 3}), torch::full({6}, 0.2), Norm::kInf, {}};
  for (const BoundMethod method : kAllMethods) {
    BoundOptions options;
    options.method = method;
    const Range range = make_bounds(head, options)->ranges(ball)[0];
    ASSERT_EQ(range.lower.sizes(), (std::vector<int64_t>{6, 4}));
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(contains(range, head->run_rows({sample_ball(ball, i % 2)})[0]));
    }
  }
}

TEST(Chunks, DoubleHeadsHaveDoubleBounds) {
  torch::manual_seed(9);
  Graph graph = make_mlp({3, 5, 2});
  graph.inputs[0].type = ElementType::kDouble;
  for (auto& [name, value] : graph.initializers) value = value.tensor().to(torch::kDouble);
  const auto head = head_of(graph);
  const Ball ball = {
      torch::randn({4, 3}, torch::kDouble), torch::full({4}, 0.1, torch::kDouble), Norm::kInf, {}};
  for (const BoundMethod method : kAllMethods) {
    BoundOptions options;
    options.method = method;
    const Range range = make_bounds(head, options)->ranges(ball)[0];
    EXPECT_EQ(range.lower.scalar_type(), torch::kDouble);
    for (int i = 0; i < 50; ++i)
      EXPECT_TRUE(contains(range, head->forward(sample_ball(ball, i % 2))));
  }
}

TEST(Errors, NameTheNodeAndSayWhatToDo) {
  const auto head = head_of(single("ArgMax", {4}));
  EXPECT_THAT(message_of([&] { make_bounds(head); }),
              testing::AllOf(testing::HasSubstr("ArgMax"), testing::HasSubstr("y_node"),
                             testing::HasSubstr("cut later"), testing::HasSubstr("residual")));
  const auto steps = head_of(single("Floor", {4}));  // intervals will do for any method
  for (const BoundMethod method : kAllMethods) {
    BoundOptions options;
    options.method = method;
    EXPECT_NO_THROW(make_bounds(steps, options));
  }
  EXPECT_THAT(message_of([] { parse_bound("crwn"); }), testing::HasSubstr("alpha-crown"));
  EXPECT_THAT(message_of([] { parse_norm("3"); }), testing::HasSubstr("inf, 2 or 1"));
  for (const BoundMethod method : kAllMethods) EXPECT_EQ(parse_bound(bound_name(method)), method);
  const auto mlp = make_bounds(head_of(make_mlp({2, 2})));
  EXPECT_THAT(message_of([&] {
                mlp->ranges({torch::zeros({3, 2}), torch::zeros({2}), Norm::kInf, {}});
              }),
              testing::HasSubstr("one radius for each row"));
}

TEST(Support, IsKnownBeforeAnythingRuns) {
  const Network mixed(make_mixed_head());
  for (const BoundSupport support : bound_support(mixed)) EXPECT_EQ(support, BoundSupport::kLinear);
  EXPECT_EQ(bound_support(Network(single("Softmax", {4})))[0], BoundSupport::kLinear);
  EXPECT_EQ(bound_support(Network(single("Floor", {4})))[0], BoundSupport::kInterval);
  EXPECT_EQ(bound_support(Network(single("ArgMax", {4})))[0], BoundSupport::kNone);
}

}  // namespace
}  // namespace fcp
