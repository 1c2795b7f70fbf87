#include "fcp/nn/ops/ml/text_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/nn/runtime/network.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;
using Integers = std::vector<int64_t>;
using Texts = std::vector<std::string>;

Node make_encoder(const std::string& op, const std::string& from, const std::string& to,
                  std::map<std::string, Attribute> attributes) {
  Node node = make_node(op, {from}, {to}, std::move(attributes));
  node.domain = "ai.onnx.ml";
  return node;
}

// Text [N, 2], columns city and size: the first one-hot, the second numbered.
Graph two_columns(int64_t opset) {
  Graph graph;
  graph.opset = opset;
  graph.domains["ai.onnx.ml"] = 2;
  graph.inputs = {make_info("X", {kDynamic, 2}), make_info("age", {kDynamic, 1})};
  graph.outputs = {make_info("y")};
  graph.initializers = {{"first", torch::tensor(Integers{0})},
                        {"second", torch::tensor(Integers{1})},
                        {"flat", torch::tensor(Integers{-1, 2})}};
  graph.nodes = {
      make_node("Gather", {"X", "first"}, {"city"}, {{"axis", int64_t{1}}}),
      make_node("Gather", {"X", "second"}, {"size"}, {{"axis", int64_t{1}}}),
      make_encoder("OneHotEncoder", "city", "hot", {{"cats_strings", Texts{"Paris", "Rome"}}}),
      make_node("Reshape", {"hot", "flat"}, {"places"}),
      make_encoder("LabelEncoder", "size", "code",
                   {{"keys_strings", Texts{"l", "m", "s"}},
                    {"values_floats", std::vector<float>{30, 20, 10}},
                    {"default_float", -1.0f}}),
      make_node("Concat", {"places", "code", "age"}, {"y"}, {{"axis", int64_t{1}}})};
  return graph;
}

TEST(TextInputs, BecomeNumbers) {
  for (const int64_t opset : {11, 15}) {
    Graph graph = two_columns(opset);
    number_texts(graph, {"X"});
    EXPECT_THAT(graph.inputs[0].shape, ElementsAre(kDynamic, 2 * 5));
    const std::vector<TextInput> texts = text_inputs(graph);
    ASSERT_EQ(texts.size(), 1u);
    EXPECT_EQ(texts[0].columns, 2);
    EXPECT_THAT(texts[0].categories, ElementsAre("Paris", "Rome", "l", "m", "s"));
    // Rome and s; Paris and m; neither is known.
    torch::Tensor x = torch::zeros({3, 10});
    x[0][1] = x[0][5 + 4] = x[1][0] = x[1][5 + 3] = 1;
    const torch::Tensor age = torch::tensor({{7.0f}, {8.0f}, {9.0f}});
    const std::vector<float> expected = {0, 1, 10, 7, 1, 0, 20, 8, 0, 0, -1, 9};
    EXPECT_TRUE(
        torch::equal(Network(graph).run({x, age})[0], torch::tensor(expected).reshape({3, 4})));
  }
}

TEST(TextInputs, AreReadByEncodersAlone) {
  Graph other = two_columns(15);
  other.nodes[3] = make_node("Equal", {"city", "city"}, {"places"});
  EXPECT_THAT([&] { number_texts(other, {"X"}); },
              ThrowsMessage<Error>(HasSubstr("reads text; only OneHotEncoder and LabelEncoder")));
  Graph open = two_columns(15);
  open.inputs[0].shape[1] = kDynamic;
  EXPECT_THAT(
      [&] { number_texts(open, {"X"}); },
      ThrowsMessage<Error>(HasSubstr("input 'X' has text in an unknown number of columns")));
  EXPECT_THAT(text_inputs(make_mlp({2, 1})), IsEmpty());
}

}  // namespace
}  // namespace fcp
