// The types of outputs by the rules of operators.inc, against what the operators make.
#include "fcp/nn/graph/tensor_types.h"

#include <gtest/gtest.h>

#include "fcp/nn/ops/op_traits.h"
#include "fcp/nn/runtime/element_types.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

TEST(TensorTypes, AreThoseThatOperatorsMake) {
  struct Case {
    Node node;
    Tensors inputs;
  };
  const torch::Tensor floats = torch::rand({4, 3}), doubles = torch::rand({4, 3}, torch::kDouble);
  const torch::Tensor bytes = torch::randint(0, 9, {4, 3}, torch::kByte);
  const torch::Tensor scale = torch::tensor(0.5f), zero = torch::tensor(3, torch::kChar);
  const std::vector<std::string> one = {"y"}, two = {"y", "z"};
  const std::vector<Case> cases = {
      {make_node("Relu", {"0"}, one), {doubles}},
      {make_node("Less", {"0", "1"}, one), {floats, floats}},
      {make_node("ArgMax", {"0"}, one), {floats}},
      {make_node("Shape", {"0"}, one), {doubles}},
      {make_node("Cast", {"0"}, one, {{"to", int64_t{11}}}), {bytes}},
      {make_node("CastLike", {"0", "1"}, one), {bytes, doubles}},
      {make_node("EyeLike", {"0"}, one, {{"dtype", int64_t{7}}}), {floats}},
      {make_node("EyeLike", {"0"}, one), {doubles}},
      {make_node("Where", {"0", "1", "2"}, one), {floats > 0.5, doubles, doubles}},
      {make_node("QuantizeLinear", {"0", "1"}, one), {floats, scale}},
      {make_node("QuantizeLinear", {"0", "1", "2"}, one), {floats, scale, zero}},
      {make_node("DequantizeLinear", {"0", "1"}, one), {bytes, scale}},
      {make_node("DynamicQuantizeLinear", {"0"}, two), {floats}},
      {make_node("MatMulInteger", {"0", "1"}, one), {bytes, bytes.t()}},
      {make_node("ConstantOfShape", {"0"}, one, {{"value", torch::ones({1}, torch::kLong)}}),
       {torch::tensor({int64_t{2}})}},
      {make_node("TopK", {"0", "1"}, two), {doubles, torch::tensor({int64_t{2}})}},
      {make_node("NonZero", {"0"}, one), {floats}},
      {make_node("OneHot", {"0", "1", "2"}, one),
       {torch::tensor({int64_t{1}}), torch::tensor(int64_t{3}), torch::rand({2}, torch::kDouble)}},
  };
  for (const Case& each : cases) {
    Graph graph;
    graph.opset = 17;
    graph.nodes = {each.node};
    for (size_t i = 0; i < each.inputs.size(); ++i) {
      graph.inputs.push_back(make_info(std::to_string(i)));
      graph.inputs.back().type = element_type(each.inputs[i].scalar_type());
    }
    const auto types = tensor_types(graph);
    const Tensors made = make_op(each.node, graph.opset)->forward(each.inputs);
    for (size_t i = 0; i < each.node.outputs.size(); ++i) {
      EXPECT_EQ(types.at(each.node.outputs[i]), element_type(made[i].scalar_type()))
          << each.node.op << i;
    }
  }
}

// An operator that is not known gives what it is given, as most do.
TEST(TensorTypes, OfUnknownOperatorsAreThoseOfTheFirstInput) {
  Graph graph;
  graph.inputs = {make_info("x")};
  graph.inputs[0].type = ElementType::kDouble;
  graph.nodes = {make_node("NoSuchOperator", {"x"}, {"y"})};
  EXPECT_EQ(tensor_types(graph).at("y"), ElementType::kDouble);
  EXPECT_EQ(facts_of(graph.nodes[0]).traits, kNoTraits);
}

}  // namespace
}  // namespace fcp
