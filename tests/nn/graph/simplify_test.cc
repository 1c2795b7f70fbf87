// Nodes that exporters write out, put back together.

#include "fcp/nn/graph/simplify.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "fcp/nn/runtime/bound_support.h"
#include "fcp/nn/runtime/network.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

// As PyTorch's exporter writes softplus(x, β, threshold).
Graph make_softplus(float beta, float threshold) {
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, 3})};
  graph.outputs = {make_info("y", {kDynamic, 3})};
  graph.initializers["beta"] = torch::tensor(beta);
  graph.initializers["threshold"] = torch::tensor(threshold);
  graph.nodes = {make_node("Mul", {"x", "beta"}, {"scaled"}),
                 make_node("Softplus", {"scaled"}, {"soft"}),
                 make_node("Div", {"soft", "beta"}, {"unscaled"}),
                 make_node("Greater", {"scaled", "threshold"}, {"large"}),
                 make_node("Where", {"large", "x", "unscaled"}, {"y"})};
  return graph;
}

TEST(Rewrite, SoftplusWithAThreshold) {
  for (const float beta : {1.0f, 0.5f, 3.0f}) {
    const Network network(make_softplus(beta, 20));
    for (const BoundSupport support : bound_support(network)) {
      EXPECT_EQ(support, BoundSupport::kLinear);
    }
    const torch::Tensor x = torch::linspace(-60, 60, 300).reshape({100, 3});
    const torch::Tensor exact = torch::softplus(x.to(torch::kDouble), beta, 1000);
    EXPECT_TRUE(torch::allclose(network.forward(x).to(torch::kDouble), exact, 1e-6, 1e-7)) << beta;
  }
}

TEST(Rewrite, ALowThresholdIsNotASoftplus) {
  const Network network(make_softplus(1, 2));
  EXPECT_EQ(bound_support(network).back(), BoundSupport::kNone);
  EXPECT_FLOAT_EQ(network.forward(torch::full({1, 3}, 2.5f))[0][0].item<float>(), 2.5f);
}

}  // namespace
}  // namespace fcp
