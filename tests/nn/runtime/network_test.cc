#include "fcp/nn/runtime/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/nn/graph/simplify.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

std::string complaint(const Network& network, const Tensors& inputs) {
  try {
    network.run(inputs);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Network, FoldedBatchNormGivesTheSameAnswers) {
  torch::manual_seed(0);
  const Graph graph = make_residual_network();
  const Network plain(graph, {.fold_batch_norm = false});
  const Network folded(graph);
  EXPECT_EQ(plain.steps().size(), 8u);
  EXPECT_EQ(folded.steps().size(), 6u);
  const torch::Tensor x = torch::randn({3, 3, 6, 6});
  EXPECT_TRUE(torch::allclose(plain.forward(x), folded.forward(x), 1e-5, 1e-5));
}

TEST(Network, BatchNormFoldsIntoGemmAndConvTranspose) {
  torch::manual_seed(0);
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, 3, 4})};
  graph.initializers = {{"w", torch::randn({3, 2, 3})},
                        {"scale", torch::rand({2})},
                        {"shift", torch::randn({2})},
                        {"mean", torch::randn({2})},
                        {"var", torch::rand({2}) + 0.1}};
  graph.nodes = {make_node("ConvTranspose", {"x", "w"}, {"c"}),
                 make_node("BatchNormalization", {"c", "scale", "shift", "mean", "var"}, {"y"})};
  graph.outputs = {make_info("y")};
  const torch::Tensor x = torch::randn({2, 3, 4});
  EXPECT_EQ(Network(graph).steps().size(), 1u);
  EXPECT_TRUE(torch::allclose(Network(graph).forward(x),
                              Network(graph, {.fold_batch_norm = false}).forward(x), 1e-4, 1e-5));

  Graph dense = graph;
  dense.inputs = {make_info("x", {kDynamic, 3})};
  dense.initializers["w"] = torch::randn({3, 2});
  dense.initializers["b"] = torch::randn({2});
  dense.nodes[0] = make_node("Gemm", {"x", "w", "b"}, {"c"});
  const torch::Tensor rows = torch::randn({5, 3});
  EXPECT_EQ(Network(dense).steps().size(), 1u);
  EXPECT_TRUE(torch::allclose(Network(dense).forward(rows),
                              Network(dense, {.fold_batch_norm = false}).forward(rows), 1e-4,
                              1e-5));
}

TEST(Network, BatchNormStaysWhereSomebodyElseReadsItsInput) {
  torch::manual_seed(0);
  Graph graph = make_residual_network();
  graph.outputs.push_back(make_info("c1"));
  EXPECT_EQ(Network(graph).steps().size(), 7u);
}

TEST(Network, ConstantNodesAreRunOnce) {
  Graph graph = make_mlp({3, 4, 1});
  graph.initializers["w2_half"] = graph.initializers["w2"].tensor().to(torch::kHalf);
  graph.initializers.erase("w2");
  graph.nodes.insert(graph.nodes.begin(),
                     make_node("Cast", {"w2_half"}, {"w2"}, {{"to", int64_t{1}}}));
  EXPECT_EQ(Network(graph).steps().size(), 3u);
  const torch::Tensor x = torch::randn({2, 3});
  EXPECT_TRUE(torch::equal(Network(graph).forward(x),
                           Network(graph, {.fold_constants = false}).forward(x)));
}

TEST(Network, ASmallFileCannotGrowWithoutLimit) {
  Graph graph = make_mlp({3, 4, 1});
  for (int i = 0; i < 5; ++i) {
    const std::string name = "big" + std::to_string(i);
    graph.initializers["shape"] = torch::tensor({int64_t{1} << 26}, torch::kLong);
    graph.nodes.insert(graph.nodes.begin(), make_node("ConstantOfShape", {"shape"}, {name}));
    graph.outputs.push_back(make_info(name));
  }
  try {
    Network network(graph);
    FAIL() << "1 GiB of constants went through";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("constants grow beyond"));
  }
}

