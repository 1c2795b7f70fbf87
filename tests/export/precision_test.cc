#include "fcp/export/precision.h"

#include <string>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/nn/runtime/element_types.h"

#include "tests/export/artifacts.h"
#include "tests/nn/graphs.h"

namespace fcp {
namespace {

// h = x + 100 → relu(h) − 100 → y: near 100 single precision has steps of 8e-6.
Graph far_from_zero(torch::ScalarType type = torch::kFloat) {
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, 3})};
  graph.outputs = {make_info("y", {kDynamic, 3})};
  graph.inputs[0].type = graph.outputs[0].type = element_type(type);
  graph.initializers["far"] = torch::full({1}, 100, type);
  graph.nodes = {make_node("Add", {"x", "far"}, {"h"}), make_node("Relu", {"h"}, {"r"}),
                 make_node("Sub", {"r", "far"}, {"y"})};
  return graph;
}

double loss_of(const Graph& graph, double radius) {
  const auto network = std::make_shared<const Network>(graph);
  BoundOptions options;
  options.outward = false;
  const PreparedHead head = prepare_head(network, options);
  const torch::Tensor center = torch::zeros({1, 3}, scalar_type(graph.inputs[0].type));
  return precision_loss(head, prepare_ball(head, {center, {}, Norm::kInf, {}}), radius, 0);
}

TEST(Precision, IsLostByBallsThatAreSmallBesideTheFeature) {
  EXPECT_EQ(loss_of(far_from_zero(), 1), 0);
  EXPECT_GT(loss_of(far_from_zero(), 1e-4), 1e-3);
  EXPECT_NEAR(loss_of(far_from_zero(), 1e-6), 1, 1e-6);  // 100 ± 1e-6 is 100
  EXPECT_EQ(loss_of(far_from_zero(torch::kDouble), 1e-6), 0);
}

TEST(Precision, ExportsAreRefusedWhereItIsLost) {
  torch::manual_seed(61);
  ScoreOptions score;
  expect_same_intervals(calibrated_on_noise(far_from_zero(), score, "h", 1), {}, 1e-4);
  try {
    export_artifact(calibrated_on_noise(far_from_zero(), score, "h", 1e-5));
    FAIL() << "exported a ball that single precision rounds away";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("single precision is off by"), std::string::npos)
        << error.what();
  }
}

// Single precision has no 1e40: that end is infinite, and nothing of the interval is lost.
TEST(Precision, IsNotLostByOverflow) {
  torch::manual_seed(63);
  Graph graph = make_mlp({3, 4, 4, 1});
  graph.initializers["w2"] = graph.initializers["w2"].tensor() * 1e20;
  graph.initializers["w3"] = graph.initializers["w3"].tensor() * 1e20;
  EXPECT_LT(loss_of(graph, 1), kMostLoss);
}

// Ordinary heads lose a few roundoffs.
TEST(Precision, IsKeptByPerceptrons) {
  torch::manual_seed(62);
  for (int i = 0; i < 20; ++i) {
    for (const double radius : {1e-3, 0.1, 10.0}) {
      EXPECT_LT(loss_of(make_mlp({3, 16, 16, 2}), radius), kMostLoss / 16);
    }
  }
}

}  // namespace
}  // namespace fcp
