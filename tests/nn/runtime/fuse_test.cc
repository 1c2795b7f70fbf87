// Steps that run as one give the bits of the single steps, and nothing is taken that others read.
#include "fcp/nn/runtime/fuse.h"

#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/nn/runtime/batch_free.h"
#include "fcp/nn/runtime/element_types.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

size_t fused_count(const Network& network) {
  return fuse_steps(network.steps(), network.constants(), network.output_slots()).size();
}

// By the single nodes, which an observer sees; fused; alone; on two threads; with gradients.
void expect_same_bits(const Network& network, const torch::Tensor& x) {
  size_t seen = 0;
  const Tensors apart =
      network.run({x}, [&](const Step&, const Tensors&, const Tensors&) { ++seen; });
  EXPECT_EQ(seen, network.steps().size());
  const Tensors fused = network.run({x});
  ASSERT_EQ(fused.size(), apart.size());
  for (size_t i = 0; i < fused.size(); ++i) {
    EXPECT_TRUE(torch::equal(fused[i], apart[i])) << i;
    EXPECT_TRUE(fused[i].is_contiguous());
  }
  const torch::Tensor alone = network.run({x.narrow(0, 1, 1)})[0];
  EXPECT_TRUE(torch::equal(alone, fused[0].narrow(0, 1, 1)));
  const int before = at::get_num_threads();
  for (const int threads : {1, 2}) {
    at::set_num_threads(threads);
    EXPECT_TRUE(torch::equal(network.run({x})[0], fused[0]));
    EXPECT_TRUE(torch::equal(run_apart(network, {x})[0], fused[0]));
  }
  at::set_num_threads(before);
  const torch::Tensor in = x.clone().requires_grad_();
  const torch::Tensor y = network.run({in})[0];
  EXPECT_TRUE(torch::equal(y.detach(), fused[0]));
  EXPECT_GT(torch::autograd::grad({y.square().sum()}, {in})[0].abs().max().item<float>(), 0);
}

Node act(const std::string& op, const std::string& from, const std::string& to) {
  if (op == "Clip") return make_node(op, {from, "low", "high"}, {to});
  if (op == "HardSigmoid") return make_node(op, {from}, {to}, {{"alpha", 0.17f}, {"beta", 0.4f}});
  return make_node(op, {from}, {to});
}

// A block of MobileNet: expand, depthwise, squeeze and excite, project, add; then a pooled answer.
Graph mobile_block(const std::string& op) {
  Graph graph;
  graph.opset = 20;
  graph.inputs = {make_info("x", {kDynamic, 12, 9, 8})};
  graph.outputs = {make_info("y", {kDynamic, 12, 1, 1})};
  const std::vector<std::pair<std::string, std::vector<int64_t>>> filters = {
      {"we", {40, 12, 1, 1}}, {"wd", {40, 1, 3, 3}},  {"w1", {10, 40, 1, 1}},
      {"w2", {40, 10, 1, 1}}, {"wp", {12, 40, 1, 1}}, {"wc", {12, 12, 3, 3}}};
  for (const auto& [name, shape] : filters) {
    graph.initializers[name] = torch::randn(shape) / 2;
    graph.initializers[name + "b"] = torch::randn({shape[0]});
  }
  graph.initializers["low"] = torch::tensor(-0.5f);
  graph.initializers["high"] = torch::tensor(2.0f);
  const std::vector<int64_t> ones(4, 1);
  graph.nodes = {
      make_node("Conv", {"x", "we", "web"}, {"e"}),
      act(op, "e", "ea"),
      make_node("Conv", {"ea", "wd", "wdb"}, {"d"}, {{"group", int64_t{40}}, {"pads", ones}}),
      act(op, "d", "da"),
      make_node("GlobalAveragePool", {"da"}, {"g"}),
      make_node("Conv", {"g", "w1", "w1b"}, {"s"}),
      act("Relu", "s", "sa"),
      make_node("Conv", {"sa", "w2", "w2b"}, {"t"}),
      act("HardSigmoid", "t", "ta"),
      make_node("Mul", {"ta", "da"}, {"m"}),
      make_node("Conv", {"m", "wp", "wpb"}, {"p"}),
      make_node("Add", {"x", "p"}, {"r"}),
      make_node("Conv", {"r", "wc", "wcb"}, {"c"}, {{"pads", ones}}),
      make_node("Add", {"c", "r"}, {"q"}),
      act(op, "q", "qa"),
      make_node("MaxPool", {"qa"}, {"o"},
                {{"kernel_shape", std::vector<int64_t>{3, 3}}, {"pads", ones}}),
      make_node("GlobalAveragePool", {"o"}, {"y"})};
  return graph;
}

