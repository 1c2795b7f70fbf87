#include "fcp/nn/graph/input_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/nn/graph/onnx_reader.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/nn/runtime/network.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

InputLayout layout_of_several() { return layout_of(make_several_inputs().inputs, {{3}, {2}, {}}); }

Tensors inputs_of_several() {
  return {torch::tensor({{1, 2, 3}, {9, 0, 4}}, torch::kLong), torch::rand({2, 2}),
          torch::tensor({true, false})};
}

// The inputs side by side.
torch::Tensor rows_of(const Tensors& inputs) {
  Tensors parts;
  for (const torch::Tensor& input : inputs) {
    parts.push_back(input.reshape({input.size(0), -1}).to(torch::kDouble));
  }
  return torch::cat(parts, 1);
}

TEST(InputLayout, LiesSideBySide) {
  const InputLayout layout = layout_of_several();
  EXPECT_EQ(layout.columns(), 6);
  EXPECT_TRUE(layout.wide());
  EXPECT_EQ(layout.places[1].first, 3);
  EXPECT_EQ(layout.place_of(5).input.name, "flag");
  EXPECT_EQ(layout.place_of(2).column_name(2), "ids[2]");
  EXPECT_EQ(layout.place_of(5).column_name(0), "flag");
}

TEST(InputLayout, PackedNetworkGivesTheSameAnswers) {
  const Graph graph = make_several_inputs();
  const Graph packed = pack_inputs(graph, layout_of_several());
  ASSERT_TRUE(is_packed(packed));
  EXPECT_EQ(packed.inputs[0].type, ElementType::kDouble);
  const Tensors inputs = inputs_of_several();
  const torch::Tensor expected = Network(graph).run(inputs)[0];
  EXPECT_TRUE(torch::equal(Network(packed).run({rows_of(inputs)})[0], expected));
}

TEST(InputLayout, KeepsNumbersThatFloat32Rounds) {
  Graph graph;
  graph.inputs = {make_info("id", {kDynamic, 1}), make_info("other", {kDynamic, 1})};
  graph.inputs[0].type = ElementType::kInt64;
  graph.outputs = {make_info("y", {kDynamic, 1})};
  graph.nodes = {make_node("Cast", {"other"}, {"whole"}, {{"to", int64_t{7}}}),
                 make_node("Add", {"id", "whole"}, {"y"})};
  const Graph packed = pack_inputs(graph, layout_of(graph.inputs, {{1}, {1}}));
  const int64_t id = (int64_t{1} << 52) + 1;
  const torch::Tensor rows = torch::tensor({{static_cast<double>(id), 0.0}}, torch::kDouble);
  EXPECT_EQ(Network(packed).run({rows})[0].item<int64_t>(), id);
}

TEST(InputLayout, UnpackingGivesTheFileBack) {
  const Graph graph = make_several_inputs();
  const Graph packed = pack_inputs(graph, layout_of_several());
  const Graph again = unpack_inputs(packed);
  ASSERT_EQ(again.inputs.size(), 3u);
  EXPECT_EQ(again.inputs[0].dimension_names[1], "length");
  EXPECT_THAT(again.inputs[0].shape, ElementsAre(kDynamic, kDynamic));
  EXPECT_EQ(again.nodes.size(), graph.nodes.size());
  EXPECT_EQ(again.initializers.size(), graph.initializers.size());
  // The metadata tell how to pack it again, through a file too.
  const Graph read = parse_onnx(serialize_onnx(again), "several");
  const Graph twice = pack_inputs(read, *layout_of(read));
  const Tensors inputs = inputs_of_several();
  EXPECT_TRUE(
      torch::equal(Network(twice).run({rows_of(inputs)})[0], Network(graph).run(inputs)[0]));
  EXPECT_FALSE(layout_of(graph).has_value());
  EXPECT_EQ(unpack_inputs(graph).inputs.size(), 3u);
}

TEST(InputLayout, NodesThatReadTheRowsGetThemTogetherAgain) {
  Graph packed = pack_inputs(make_several_inputs(), layout_of_several());
  packed.nodes.push_back(make_node("ReduceSum", {kRowsInput, "axes"}, {"total"}));
  packed.outputs.push_back(make_info("total"));
  packed.outputs.back().type = ElementType::kDouble;
  const Tensors inputs = inputs_of_several();
  const Network whole(unpack_inputs(packed));
  ASSERT_EQ(whole.inputs().size(), 3u);
  const Tensors outputs = whole.run(inputs);
  EXPECT_TRUE(torch::allclose(outputs[1].flatten(), rows_of(inputs).sum(1)));
}

// An export of a score on the rows repeats nodes of the packing, whose constants it reads.
TEST(InputLayout, TensorsOfThePackingThatAreReadStay) {
  const Graph graph = make_several_inputs();
  Graph packed = pack_inputs(graph, layout_of_several());
  Node twin = packed.nodes[0];
  twin.name = "twin";
  twin.outputs = {"twin"};
  packed.nodes.push_back(twin);
  packed.outputs.push_back(make_info("twin"));
  Graph unpacked = unpack_inputs(packed);
  sort_and_check(unpacked);  // every input of a node is there
  EXPECT_EQ(unpacked.inputs.size(), graph.inputs.size());
}

TEST(InputLayout, RefusesWhatDoesNotFit) {
  const std::vector<TensorInfo> inputs = make_several_inputs().inputs;
  const auto complaint = [&](const std::vector<std::vector<int64_t>>& shapes) -> std::string {
    try {
      layout_of(inputs, shapes);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(complaint({{3}, {5}, {}}),
            "input 'scale': found rows of shape [N, 5], expected [N, 2]");
  EXPECT_THAT(complaint({{0}, {2}, {}}), HasSubstr("expected at least one number"));
  Graph damaged = make_several_inputs();
  damaged.metadata[kInputsKey] = "[{}]";
  EXPECT_THROW(layout_of(damaged), Error);
  Graph other = pack_inputs(make_several_inputs(), layout_of_several());
  const InputLayout layout = *layout_of(other);
  other = unpack_inputs(other);
  std::swap(other.inputs[0], other.inputs[1]);
  EXPECT_THROW(pack_inputs(other, layout), Error);
}

}  // namespace
}  // namespace fcp
