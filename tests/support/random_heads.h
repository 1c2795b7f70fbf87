// Random small networks over all operators that have bounds: the operators one by one are tested
// elsewhere, here their compositions are. A network is a chain of pieces on rows of numbers, each
// of one to four nodes: layers, functions of one number, sums and products of two branches,
// pictures of one row with convolutions and pools, tokens with attention, norms and shapes.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/nn/graph/graph.h"

#include "tests/nn/graphs.h"

namespace fcp {

class RandomHead {
 public:
  explicit RandomHead(uint64_t seed) : random_(seed) {
    width_ = 2 + below(5);
    graph_.opset = 23;
    graph_.inputs = {make_info("x", {kDynamic, width_})};
  }

  Graph make(int64_t pieces, int64_t outputs) {
    for (int64_t i = 0; i < pieces; ++i) add_piece();
    layer(outputs);
    graph_.nodes.back().outputs = {"y"};
    graph_.outputs = {make_info("y", {kDynamic, outputs})};
    return std::move(graph_);
  }

 private:
  int64_t below(int64_t count) {
    return static_cast<int64_t>(random_.below(static_cast<uint64_t>(count)));
  }

  torch::Tensor normal(const std::vector<int64_t>& shape, double scale = 1) {
    torch::Tensor values = torch::empty(shape, torch::kFloat);
    for (int64_t i = 0; i < values.numel(); ++i) {
      values.data_ptr<float>()[i] = static_cast<float>(random_.normal() * scale);
    }
    return values;
  }

  std::string constant(const torch::Tensor& value) {
    const std::string name = concat("c", count_++);
    graph_.initializers[name] = value;
    return name;
  }
  std::string integers(std::vector<int64_t> values) {
    return constant(torch::tensor(values, torch::kLong));
  }

  std::string add(const std::string& op, std::vector<std::string> inputs,
                  std::map<std::string, Attribute> attributes = {}) {
    const std::string name = concat("t", count_++);
    graph_.nodes.push_back(make_node(op, std::move(inputs), {name}, std::move(attributes)));
    return name;
  }

  void layer(int64_t outputs) {
    const double scale = 1 / std::sqrt(static_cast<double>(width_));
    if (below(2) == 0) {
      at_ = add("Gemm",
                {at_, constant(normal({outputs, width_}, scale)), constant(normal({outputs}))},
                {{"transB", int64_t{1}}, {"alpha", 0.5f + static_cast<float>(below(3))}});
    } else {
      at_ = add("MatMul", {at_, constant(normal({width_, outputs}, scale))});
    }
    width_ = outputs;
  }

  void function() {
    static const std::vector<std::string> kSmooth = {"Relu",
                                                     "LeakyRelu",
                                                     "Elu",
                                                     "Selu",
                                                     "Celu",
                                                     "Sigmoid",
                                                     "Tanh",
                                                     "Softplus",
                                                     "Softsign",
                                                     "Gelu",
                                                     "Mish",
                                                     "HardSigmoid",
                                                     "HardSwish",
                                                     "Abs",
                                                     "Neg",
                                                     "Erf",
                                                     "Atan",
                                                     "Identity",
                                                     "ThresholdedRelu",
                                                     "Asinh",
                                                     "Sin",
                                                     "Cos",
                                                     "Shrink",
                                                     "Floor",
                                                     "Round",
                                                     "Sign"};
    at_ = add(kSmooth[static_cast<size_t>(below(static_cast<int64_t>(kSmooth.size())))], {at_});
  }

  // Functions that are not defined everywhere, or grow without end.
  void careful_function() {
    const int64_t which = below(6);
    if (which == 0 || which == 4) {
      static const std::vector<std::string> kGrowing = {"Exp", "Sinh", "Cosh"};
      at_ = add(kGrowing[static_cast<size_t>(below(3))], {add("Tanh", {at_})});
      return;
    }
    if (which == 5) {
      const float power = static_cast<float>(2 + below(2));
      at_ = add("Pow", {add("Tanh", {at_}), constant(torch::tensor(power))});
      return;
    }
    const std::string half = constant(torch::full({1}, 0.5f));
    const std::string positive = add("Add", {add("Abs", {at_}), half});
    at_ = add(which == 1 ? "Log" : which == 2 ? "Sqrt" : "Reciprocal", {positive});
  }

  void by_constant() {
    static const std::vector<std::string> kOps = {"Add", "Sub", "Mul", "Div", "Max", "Min"};
    const std::string op = kOps[static_cast<size_t>(below(6))];
    torch::Tensor value =
        normal(below(2) == 0 ? std::vector<int64_t>{width_} : std::vector<int64_t>{1});
    if (op == "Div") value = value.sign() * (value.abs() + 0.3);
    at_ = add(op, {at_, constant(value)});
  }

  // Two ways from here that meet again.
  void branches() {
    const std::string start = at_;
    const int64_t width = width_;
    layer(width);
    if (below(2) == 0) function();
    const std::string one = at_;
    at_ = start;
    if (below(2) == 0) function();
    static const std::vector<std::string> kOps = {"Add", "Sub", "Mul",   "Max",
                                                  "Min", "Div", "Concat"};
    const std::string op = kOps[static_cast<size_t>(below(7))];
    if (op == "Div") {
      const std::string half = constant(torch::full({1}, 0.5f));
      at_ = add(op, {one, add("Add", {add("Abs", {at_}), half})});
    } else if (op == "Concat") {
      at_ = add(op, {one, at_}, {{"axis", int64_t{1}}});
      width_ *= 2;
      if (width_ > 12) layer(4);
    } else {
      at_ = add(op, {one, at_});
    }
  }

