// Perceptrons layer by layer against the network that they were read from.
#include "fcp/nn/kernels/relu_mlp/relu_layers.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

void expect_same(const Network& network, const torch::Tensor& x) {
  const std::optional<ReluLayers> chain = match_relu_layers(network);
  ASSERT_TRUE(chain.has_value());
  ASSERT_TRUE(takes_rows(*chain, x));
  const torch::Tensor found = run_layers(*chain, x), expected = network.forward(x);
  EXPECT_EQ(found.sizes(), expected.sizes());
  EXPECT_TRUE(torch::allclose(found, expected, 1e-5, 1e-5));
}

TEST(ReluLayers, AgreeWithTheNetwork) {
  torch::manual_seed(3);
  for (const std::vector<int64_t>& widths :
       {std::vector<int64_t>{9, 64, 64}, {1, 1}, {5, 17, 3, 70}, {100, 65, 1}}) {
    const Network network(make_mlp(widths));
    for (const int64_t rows : {0, 1, 5, 48, 2100}) {
      expect_same(network, torch::randn({rows, widths[0]}));
    }
  }
}

TEST(ReluLayers, StandardisationAndReluAtTheEnd) {
  torch::manual_seed(4);
  Graph graph = make_mlp({7, 20});
  graph.nodes[0].inputs[0] = "scaled";
  graph.initializers["mean"] = torch::randn({1, 7});
  graph.initializers["deviation"] = torch::rand({7}) + 0.5;
  graph.nodes.insert(graph.nodes.begin(), make_node("Div", {"centred", "deviation"}, {"scaled"}));
  graph.nodes.insert(graph.nodes.begin(),
                     make_node("Sub", {graph.inputs[0].name, "mean"}, {"centred"}));
  graph.nodes.push_back(make_node("Relu", {graph.outputs[0].name}, {"end"}));
  graph.outputs[0].name = "end";
  const Network network(graph);
  expect_same(network, 3 * torch::randn({50, 7}));
  EXPECT_EQ(match_relu_layers(network)->mean.size(), 7u);
}

// Rows are computed alike in whatever company.
TEST(ReluLayers, RowsDoNotDependOnTheBatch) {
  torch::manual_seed(5);
  const ReluLayers chain = *match_relu_layers(Network(make_mlp({30, 64, 40})));
  const torch::Tensor x = torch::randn({101, 30});
  const torch::Tensor all = run_layers(chain, x);
  for (int64_t row = 0; row < 101; ++row) {
    EXPECT_TRUE(torch::equal(run_layers(chain, x.narrow(0, row, 1))[0], all[row]));
  }
}

TEST(ReluLayers, NaNStaysNaN) {
  const ReluLayers chain = *match_relu_layers(Network(make_mlp({2, 3, 2})));
  const torch::Tensor x = torch::tensor({{1.0f, std::nanf("")}, {1.0f, 2.0f}});
  const torch::Tensor found = run_layers(chain, x);
  EXPECT_TRUE(found[0].isnan().all().item<bool>());
  EXPECT_FALSE(found[1].isnan().any().item<bool>());
}

TEST(ReluLayers, OtherShapesAreLeftAlone) {
  Graph curved = make_mlp({4, 5, 2});
  for (Node& node : curved.nodes) node.op = node.op == "Relu" ? "Tanh" : node.op;
  EXPECT_FALSE(match_relu_layers(Network(curved)).has_value());
  EXPECT_FALSE(match_relu_layers(Network(make_mlp({300, 300, 1}))).has_value());  // too large
  // A division between layers is not a standardisation of the input.
  Graph between = make_mlp({4, 5, 2});
  between.initializers["half"] = torch::full({1}, 2.0f);
  between.nodes.back().inputs[0] = "halved";
  between.nodes.insert(between.nodes.end() - 1, make_node("Div", {"h1", "half"}, {"halved"}));
  EXPECT_FALSE(match_relu_layers(Network(between)).has_value());
  // Layers that do not fit each other are for the network to complain about.
  Graph torn = make_mlp({4, 5, 2});
  torn.initializers["w2"] = torch::randn({2, 100});
  EXPECT_FALSE(match_relu_layers(Network(torn)).has_value());
  // So are weights that are no matrix, a Dropout that drops, and rows of another shape.
  Graph flat = make_mlp({4, 5});
  flat.initializers["w1"] = torch::randn({5});
  EXPECT_FALSE(match_relu_layers(Network(flat)).has_value());
  Graph dropping = make_mlp({4, 5, 2});
  dropping.initializers["ratio"] = torch::full({}, 0.5f);
  dropping.initializers["training"] = torch::ones({}, torch::kBool);
  dropping.nodes.back().inputs[0] = "dropped";
  dropping.nodes.insert(dropping.nodes.end() - 1,
                        make_node("Dropout", {"h1", "ratio", "training"}, {"dropped"}));
  EXPECT_FALSE(match_relu_layers(Network(dropping)).has_value());
  Graph picture = make_mlp({4, 5});
  picture.inputs[0] = make_info("x", {kDynamic, 1, 4});
  EXPECT_FALSE(match_relu_layers(Network(picture)).has_value());
  const ReluLayers chain = *match_relu_layers(Network(make_mlp({4, 5, 2})));
  EXPECT_FALSE(takes_rows(chain, torch::randn({3, 5})));
  EXPECT_FALSE(takes_rows(chain, torch::randn({3, 1, 4})));
  EXPECT_FALSE(takes_rows(chain, torch::randn({3, 4}).requires_grad_()));
}

}  // namespace
}  // namespace fcp
