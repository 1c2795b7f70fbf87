// Networks read, checked, cut and written without libtorch.
#include <cmath>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/graph/onnx_reader.h"
#include "fcp/nn/graph/onnx_tensor.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/nn/graph/output_kind.h"
#include "fcp/nn/graph/tensor_types.h"

#include "tests/nn/nodes.h"

namespace fcp {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Graph read_plain(const std::string& bytes) { return parse_onnx(bytes, "m.onnx", "", {}); }

std::string reading_complaint(const Graph& graph) {
  try {
    read_plain(serialize_onnx(graph));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(PlainOnnx, WritingAndReadingKeepsEveryByte) {
  Graph graph = make_layers();
  graph.metadata["key"] = "value";
  graph.nodes[0].attributes["tensor"] = constant_tensor<int64_t>({1, 2});
  const std::string bytes = serialize_onnx(graph);
  const Graph again = read_plain(bytes);
  EXPECT_EQ(serialize_onnx(again), bytes);
  const ConstantTensor& weight = again.initializers.at("w2");
  EXPECT_EQ(weight.shape(), (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(weight.number(2), 0.5);
  EXPECT_EQ(std::get<ConstantTensor>(again.nodes[0].attributes.at("tensor")).integers(),
            (std::vector<int64_t>{1, 2}));
}

TEST(PlainOnnx, NumbersOfFourAndEightBitsAreReadAsTheyAreMeant) {
  const auto read = [](onnx::TensorProto::DataType type, const std::string& raw) {
    onnx::ModelProto model;
    model.ParseFromString(serialize_onnx(make_layers()));
    auto* tensor = model.mutable_graph()->add_initializer();
    tensor->set_name("narrow");
    tensor->set_data_type(type);
    tensor->add_dims(2);
    tensor->set_raw_data(raw);
    const Graph graph = read_plain(model.SerializeAsString());
    for (const auto& [name, value] : graph.initializers) {
      if (name.starts_with("narrow")) return std::vector{value.number(0), value.number(1)};
    }
    return std::vector<double>();
  };
  EXPECT_THAT(read(onnx::TensorProto::UINT16, {"\xff\xff\x01\x00", 4}), ElementsAre(65535, 1));
  EXPECT_THAT(read(onnx::TensorProto::UINT32, {"\xff\xff\xff\xff\x01\x00\x00\x00", 8}),
              ElementsAre(4294967295.0, 1));
  constexpr auto kUint4 = static_cast<onnx::TensorProto::DataType>(21);
  constexpr auto kInt4 = static_cast<onnx::TensorProto::DataType>(22);
  constexpr auto kFloat8E5M2 = static_cast<onnx::TensorProto::DataType>(19);
  EXPECT_THAT(read(kUint4, "\xf1"), ElementsAre(1, 15));
  EXPECT_THAT(read(kInt4, "\xf1"), ElementsAre(1, -1));
  EXPECT_THAT(read(kFloat8E5M2, {"\x3c\xc0", 2}), ElementsAre(1, -2));
}

TEST(PlainOnnx, WhatIsWrongIsNamed) {
  Graph graph = make_layers();
  graph.initializers["w2"] = constant_tensor<float>({1, INFINITY, 0}, {3, 1});
  EXPECT_EQ(reading_complaint(graph),
            "m.onnx: Gemm node 'y_node': its weight 'w2' is infinite at element "
            "1 (from 0), expected a finite number");
  graph = make_layers();
  graph.nodes[2].inputs[0] = "nothing";
  EXPECT_THAT(reading_complaint(graph), HasSubstr("needs 'nothing', which nothing makes"));
}

TEST(PlainOnnx, TypesFollowFromTheTableOfOperators) {
  Graph graph = make_layers();
  graph.nodes.push_back(make_node("Cast", {"h1"}, {"i"}, {{"to", int64_t{7}}}));
  const std::map<std::string, ElementType> types = tensor_types(graph);
  EXPECT_EQ(types.at("h1"), ElementType::kFloat);
  EXPECT_EQ(types.at("i"), ElementType::kInt64);
}

TEST(PlainOnnx, NetworksAreCut) {
  const Graph graph = make_layers();
  EXPECT_THAT(valid_cuts(graph), ElementsAre("x", "z1", "h1"));
  EXPECT_EQ(resolve_cut(graph, "-1"), "h1");
  const CutGraph parts =
      cut(graph, "h1", [](const Graph& whole, const std::string&) { return whole; });
  EXPECT_EQ(parts.backbone.nodes.size(), 2u);
  EXPECT_EQ(parts.head.nodes.size(), 1u);
  EXPECT_TRUE(parts.head.initializers.contains("w2"));
  EXPECT_FALSE(parts.head.initializers.contains("w1"));
}

// Found by fuzz_graph: a Div of one input.
TEST(PlainOnnx, NodesWithoutTheirInputsMeanNothing) {
  Graph graph = make_layers();
  graph.nodes[2] = make_node("Div", {"h1"}, {"y"});
  EXPECT_EQ(output_meaning(graph, "y").kind, OutputKind::kPlain);
  graph.nodes[2] = make_node("Identity", {}, {"y"});
  EXPECT_EQ(output_meaning(graph, "y").kind, OutputKind::kPlain);
}

// A condition that a constant says is known; one that an operator computes would have to run.
TEST(PlainOnnx, ConditionsAreKnownFromConstants) {
  Graph branch;
  branch.outputs = {make_info("b")};
  branch.nodes = {make_node("Neg", {"h1"}, {"b"})};
  branch.inputs = {make_info("h1")};
  Graph graph = make_layers();
  graph.nodes[2].inputs[0] = "chosen";
  Node choice = make_node("If", {"truth", "h1"}, {"chosen"},
                          {{"then_branch", std::make_shared<const Graph>(branch)},
                           {"else_branch", std::make_shared<const Graph>(branch)}});
  choice.captured = 1;
  graph.nodes.insert(graph.nodes.begin() + 2, choice);
  graph.initializers["truth"] = ConstantTensor::zeros(ElementType::kBool, {});
  const auto operators = [](const Graph& read) {
    std::vector<std::string> names;
    for (const Node& node : read.nodes) names.push_back(node.op);
    return names;
  };
  EXPECT_THAT(operators(read_plain(serialize_onnx(graph))),
              ElementsAre("Gemm", "Relu", "Neg", "Identity", "Gemm"));
  graph.initializers["number"] = constant_tensor<float>({1}, {});
  graph.initializers.erase("truth");
  graph.nodes.insert(graph.nodes.begin(),
                     make_node("Cast", {"number"}, {"truth"}, {{"to", int64_t{9}}}));
  EXPECT_THAT(operators(read_plain(serialize_onnx(graph))), testing::Contains("If"));
}

}  // namespace
}  // namespace fcp