  void shape() {
    const int64_t which = below(4);
    if (which == 0) {
      const int64_t kept = 1 + below(width_);
      at_ = add("Slice", {at_, integers({0}), integers({kept}), integers({1})});
      width_ = kept;
    } else if (which == 1) {
      const int64_t pad = 1 + below(2);
      at_ = add("Pad", {at_, integers({0, pad, 0, 0})});
      width_ += pad;
    } else if (which == 2) {
      std::vector<int64_t> order;
      for (const size_t i : random_.permutation(static_cast<size_t>(width_))) {
        order.push_back(static_cast<int64_t>(i));
      }
      at_ = add("Gather", {at_, integers(order)}, {{"axis", int64_t{1}}});
    } else {
      at_ = add("Clip", {at_, constant(torch::tensor(-1.5f)), constant(torch::tensor(2.0f))});
    }
  }

  void whole_row() {
    static const std::vector<std::string> kOps = {
        "ReduceSum", "ReduceMean", "ReduceMax",       "ReduceMin",       "ReduceL1",
        "ReduceL2",  "Softmax",    "ReduceSumSquare", "ReduceLogSumExp", "LayerNormalization",
        "CumSum",    "LogSoftmax", "RMSNormalization"};
    const std::string op = kOps[static_cast<size_t>(below(13))];
    if (op == "Softmax" || op == "LogSoftmax") {
      at_ = add(op, {at_}, {{"axis", int64_t{-1}}});
    } else if (op == "CumSum") {
      at_ = add(op, {at_, constant(torch::tensor(int64_t{1}))});
    } else if (op == "LayerNormalization" || op == "RMSNormalization") {
      at_ = add(op, {at_, constant(normal({width_}))}, {{"axis", int64_t{-1}}, {"epsilon", 0.1f}});
    } else {
      const std::string reduced = add(op, {at_, integers({1})}, {{"keepdims", int64_t{1}}});
      at_ = add("Add", {at_, reduced});
    }
  }

  // [N, width] as a picture [N, 2, 3, 3], a convolution or a pool, and back.
  void picture() {
    layer(18);
    std::string image = add("Reshape", {at_, integers({-1, 2, 3, 3})});
    const int64_t which = below(8);
    if (which == 4) {
      image = add("ConvTranspose", {image, constant(normal({2, 1, 2, 2}, 0.4))});  // [N, 1, 4, 4]
    } else if (which == 5) {
      image = add("InstanceNormalization", {image, constant(normal({2})), constant(normal({2}))},
                  {{"epsilon", 0.1f}});
    } else if (which == 6) {
      image = add("GroupNormalization", {image, constant(normal({2})), constant(normal({2}))},
                  {{"epsilon", 0.1f}, {"num_groups", int64_t{1}}});
    } else if (which == 7) {
      image = add(below(2) == 0 ? "GlobalAveragePool" : "GlobalMaxPool", {image});
    } else if (which == 0) {
      image = add("Conv", {image, constant(normal({2, 2, 2, 2}, 0.4)), constant(normal({2}))});
    } else if (which == 1) {
      image = add("MaxPool", {image}, {{"kernel_shape", std::vector<int64_t>{2, 2}}});
    } else if (which == 2) {
      image = add("AveragePool", {image}, {{"kernel_shape", std::vector<int64_t>{2, 2}}});
    } else {
      image = add("BatchNormalization", {image, constant(normal({2})), constant(normal({2})),
                                         constant(normal({2})), constant(normal({2}).abs() + 0.2)});
    }
    image = add("Relu", {image});
    at_ = add("Flatten", {image}, {{"axis", int64_t{1}}});
    const int64_t widths[] = {8, 8, 8, 18, 16, 18, 18, 2};
    width_ = widths[which];
    layer(3 + below(3));
  }

  // [N, width] as three tokens [N, 3, 4] that see each other, and back.
  void tokens() {
    layer(12);
    std::string x = add("Reshape", {at_, integers({-1, 3, 4})});
    const int64_t which = below(4);
    const std::string other = add("Tanh", {x});
    if (which == 0) {
      const std::string turned =
          add("Transpose", {other}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
      x = add("MatMul", {add("MatMul", {x, turned}), other});
    } else if (which == 1) {
      x = add("Attention", {x, other, x},
              {{"q_num_heads", int64_t{2}}, {"kv_num_heads", int64_t{2}}, {"is_causal", below(2)}});
    } else if (which == 2) {
      const torch::Tensor angle = normal({1, 3, 1});
      x = add("RotaryEmbedding", {x, constant(angle.cos()), constant(angle.sin())},
              {{"num_heads", int64_t{2}}, {"interleaved", below(2)}});
    } else {
      x = add("Einsum", {x, constant(normal({4, 4}, 0.5))},
              {{"equation", std::string("ntd,de->nte")}});
      x = add("Trilu", {x});
    }
    at_ = add("Flatten", {x}, {{"axis", int64_t{1}}});
    width_ = 12;
    layer(3 + below(3));
  }

  void add_piece() {
    const int64_t which = below(11);
    if (which < 2) return layer(2 + below(5));
    if (which < 4) return function();
    if (which == 4) return careful_function();
    if (which == 5) return by_constant();
    if (which == 6) return branches();
    if (which == 7) return shape();
    if (which == 8) return whole_row();
    if (which == 9) return tokens();
    picture();
  }

  Random random_;
  Graph graph_;
  std::string at_ = "x";
  int64_t width_ = 0;
  int count_ = 0;
};

inline Graph random_head(uint64_t seed) {
  Random sizes(seed * 7919 + 1);
  const auto pieces = 1 + static_cast<int64_t>(sizes.below(5));
  const auto outputs = 1 + static_cast<int64_t>(sizes.below(2));
  return RandomHead(seed).make(pieces, outputs);
}

}  // namespace fcp
