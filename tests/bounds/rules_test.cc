// Every operator by itself: whatever lies in the input's range comes out in the output's.
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/nn/runtime/bound_support.h"

#include "tests/bounds/operators.h"
#include "tests/bounds/soundness.h"

namespace fcp {
namespace {

// x Bᵀ(x): a product of two matrices that both vary, as in attention.
Graph product_of_two(const std::string& op, const std::map<std::string, Attribute>& attributes) {
  Graph graph = single(op, {3, 4}, attributes);
  graph.nodes.insert(graph.nodes.begin(), make_node("Tanh", {"x"}, {"t"}));
  graph.nodes.insert(graph.nodes.begin() + 1,
                     make_node("Transpose", {"t"}, {"u"}, {{"perm", Ints{0, 2, 1}}}));
  graph.nodes[2].inputs = {"x", "u"};
  return graph;
}

Graph of_domain(Graph graph, const std::string& domain) {
  graph.nodes.back().domain = domain;
  return graph;
}

std::vector<NamedGraph> linear_cases() {
  std::vector<NamedGraph> cases;
  const auto add = [&](const std::string& name, Graph graph) {
    cases.push_back({name, std::move(graph)});
  };
  const torch::Tensor matrix = torch::randn({4, 5});
  add("Gemm", single("Gemm", {4}, {}, {{"b", matrix}, {"c", torch::randn({5})}}));
  add("Gemm alpha < 0", single("Gemm", {4}, {{"alpha", -0.7f}, {"beta", -1.3f}},
                               {{"b", matrix}, {"c", torch::randn({5})}}));
  add("MatMul", single("MatMul", {3, 4}, {}, {{"b", matrix}}));
  Graph left = single("MatMul", {4, 2}, {}, {{"b", torch::randn({3, 4})}});
  left.nodes[0].inputs = {"b", "x"};
  add("MatMul constant on the left", left);
  add("Conv strided, grouped",
      single("Conv", {4, 7, 6},
             {{"strides", Ints{2, 1}},
              {"pads", Ints{1, 0, 2, 1}},
              {"group", int64_t{2}},
              {"dilations", Ints{1, 2}}},
             {{"w", torch::randn({6, 2, 3, 2})}, {"z", torch::randn({6})}}));
  add("Conv 1d", single("Conv", {2, 8}, {{"auto_pad", std::string("SAME_UPPER")}},
                        {{"w", torch::randn({3, 2, 3})}}));
  add("Conv 3d", single("Conv", {1, 3, 4, 4}, {}, {{"w", torch::randn({2, 1, 2, 2, 2})}}));
  add("ConvTranspose", single("ConvTranspose", {4, 3, 3},
                              {{"strides", Ints{2, 2}},
                               {"group", int64_t{2}},
                               {"output_padding", Ints{1, 0}},
                               {"pads", Ints{1, 0, 0, 1}}},
                              {{"w", torch::randn({4, 3, 3, 2})}, {"z", torch::randn({6})}}));
  add("BatchNormalization", single("BatchNormalization", {3, 4}, {},
                                   {{"a", torch::randn({3})},
                                    {"b", torch::randn({3})},
                                    {"c", torch::randn({3})},
                                    {"d", torch::rand({3}) + 0.1}}));
  add("Add", single("Add", {3, 4}, {}, {{"c", torch::randn({3, 1})}}));
  add("Add of two", joined("Add"));
  add("Sub of two", joined("Sub"));
  add("Sum of two", joined("Sum"));
  add("Mean of two", joined("Mean"));
  add("Max of two", joined("Max"));
  add("Min of two", joined("Min"));
  add("Max with constant", single("Max", {4}, {}, {{"c", torch::randn({4})}}));
  add("Min with constant", single("Min", {4}, {}, {{"c", torch::randn({4})}}));
  add("Mul", single("Mul", {4}, {}, {{"c", torch::randn({4})}}));
  add("Div", single("Div", {4}, {}, {{"c", torch::randn({4})}}));
  Graph from = single("Sub", {4}, {}, {{"c", torch::randn({4})}});
  from.nodes[0].inputs = {"c", "x"};
  add("Sub from constant", from);
  add("Neg", single("Neg", {4}));
  add("AveragePool",
      single("AveragePool", {2, 5, 5},
             {{"kernel_shape", Ints{3, 2}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 0, 1, 1}}}));
  add("AveragePool counting padding",
      single("AveragePool", {2, 6},
             {{"kernel_shape", Ints{3}}, {"pads", Ints{1, 1}}, {"count_include_pad", int64_t{1}}}));
  add("MaxPool",
      single("MaxPool", {2, 5, 5},
             {{"kernel_shape", Ints{3, 2}}, {"strides", Ints{2, 1}}, {"pads", Ints{1, 0, 1, 1}}}));
  add("MaxPool dilated, ceil", single("MaxPool", {2, 7},
                                      {{"kernel_shape", Ints{2}},
                                       {"dilations", Ints{2}},
                                       {"strides", Ints{2}},
                                       {"ceil_mode", int64_t{1}}}));
  add("GlobalAveragePool", single("GlobalAveragePool", {2, 3, 3}));
  add("GlobalMaxPool", single("GlobalMaxPool", {2, 3, 3}));
  add("ReduceMean", single("ReduceMean", {3, 4}, {{"axes", Ints{1}}, {"keepdims", int64_t{0}}}));
  add("ReduceMax", single("ReduceMax", {3, 4}, {{"axes", Ints{2}}, {"keepdims", int64_t{0}}}));
  add("ReduceMin", single("ReduceMin", {3, 4}, {{"axes", Ints{1}}}));
  add("ReduceSum", single("ReduceSum", {3, 4}, {}, {{"a", ints({1, 2})}}));
  add("Flatten", single("Flatten", {3, 4}));
  add("Reshape", single("Reshape", {3, 4}, {}, {{"s", ints({0, 2, 6})}}));
  add("Transpose", single("Transpose", {3, 4}, {{"perm", Ints{0, 2, 1}}}));
  add("Squeeze", single("Squeeze", {1, 4}, {}, {{"a", ints({1})}}));
  add("Unsqueeze", single("Unsqueeze", {4}, {}, {{"a", ints({1})}}));
  add("Concat", joined("Concat", {{"axis", int64_t{1}}}));
  add("Slice", single("Slice", {6}, {},
                      {{"a", ints({5})}, {"b", ints({-7})}, {"c", ints({1})}, {"d", ints({-2})}}));
  add("Pad",
      single("Pad", {3, 4}, {}, {{"p", ints({0, 1, 0, 0, 0, 2})}, {"v", torch::tensor(0.5f)}}));
  add("Pad reflect",
      single("Pad", {3, 4}, {{"mode", std::string("reflect")}}, {{"p", ints({0, 1, 0, 0, 0, 2})}}));
  add("Expand", single("Expand", {3, 1}, {}, {{"s", ints({1, 3, 4})}}));
  add("Tile", single("Tile", {3}, {}, {{"r", ints({1, 2})}}));
  add("Gather", single("Gather", {5}, {{"axis", int64_t{1}}}, {{"i", ints({3, 0, 0})}}));
  add("DepthToSpace", single("DepthToSpace", {4, 2, 2}, {{"blocksize", int64_t{2}}}));
  add("Identity", single("Identity", {4}));
  add("Dropout", single("Dropout", {4}));
  add("Cast", single("Cast", {4}, {{"to", int64_t{11}}}));
  add("Cast half", single("Cast", {4}, {{"to", int64_t{10}}}));
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const char* place : {"half_pixel", "asymmetric", "align_corners"}) {
      Graph graph = single(
          "Resize", {2, 3, 4},
          {{"mode", std::string(mode)}, {"coordinate_transformation_mode", std::string(place)}},
          {{"s", torch::tensor({1.0f, 1.0f, 1.7f, 2.0f})}});
      graph.nodes[0].inputs = {"x", "", "s"};
      add(concat("Resize ", mode, " ", place), graph);
    }
  }
  Graph split = single("Split", {6}, {{"axis", int64_t{1}}});
  split.nodes[0].outputs = {"a", "b"};
  split.nodes.push_back(make_node("Sub", {"a", "b"}, {"y"}));
  add("Split", split);
  add("Mul of two", joined("Mul"));
  add("MatMul of two", product_of_two("MatMul", {}));
  add("Trilu", single("Trilu", {3, 4}, {{"upper", int64_t{0}}}));
  add("CumSum", single("CumSum", {5}, {{"exclusive", int64_t{1}}}, {{"a", ints({1})}}));
  add("SpaceToDepth", single("SpaceToDepth", {2, 4, 4}, {{"blocksize", int64_t{2}}}));
  add("Einsum", single("Einsum", {3, 4}, {{"equation", std::string("nij,jk->nki")}},
                       {{"b", torch::randn({4, 5})}}));
  add("Einsum of two", product_of_two("Einsum", {{"equation", std::string("nij,njk->nki")}}));
  add("Einsum of one", single("Einsum", {3, 4}, {{"equation", std::string("n i j -> n j")}}));
  add("Scaler", of_domain(single("Scaler", {3},
                                 {{"offset", std::vector<float>{1, 2, 3}},
                                  {"scale", std::vector<float>{2, -1, 0.5f}}}),
                          "ai.onnx.ml"));
  add("LinearRegressor",
      of_domain(single("LinearRegressor", {3},
                       {{"coefficients", std::vector<float>{1, -2, 3, 0.5f, 0.1f, -1}},
                        {"intercepts", std::vector<float>{0.3f, -4}},
                        {"targets", int64_t{2}}}),
                "ai.onnx.ml"));
  return cases;
}