TEST(Network, WrongInputsAreNamed) {
  const Network network(make_mlp({3, 4, 1}));
  EXPECT_EQ(complaint(network, {torch::zeros({2, 5})}),
            "input 'x': found shape [2, 5], expected [?, 3]");
  EXPECT_EQ(complaint(network, {}), "the network has 1 inputs, 0 were given");
  EXPECT_EQ(complaint(network, {torch::zeros({3})}), "input 'x': found shape [3], expected [?, 3]");
}

TEST(Network, InputsAreCastToTheDeclaredType) {
  const Network network(make_mlp({3, 4, 1}));
  const torch::Tensor x = torch::randn({2, 3}, torch::kDouble);
  EXPECT_TRUE(torch::equal(network.forward(x), network.forward(x.to(torch::kFloat))));
}

TEST(Network, AFixedBatchIsPaddedAndTrimmed) {
  torch::manual_seed(0);
  Graph graph = make_mlp({3, 4, 2});
  const torch::Tensor x = torch::randn({7, 3});
  const torch::Tensor expected = Network(graph).forward(x);
  graph.inputs[0].shape[0] = 4;
  const Network fixed(graph);
  EXPECT_EQ(fixed.fixed_batch(), 4);
  EXPECT_TRUE(torch::allclose(fixed.run_rows({x})[0], expected));
  EXPECT_EQ(complaint(fixed, {x}), "input 'x': found shape [7, 3], expected [4, 3]");
}

TEST(Network, SeveralInputsAndOutputs) {
  Graph graph;
  graph.inputs = {make_info("a", {kDynamic, 2}), make_info("b", {kDynamic, 2})};
  graph.nodes = {make_node("Add", {"a", "b"}, {"sum"}),
                 make_node("Sub", {"a", "b"}, {"difference"})};
  graph.outputs = {make_info("difference"), make_info("sum")};
  const torch::Tensor a = torch::ones({3, 2}), b = torch::full({3, 2}, 5.0f);
  const Tensors out = Network(graph).run({a, b});
  EXPECT_TRUE(torch::equal(out[0], a - b));
  EXPECT_TRUE(torch::equal(out[1], a + b));
  EXPECT_THROW(Network(graph).forward(a), Error);
}

TEST(Network, AnOutputMayBeAnInputOrAConstant) {
  Graph graph;
  graph.inputs = {make_info("a", {kDynamic, 2})};
  graph.initializers = {{"c", torch::ones({1})}};
  graph.outputs = {make_info("a"), make_info("c")};
  const torch::Tensor a = torch::ones({3, 2});
  const Tensors out = Network(graph).run({a});
  EXPECT_TRUE(torch::equal(out[0], a));
  EXPECT_TRUE(torch::equal(out[1], torch::ones({1})));
}

TEST(Network, AnUnknownOperatorIsNamedWithItsDomain) {
  Graph graph = make_mlp({3, 4, 1});
  graph.nodes[1].op = "Frobnicate";
  graph.nodes[1].domain = "com.example";
  try {
    Network network(graph);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "Frobnicate node 'h1_node': operator Frobnicate of domain 'com.example' is not "
                 "supported; docs/networks.md lists what is");
  }
}

TEST(Network, AllThatIsNotSupportedIsSaidAtOnce) {
  Graph graph = make_mlp({3, 4, 4, 4, 1});
  graph.nodes[1].op = "Frobnicate";
  graph.nodes[3].op = "Frobnicate";
  graph.nodes[5].attributes["leak"] = 0.5f;
  try {
    Network network(graph);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "Frobnicate node 'h1_node': operator Frobnicate of domain 'ai.onnx' is not "
                 "supported; docs/networks.md lists what is (2 nodes); Relu node 'h3_node': "
                 "attribute 'leak' is not known for Relu at opset 17");
  }
}

TEST(Network, WhatNoOutputNeedsDoesNotMatter) {
  Graph graph = make_mlp({3, 4, 1});
  graph.nodes.push_back(make_node("Frobnicate", {"h1"}, {"unread"}));
  EXPECT_EQ(Network(graph).steps().size(), 3u);
}