TEST(Fuse, ConvolutionsWithWhatFollows) {
  torch::manual_seed(1);
  for (const std::string op : {"Relu", "HardSwish", "HardSigmoid", "Clip", "Gelu"}) {
    const Network network(mobile_block(op));
    EXPECT_EQ(fused_count(network), 10u) << op;
    expect_same_bits(network, torch::randn({3, 12, 9, 8}));
  }
}

// Operators of libtorch whose bits may depend on the layout get images as they were.
TEST(Fuse, OtherOperatorsBetweenConvolutions) {
  torch::manual_seed(2);
  Graph graph = mobile_block("Relu");
  graph.outputs = {make_info("z")};
  graph.initializers["one"] = torch::rand({12}) + 1;
  graph.initializers["two"] = torch::rand({80}) + 1;
  graph.nodes.push_back(make_node("BatchNormalization", {"qa", "one", "wcb", "wpb", "one"}, {"n"}));
  graph.nodes.push_back(
      make_node("AveragePool", {"n"}, {"v"}, {{"kernel_shape", std::vector<int64_t>{2, 2}}}));
  graph.nodes.push_back(make_node("Conv", {"v", "we", "web"}, {"k"}));
  graph.nodes.push_back(make_node("Concat", {"k", "k"}, {"kk"}, {{"axis", int64_t{1}}}));
  graph.nodes.push_back(make_node("InstanceNormalization", {"kk", "two", "two"}, {"z"}));
  expect_same_bits(Network(graph), torch::randn({3, 12, 9, 8}));
}

// A dense block: channels are joined and normalised in one step, but for what others read as well.
TEST(Fuse, ConcatWithNormalization) {
  torch::manual_seed(6);
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, 12, 9, 8})};
  graph.outputs = {make_info("y")};
  graph.initializers["w"] = torch::randn({8, 12, 3, 3}) / 4;
  graph.initializers["v"] = torch::randn({6, 20, 1, 1}) / 4;
  graph.initializers["u"] = torch::randn({6, 26, 1, 1}) / 4;
  for (const int64_t channels : {20, 26}) {
    const std::string of = std::to_string(channels);
    for (const char* name : {"s", "b", "m", "r"}) {
      graph.initializers[name + of] = torch::rand({channels}) + 0.5;
    }
  }
  const auto normalize = [](const std::string& from, const std::string& of, const std::string& to) {
    return make_node("BatchNormalization", {from, "s" + of, "b" + of, "m" + of, "r" + of}, {to});
  };
  graph.nodes = {make_node("Conv", {"x", "w"}, {"c"}, {{"pads", std::vector<int64_t>(4, 1)}}),
                 make_node("Conv", {"x", "w"}, {"d"}, {{"pads", std::vector<int64_t>(4, 1)}}),
                 make_node("Concat", {"c", "d"}, {"j0"}, {{"axis", int64_t{1}}}),
                 make_node("Slice", {"j0", "from", "to", "axes"}, {"j1"}),
                 make_node("Concat", {"j1", "d"}, {"j"}, {{"axis", int64_t{1}}}),
                 normalize("j", "20", "n"),
                 make_node("Relu", {"n"}, {"a"}),
                 make_node("Conv", {"a", "v"}, {"e"}),
                 make_node("Concat", {"j", "e"}, {"k"}, {{"axis", int64_t{1}}}),
                 normalize("k", "26", "o"),
                 make_node("Relu", {"o"}, {"p"}),
                 make_node("Conv", {"p", "u"}, {"y"})};
  graph.initializers["from"] = torch::tensor({int64_t{2}});
  graph.initializers["to"] = torch::tensor({int64_t{14}});
  graph.initializers["axes"] = torch::tensor({int64_t{1}});
  const Network network(graph);
  EXPECT_EQ(fused_count(network), 9u) << "j has two readers";
  expect_same_bits(network, torch::randn({3, 12, 9, 8}));
  EXPECT_TRUE(is_batch_free(network));
}