std::vector<NamedGraph> jumping_cases() {
  std::vector<NamedGraph> cases;
  for (const char* op : {"Floor", "Ceil", "Round", "Sign", "ThresholdedRelu"}) {
    cases.push_back({op, single(op, {6})});
  }
  cases.push_back({"Shrink", single("Shrink", {6}, {{"lambd", 0.7f}, {"bias", 0.3f}})});
  cases.push_back({"TopK", single("TopK", {6}, {}, {{"k", ints({3})}})});
  cases.push_back({"Binarizer", of_domain(single("Binarizer", {4}), "ai.onnx.ml")});
  Graph quantized = single("QuantizeLinear", {4}, {}, {{"s", torch::tensor(0.05f)}});
  quantized.initializers["z"] = torch::tensor(3, torch::kChar);
  quantized.nodes[0].inputs = {"x", "s", "z"};
  quantized.nodes[0].outputs = {"q"};
  quantized.nodes.push_back(make_node("DequantizeLinear", {"q", "s", "z"}, {"y"}));
  cases.push_back({"QuantizeLinear", quantized});
  return cases;
}

void check(const NamedGraph& named, const std::vector<BoundMethod>& methods) {
  const auto head = head_of(named.graph);
  std::vector<int64_t> shape = head->inputs()[0].shape;
  shape[0] = 3;
  for (const Norm norm : kAllNorms) {
    const Ball ball = {torch::randn(shape), torch::tensor({0.0f, 0.3f, 2.0f}), norm, {}};
    std::vector<torch::Tensor> answers;
    for (int i = 0; i < 24; ++i) {
      answers.push_back(head->forward(sample_ball(ball, i % 2)).to(torch::kFloat));
    }
    for (const BoundMethod method : methods) {
      for (const bool outward : {true, false}) {
        BoundOptions options;
        options.method = method;
        options.outward = outward;
        options.iterations = 4;
        const Range range = make_bounds(head, options)->ranges(ball)[0];
        for (const torch::Tensor& y : answers) {
          ASSERT_EQ(range.lower.sizes(), y.sizes()) << named.name;
          const double slack = outward ? 0 : 1e-5;  // plain arithmetic may be off by its rounding
          const Range wide = {range.lower - slack * (1 + y.abs()),
                              range.upper + slack * (1 + y.abs())};
          const bool coarse =  // rounding of more than that
              named.name == "Cast half" || named.name == "LayerNormalization of one number";
          if (coarse && !outward) continue;
          EXPECT_TRUE(contains(wide, y)) << named.name << " " << bound_name(method) << " norm "
                                         << norm_name(norm) << " outward " << outward;
        }
      }
    }
  }
}