Graph normalized_in_training(const std::string& input) {
  Graph graph = make_mlp({4, 1});
  graph.nodes.insert(graph.nodes.begin(),
                     make_node("BatchNormalization", {input, "s", "t", "m", "v"}, {"n"},
                               {{"training_mode", int64_t{1}}}));
  for (const char* name : {"s", "v"}) graph.initializers[name] = torch::full({4}, 2.0f);
  for (const char* name : {"t", "m"}) graph.initializers[name] = torch::full({4}, 0.5f);
  return graph;
}

// Also behind a layer that it could be multiplied into.
TEST(Network, BatchNormInTrainingModeIsRefused) {
  Graph graph = normalized_in_training("x");
  graph.nodes[1].inputs[0] = "n";
  Graph behind = make_mlp({3, 4});
  behind.nodes[0].outputs = {"z"};
  behind.initializers.merge(normalized_in_training("x").initializers);
  Node norm = normalized_in_training("z").nodes[0];
  norm.outputs = {"y"};
  behind.nodes.push_back(norm);
  for (const Graph& each : {graph, behind}) {
    try {
      Network network(each);
      FAIL();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("is in training mode, where rows depend"));
    }
  }
}

// A network that standardises its own weights.
TEST(Network, BatchNormInTrainingModeOfAConstantIsComputed) {
  Graph graph = normalized_in_training("constant");
  const torch::Tensor constant = torch::randn({5, 4});
  graph.initializers["constant"] = constant;
  graph.nodes.resize(1);
  graph.nodes.push_back(make_node("MatMul", {"n", "x"}, {"y"}));
  const torch::Tensor mean = constant.mean(0), variance = torch::var(constant, 0, false);
  const torch::Tensor weight = (constant - mean) / (variance + 1e-5).sqrt() * 2 + 0.5;
  graph.inputs = {make_info("x", {4, 2})};
  const torch::Tensor x = torch::randn({4, 2});
  const Network network(graph);
  EXPECT_TRUE(torch::allclose(network.forward(x), torch::matmul(weight, x), 1e-4, 1e-5));
  EXPECT_EQ(network.steps().size(), 1u);
}

TEST(Network, HalfPrecisionIsComputedInSingle) {
  torch::manual_seed(1);
  Graph single = make_mlp({3, 4, 1}), half = single;
  for (auto& [name, value] : half.initializers) {
    value = value.tensor().to(torch::kHalf);
    single.initializers[name] = value.tensor().to(torch::kFloat);
  }
  half.inputs[0].type = half.outputs[0].type = ElementType::kHalf;
  const Network network(half);
  EXPECT_EQ(network.inputs()[0].type, ElementType::kFloat);
  const torch::Tensor x = torch::randn({5, 3});
  EXPECT_TRUE(torch::equal(network.forward(x), Network(single).forward(x)));
}

TEST(Network, AnAttributeNobodyKnowsIsRefused) {
  Graph graph = make_mlp({3, 4, 1});
  graph.nodes[1].attributes["leak"] = 0.5f;
  try {
    Network network(graph);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "Relu node 'h1_node': attribute 'leak' is not known for Relu at opset 17");
  }
}

TEST(Network, ItsGraphMakesItAgain) {
  torch::manual_seed(0);
  const Network network(make_residual_network());
  const torch::Tensor x = torch::randn({3, 3, 6, 6});
  const Graph graph = network.graph();
  EXPECT_EQ(graph.nodes.size(), network.steps().size());
  EXPECT_TRUE(torch::equal(Network(graph).forward(x), network.forward(x)));
}

TEST(Network, ManyThreadsMayRunOne) {
  torch::manual_seed(0);
  const Network network(make_mlp({3, 16, 1}));
  const torch::Tensor x = torch::randn({64, 3});
  const torch::Tensor expected = network.forward(x);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        if (!torch::equal(network.forward(x), expected)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace fcp