// x [N, 3, 6] → a layer with GELU as exporters write it → a layer added to x; `shown` makes the
// first product an output too.
Graph gelu_layers(torch::ScalarType type, bool shown) {
  Graph graph;
  TensorInfo x = make_info("x", {kDynamic, 3, 6});
  x.type = element_type(type);
  graph.inputs = {x};
  graph.outputs = {make_info("y", {kDynamic, 3, 6})};
  if (shown) graph.outputs.push_back(make_info("p"));
  const auto add = [&](const std::string& name, const torch::Tensor& value) {
    graph.initializers[name] = value.to(type);
  };
  add("w1", torch::randn({6, 25}));
  add("b1", torch::randn({25}));
  add("w2", torch::randn({25, 6}) / 3);
  add("b2", torch::randn({6}));
  add("root", torch::tensor(1.41421354f));
  add("one", torch::tensor(1.0f));
  add("half", torch::tensor(0.5f));
  graph.nodes = {make_node("MatMul", {"x", "w1"}, {"p"}), make_node("Add", {"b1", "p"}, {"q"}),
                 make_node("Div", {"q", "root"}, {"d"}),  make_node("Erf", {"d"}, {"e"}),
                 make_node("Add", {"e", "one"}, {"a"}),   make_node("Mul", {"q", "a"}, {"m"}),
                 make_node("Mul", {"m", "half"}, {"h"}),  make_node("MatMul", {"h", "w2"}, {"r"}),
                 make_node("Add", {"r", "b2"}, {"s"}),    make_node("Add", {"x", "s"}, {"y"})};
  return graph;
}

TEST(Fuse, ProductsWithBiasGeluAndSum) {
  torch::manual_seed(3);
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    const Network network(gelu_layers(type, false));
    EXPECT_EQ(fused_count(network), type == torch::kFloat ? 2u : 7u);
    expect_same_bits(network, torch::randn({40, 3, 6}, type));
    const Network shown(gelu_layers(type, true));
    EXPECT_EQ(fused_count(shown), 8u) << "what an output shows stays apart";
    expect_same_bits(shown, torch::randn({5, 3, 6}, type));
  }
}

TEST(Fuse, LeavesWhatOthersReadAndOtherConstants) {
  torch::manual_seed(4);
  Graph other = gelu_layers(torch::kFloat, false);
  other.initializers["half"] = torch::tensor(0.25f);
  EXPECT_EQ(fused_count(Network(other)), 7u) << "not GELU";
  expect_same_bits(Network(other), torch::randn({4, 3, 6}));
  Graph wide = gelu_layers(torch::kFloat, false);
  wide.initializers["b2"] = torch::randn({3, 1});  // not one number per column
  EXPECT_EQ(fused_count(Network(wide)), 4u);
  expect_same_bits(Network(wide), torch::randn({4, 3, 6}));
  Graph twice = gelu_layers(torch::kFloat, false);
  twice.nodes.back().inputs = {"s", "s"};
  expect_same_bits(Network(twice), torch::randn({4, 3, 6}));
  Graph stretched = gelu_layers(torch::kFloat, false);  // the sum is wider than the product
  stretched.inputs.push_back(make_info("z", {2, kDynamic, 3, 6}));
  stretched.nodes.back().inputs = {"z", "s"};
  stretched.outputs = {make_info("y")};
  const Network network(stretched);
  const Tensors in = {torch::randn({4, 3, 6}), torch::randn({2, 4, 3, 6})};
  EXPECT_TRUE(torch::equal(network.run(in)[0],
                           network.run(in, [](const Step&, const Tensors&, const Tensors&) {})[0]));
}

TEST(Fuse, ErrorsNameTheNode) {
  Graph graph = gelu_layers(torch::kFloat, false);
  graph.inputs[0] = make_info("x", {kDynamic, 3, kDynamic});
  try {
    Network(graph).run({torch::randn({2, 3, 7})});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("p_node"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace fcp