TEST(Rules, LinearOpsContainWhatTheyCompute) {
  torch::manual_seed(10);
  for (const NamedGraph& named : linear_cases()) {
    SCOPED_TRACE(named.name);
    for (const BoundSupport support : bound_support(Network(named.graph))) {
      EXPECT_EQ(support, BoundSupport::kLinear);
    }
    check(named, kAllMethods);
  }
}

TEST(Rules, SmoothOpsContainWhatTheyCompute) {
  torch::manual_seed(17);
  for (const NamedGraph& named : smooth_cases()) {
    SCOPED_TRACE(named.name);
    EXPECT_EQ(bound_support(Network(named.graph)).back(), BoundSupport::kLinear);
    check(named, kAllMethods);
    check_soundness(named, 4, {4, 1, 0.3});
  }
}

// A plane along the tangent is off by the square of the radius: a tenth of the radius, a hundredth
// of what the bounds are wider than the head's own slope.
TEST(Rules, SmoothOpsFollowTheirTangents) {
  torch::manual_seed(18);
  for (const NamedGraph& named : smooth_cases()) {
    if (named.name == "ReduceL1" || named.name == "LayerNormalization of one number") continue;
    const auto head = head_of(named.graph);
    std::vector<int64_t> shape = head->inputs()[0].shape;
    shape[0] = 2;
    const torch::Tensor center = torch::randn(shape, torch::kDouble).to(torch::kFloat);
    const torch::Tensor x = center.clone().requires_grad_();
    const torch::Tensor first = head->forward(x).flatten(1).select(1, 0);
    const torch::Tensor slope =
        torch::autograd::grad({first.sum()}, {x})[0].abs().flatten(1).sum(1);
    BoundOptions options;
    options.method = BoundMethod::kCrown;
    const auto excess = [&](double radius) {
      const Ball ball = {center, torch::full({2}, radius), Norm::kInf, {}};
      const Range range = make_bounds(head, options)->ranges(ball)[0];
      const torch::Tensor width = (range.upper - range.lower).flatten(1).select(1, 0);
      return (width - slope * (2 * radius)).max().item<double>();
    };
    EXPECT_LT(excess(0.003), 0.02 * excess(0.03) + 1e-4) << named.name;
  }
}

