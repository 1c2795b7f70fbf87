// Random heads for the tests of bounds, and points of balls to try on them.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/bounds/bounds.h"
#include "fcp/nn/runtime/network.h"

#include "tests/nn/graphs.h"

namespace fcp {

inline const std::vector<BoundMethod> kAllMethods = {BoundMethod::kIbp, BoundMethod::kCrownIbp,
                                                     BoundMethod::kCrown, BoundMethod::kAlphaCrown};
inline const std::vector<Norm> kAllNorms = {Norm::kInf, Norm::kTwo, Norm::kOne};

inline std::shared_ptr<const Network> head_of(Graph graph) {
  return std::make_shared<const Network>(std::move(graph));
}

// x → node → y.
inline Graph single(const std::string& op, std::vector<int64_t> shape,
                    std::map<std::string, Attribute> attributes = {},
                    std::map<std::string, torch::Tensor> constants = {}, int64_t opset = 17) {
  Graph graph;
  graph.opset = opset;
  shape.insert(shape.begin(), kDynamic);
  graph.inputs = {make_info("x", shape)};
  graph.outputs = {make_info("y")};
  std::vector<std::string> inputs = {"x"};
  for (const auto& [name, value] : constants) {
    graph.initializers[name] = value;
    inputs.push_back(name);
  }
  graph.nodes = {make_node(op, inputs, {"y"}, std::move(attributes))};
  return graph;
}

// A perceptron with this activation in place of ReLU.
inline Graph make_activated(const std::vector<int64_t>& widths, const std::string& op,
                            const std::map<std::string, Attribute>& attributes = {},
                            const torch::Tensor& constant = {}) {
  Graph graph = make_mlp(widths);
  graph.opset = 20;
  for (Node& node : graph.nodes) {
    if (node.op != "Relu") continue;
    node.op = op;
    node.attributes = attributes;
    if (!constant.defined()) continue;
    node.inputs.push_back("constant");
    graph.initializers["constant"] = constant;
  }
  return graph;
}

struct NamedGraph {
  std::string name;
  Graph graph;
};

// One head for every activation.
inline std::vector<NamedGraph> activated_heads(const std::vector<int64_t>& widths) {
  std::vector<NamedGraph> heads;
  for (const char* op :
       {"Relu",     "LeakyRelu", "Elu",  "Selu",        "Celu",      "Sigmoid", "Tanh",
        "Softplus", "Gelu",      "Exp",  "HardSigmoid", "HardSwish", "Abs",     "Erf",
        "Mish",     "Softsign",  "Atan", "Sinh",        "Cosh",      "Asinh"}) {
    heads.push_back({op, make_activated(widths, op)});
  }
  heads.push_back({"LeakyRelu -0.5", make_activated(widths, "LeakyRelu", {{"alpha", -0.5f}})});
  heads.push_back({"LeakyRelu 1.5", make_activated(widths, "LeakyRelu", {{"alpha", 1.5f}})});
  heads.push_back({"Elu 2", make_activated(widths, "Elu", {{"alpha", 2.0f}})});
  heads.push_back(
      {"Gelu tanh", make_activated(widths, "Gelu", {{"approximate", std::string("tanh")}})});
  heads.push_back({"PRelu", make_activated(widths, "PRelu", {}, torch::full({1}, 0.3))});
  heads.push_back({"PRelu -1.2", make_activated(widths, "PRelu", {}, torch::full({1}, -1.2))});
  heads.push_back({"Clip", make_activated(widths, "Clip", {}, torch::tensor(-0.2f))});
  heads.push_back({"Pow 2", make_activated(widths, "Pow", {}, torch::tensor(2.0f))});
  heads.push_back({"Pow 3", make_activated(widths, "Pow", {}, torch::tensor(3.0f))});
  return heads;
}

// Conv → MaxPool → Sigmoid → Resize → Concat with itself negated → ConvTranspose → Reshape → Gemm.
inline Graph make_mixed_head() {
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, 2, 6, 6})};
  graph.outputs = {make_info("y", {kDynamic, 3})};
  graph.initializers["w1"] = torch::randn({3, 2, 3, 3}) * 0.4;
  graph.initializers["b1"] = torch::randn({3});
  graph.initializers["scales"] = torch::tensor({1.0f, 1.0f, 2.0f, 2.0f});
  graph.initializers["w2"] = torch::randn({6, 2, 2, 2}) * 0.3;
  graph.initializers["shape"] = torch::tensor({int64_t{0}, int64_t{-1}}, torch::kLong);
  graph.initializers["w3"] = torch::randn({3, 98}) * 0.1;
  graph.initializers["b3"] = torch::randn({3});
  const std::vector<int64_t> two = {2, 2};
  graph.nodes = {
      make_node("Conv", {"x", "w1", "b1"}, {"c"}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}),
      make_node("MaxPool", {"c"}, {"p"}, {{"kernel_shape", two}, {"strides", two}}),
      make_node("Sigmoid", {"p"}, {"s"}),
      make_node("Resize", {"s", "", "scales"}, {"r"}, {{"mode", std::string("linear")}}),
      make_node("Neg", {"r"}, {"n"}),
      make_node("Concat", {"r", "n"}, {"k"}, {{"axis", int64_t{1}}}),
      make_node("ConvTranspose", {"k", "w2"}, {"t"}),
      make_node("Reshape", {"t", "shape"}, {"f"}),
      make_node("Gemm", {"f", "w3", "b3"}, {"y"}, {{"transB", int64_t{1}}}),
  };
  return graph;
}

