// Small transformers for tests: blocks as exporters write them from operator set 17 on.
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/nn/graph/graph.h"

#include "tests/nn/graphs.h"

namespace fcp {

struct TransformerShape {
  int64_t tokens = 3, width = 8, heads = 2, hidden = 12, blocks = 1, outputs = 1;
  bool norm_first = true;     // as in a ViT; else after the sum, as in BERT
  bool flat_input = false;    // [N, tokens · width] instead of [N, tokens, width]
  double masked = 0;          // added to the scores of the last key, as for padding; 0: no mask
  bool one_operator = false;  // attention as the operator of operator set 23
};

// Writes the nodes of a graph one after the other.
class TransformerWriter {
 public:
  explicit TransformerWriter(const TransformerShape& shape) : shape_(shape) {
    graph_.name = "transformer";
    graph_.opset = shape.one_operator ? 23 : 20;
  }

  // x → blocks "block1", "block2", … → the first token → y.
  Graph write() {
    const bool flat = shape_.flat_input;
    graph_.inputs = {flat ? make_info("x", {kDynamic, shape_.tokens * shape_.width})
                          : make_info("x", {kDynamic, shape_.tokens, shape_.width})};
    graph_.outputs = {make_info("y", {kDynamic, shape_.outputs})};
    std::string value = "x";
    if (flat) value = reshape(value, "tokens", {0, shape_.tokens, shape_.width});
    for (int64_t i = 1; i <= shape_.blocks; ++i) value = block(value, i);
    graph_.initializers["first"] = torch::tensor(int64_t{0});
    value = node("Gather", {value, "first"}, "token", {{"axis", int64_t{1}}});
    if (shape_.norm_first) value = norm(value, "norm");
    graph_.initializers["head"] = weight(shape_.outputs, shape_.width);
    graph_.initializers["shift"] = torch::randn({shape_.outputs}) * 0.1;
    node("Gemm", {value, "head", "shift"}, "y", {{"transB", int64_t{1}}});
    return graph_;
  }

 private:
  static torch::Tensor weight(int64_t rows, int64_t columns) {
    return torch::randn({rows, columns}) / std::sqrt(static_cast<double>(columns));
  }

  std::string node(const std::string& op, const std::vector<std::string>& inputs,
                   const std::string& output, std::map<std::string, Attribute> attributes = {}) {
    graph_.nodes.push_back(make_node(op, inputs, {output}, std::move(attributes)));
    return output;
  }

  std::string reshape(const std::string& from, const std::string& to,
                      const std::vector<int64_t>& shape) {
    graph_.initializers[to + "_shape"] = torch::tensor(shape, torch::kLong);
    return node("Reshape", {from, to + "_shape"}, to);
  }

  std::string norm(const std::string& from, const std::string& to) {
    graph_.initializers[to + "_scale"] = torch::rand({shape_.width}) + 0.5;
    graph_.initializers[to + "_bias"] = torch::randn({shape_.width}) * 0.2;
    return node("LayerNormalization", {from, to + "_scale", to + "_bias"}, to,
                {{"axis", int64_t{-1}}});
  }

  // from · W + b
  std::string linear(const std::string& from, const std::string& to, int64_t inputs,
                     int64_t outputs) {
    graph_.initializers[to + "_weight"] = weight(outputs, inputs).t().contiguous();
    graph_.initializers[to + "_shift"] = torch::randn({outputs}) * 0.1;
    node("MatMul", {from, to + "_weight"}, to + "_product");
    return node("Add", {to + "_product", to + "_shift"}, to);
  }

  std::string heads(const std::string& from, const std::string& to, std::vector<int64_t> order) {
    const int64_t size = shape_.width / shape_.heads;
    linear(from, to, shape_.width, shape_.width);
    reshape(to, to + "_heads", {0, shape_.tokens, shape_.heads, size});
    return node("Transpose", {to + "_heads"}, to + "_turned", {{"perm", std::move(order)}});
  }

  // [1, 1, 1, tokens], or "" for none.
  std::string mask(const std::string& name) {
    if (shape_.masked == 0) return "";
    torch::Tensor mask = torch::zeros({1, 1, 1, shape_.tokens});
    mask.select(3, shape_.tokens - 1).fill_(shape_.masked);
    graph_.initializers[name + "_mask"] = mask;
    return name + "_mask";
  }

  std::string one_attention(const std::string& from, const std::string& name) {
    std::vector<std::string> inputs;
    for (const char* what : {"_q", "_k", "_v"}) {
      inputs.push_back(linear(from, name + what, shape_.width, shape_.width));
    }
    inputs.push_back(mask(name));
    node("Attention", inputs, name + "_joined",
         {{"q_num_heads", shape_.heads}, {"kv_num_heads", shape_.heads}});
    return linear(name + "_joined", name + "_out", shape_.width, shape_.width);
  }

  std::string attention(const std::string& from, const std::string& name) {
    if (shape_.one_operator) return one_attention(from, name);
    const std::string q = heads(from, name + "_q", {0, 2, 1, 3});
    const std::string k = heads(from, name + "_k", {0, 2, 3, 1});
    const std::string v = heads(from, name + "_v", {0, 2, 1, 3});
    const double size = static_cast<double>(shape_.width) / static_cast<double>(shape_.heads);
    graph_.initializers[name + "_root"] = torch::tensor(static_cast<float>(std::sqrt(size)));
    node("MatMul", {q, k}, name + "_scores");
    std::string scores = node("Div", {name + "_scores", name + "_root"}, name + "_scaled");
    if (const std::string added = mask(name); !added.empty()) {
      scores = node("Add", {scores, added}, name + "_masked");
    }
    node("Softmax", {scores}, name + "_shares", {{"axis", int64_t{-1}}});
    node("MatMul", {name + "_shares", v}, name + "_mixed");
    node("Transpose", {name + "_mixed"}, name + "_back",
         {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
    reshape(name + "_back", name + "_joined", {0, shape_.tokens, shape_.width});
    return linear(name + "_joined", name + "_out", shape_.width, shape_.width);
  }

  std::string perceptron(const std::string& from, const std::string& name) {
    linear(from, name + "_in", shape_.width, shape_.hidden);
    node("Gelu", {name + "_in"}, name + "_bent");
    return linear(name + "_bent", name + "_out", shape_.hidden, shape_.width);
  }

  std::string block(const std::string& x, int64_t number) {
    const std::string name = "block" + std::to_string(number);
    const bool first = shape_.norm_first;
    const std::string a = attention(first ? norm(x, name + "_n1") : x, name + "_attention");
    std::string middle = node("Add", {x, a}, name + "_middle");
    if (!first) middle = norm(middle, name + "_n1");
    const std::string b = perceptron(first ? norm(middle, name + "_n2") : middle, name + "_mlp");
    if (first) return node("Add", {middle, b}, name);
    return norm(node("Add", {middle, b}, name + "_sum"), name);
  }

  TransformerShape shape_;
  Graph graph_;
};

inline Graph make_transformer(const TransformerShape& shape) {
  return TransformerWriter(shape).write();
}

}  // namespace fcp