TEST(Rules, IntervalOpsContainWhatTheyCompute) {
  torch::manual_seed(11);
  for (const NamedGraph& named : jumping_cases()) {
    SCOPED_TRACE(named.name);
    EXPECT_EQ(bound_support(Network(named.graph)).back(), BoundSupport::kInterval);
    check(named, kAllMethods);
  }
  const NamedGraph mixing = {"Transpose of the batch", single("Transpose", {3})};
  EXPECT_EQ(bound_support(Network(mixing.graph)).back(), BoundSupport::kInterval);
  check(mixing, {BoundMethod::kIbp});
}

// Linear ops lose nothing over a box, nor over any ball when walked back.
TEST(Rules, AffineBoundsAreReached) {
  torch::manual_seed(12);
  for (const NamedGraph& named : linear_cases()) {
    const auto head = head_of(named.graph);
    if (named.name.find("of two") != std::string::npos || named.name == "Concat") continue;
    if (named.name.rfind("Max", 0) == 0 || named.name.rfind("Min", 0) == 0 ||
        named.name.find("ReduceM") == 0 || named.name == "GlobalMaxPool" ||
        named.name == "Cast half") {
      continue;
    }
    std::vector<int64_t> shape = head->inputs()[0].shape;
    shape[0] = 2;
    for (const Norm norm : kAllNorms) {
      const Ball ball = {torch::randn(shape), torch::tensor({0.5f, 1.5f}), norm, {}};
      BoundOptions options;
      options.method = BoundMethod::kCrown;
      options.outward = false;
      const Range range = make_bounds(head, options)->ranges(ball)[0];
      const torch::Tensor upper = range.upper.flatten(1), lower = range.lower.flatten(1);
      for (int64_t k = 0; k < std::min<int64_t>(upper.size(1), 6); ++k) {
        const torch::Tensor high = head->forward(push(*head, ball, ball.center, k, 1, 1));
        const torch::Tensor low = head->forward(push(*head, ball, ball.center, k, -1, 1));
        EXPECT_TRUE(torch::allclose(high.flatten(1).select(1, k).to(torch::kFloat),
                                    upper.select(1, k), 1e-4, 1e-4))
            << named.name << " norm " << norm_name(norm);
        EXPECT_TRUE(torch::allclose(low.flatten(1).select(1, k).to(torch::kFloat),
                                    lower.select(1, k), 1e-4, 1e-4))
            << named.name << " norm " << norm_name(norm);
      }
    }
  }
}

}  // namespace
}  // namespace fcp