// The end of a segmentation network: 3×3 and 1×1 convolutions, then up by 8 in both directions.
inline Graph make_dense_head(int64_t channels, int64_t hidden, int64_t classes, int64_t height,
                             int64_t width) {
  Graph graph;
  graph.inputs = {make_info("v", {kDynamic, channels, height, width})};
  graph.outputs = {make_info("y", {kDynamic, classes, 8 * height, 8 * width})};
  graph.initializers["w1"] =
      torch::randn({hidden, channels, 3, 3}) / std::sqrt(9.0 * static_cast<double>(channels));
  graph.initializers["b1"] = torch::randn({hidden}) * 0.1;
  graph.initializers["w2"] =
      torch::randn({classes, hidden, 1, 1}) / std::sqrt(static_cast<double>(hidden));
  graph.initializers["b2"] = torch::randn({classes});
  graph.initializers["scales"] = torch::tensor({1.0f, 1.0f, 8.0f, 8.0f});
  graph.nodes = {
      make_node("Conv", {"v", "w1", "b1"}, {"c"}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}),
      make_node("Relu", {"c"}, {"r"}),
      make_node("Conv", {"r", "w2", "b2"}, {"l"}),
      make_node("Resize", {"l", "", "scales"}, {"y"}, {{"mode", std::string("linear")}}),
  };
  return graph;
}

// Points of the ball of each row, [N, …]: on its sphere, or inside, as `kind` says; a little
// inside of the border, so that the points' own rounding does not carry them out.
inline torch::Tensor sample_ball(const Ball& ball, int kind) {
  const torch::Tensor center = ball.center.to(torch::kDouble);
  torch::Tensor direction = torch::randn_like(center).flatten(1);
  if (ball.norm == Norm::kInf) {
    direction = kind == 0 ? torch::sign(direction) : torch::rand_like(direction) * 2 - 1;
  } else if (ball.norm == Norm::kTwo) {
    direction = direction / direction.norm(2, 1, true);
    if (kind != 0) direction = direction * torch::rand({center.size(0), 1}, torch::kDouble);
  } else if (kind == 0) {
    const torch::Tensor place = torch::randint(direction.size(1), {center.size(0), 1});
    direction =
        torch::zeros_like(direction).scatter(1, place, torch::sign(direction.gather(1, place)));
  } else {
    direction = direction / direction.abs().sum(1, true);
  }
  torch::Tensor offset =
      direction.view(center.sizes()) * rowwise(ball.radius.to(torch::kDouble), center) * (1 - 1e-6);
  if (ball.scale.defined()) offset = offset * ball.scale.to(torch::kDouble);
  return (center + offset).to(ball.center.scalar_type());
}

// The point of the ball to which the gradient points: steps of a linear maximisation over the ball.
inline torch::Tensor push(const Network& head, const Ball& ball, torch::Tensor point,
                          int64_t output, double sign, int steps) {
  for (int step = 0; step < steps; ++step) {
    const torch::Tensor x = point.detach().requires_grad_();
    const torch::Tensor y = head.forward(x).flatten(1).select(1, output).sum() * sign;
    const torch::Tensor gradient = torch::autograd::grad({y}, {x}, {}, false, false, true)[0];
    if (!gradient.defined()) return point;
    torch::Tensor g = gradient.flatten(1).to(torch::kDouble);
    g = g.masked_fill(g.isfinite().logical_not(), 0);  // or the point would leave the ball as NaN
    torch::Tensor direction;
    if (ball.norm == Norm::kInf) {
      direction = torch::sign(g);
    } else if (ball.norm == Norm::kTwo) {
      direction = g / (g.norm(2, 1, true) + 1e-30);
    } else {
      direction = torch::zeros_like(g);
      const torch::Tensor place = g.abs().argmax(1, true);
      direction = direction.scatter(1, place, torch::sign(g.gather(1, place)));
    }
    const torch::Tensor center = ball.center.to(torch::kDouble);
    torch::Tensor offset = direction.view(center.sizes()) *
                           rowwise(ball.radius.to(torch::kDouble), center) * (1 - 1e-6);
    if (ball.scale.defined()) offset = offset * ball.scale.to(torch::kDouble);
    // Half way from where we stand, but the whole way at last: an extreme point.
    const torch::Tensor target = center + offset;
    point = (step + 1 == steps ? target : (target + point.to(torch::kDouble)) / 2)
                .to(ball.center.scalar_type());
  }
  return point;
}

// What overflowed to no number at all must have no bounds.
inline bool contains(const Range& range, const torch::Tensor& y) {
  const torch::Tensor unbounded = (range.lower == -INFINITY).logical_and(range.upper == INFINITY);
  return (y >= range.lower)
      .logical_and(y <= range.upper)
      .logical_or(y.isnan().logical_and(unbounded))
      .all()
      .item<bool>();
}

}  // namespace fcp
