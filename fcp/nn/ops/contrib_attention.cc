// Attention and MultiHeadAttention of domain com.microsoft, softmax(s · Q Kᵀ + mask) V by heads.
// Attention makes Q, K and V itself, X W + b; MultiHeadAttention is given them, and a bias for all
// three.
//
// X is [N, T, D]. A mask of integers is [N, T] (1: a key that is seen), [N] (the number of keys
// that are seen) or [N, T, T]; what it hides gets mask_filter_value added. A second mask of numbers
// is added as it is. Without a past, and with all heads of one size.
// Gradients flow; there are no bounds.
// Cost: 4 · N · T² · D beside the products. Reference: ONNX Runtime, docs/ContribOperators.md.
// Tested by tests/nn/ops/contrib_test.cc and tests/parity/ml_cases_test.cc.
#include <cmath>
#include <string>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/nn/ops/checks.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/shared.h"

namespace fcp {
namespace {

struct HeadOptions {
  Node node;
  int64_t heads;
  double scale, hidden;
  bool causal;

  explicit HeadOptions(OpArguments& arguments)
      : node(arguments.node()),
        heads(arguments.integer("num_heads", 0)),
        scale(arguments.number("scale", 0)),
        hidden(arguments.number("mask_filter_value", -10000)),
        causal(arguments.integer("unidirectional", 0) != 0) {
    if (heads < 1) fail(describe(node), ": num_heads is ", heads, ", expected at least 1");
  }

  void refuse(size_t input, const char* what) const {
    if (input < node.inputs.size() && !node.inputs[input].empty()) {
      fail(describe(node), ": has ", what, ", which is not supported");
    }
  }

  torch::Tensor split(const torch::Tensor& x) const {  // [N, T, D] to [N, heads, T, D / heads]
    expect_rank(x, 3, 3, node, "query, key or value");
    if (x.size(2) % heads != 0) {
      fail(describe(node), ": ", heads, " heads do not divide ", x.size(2), " numbers");
    }
    return x.reshape({x.size(0), x.size(1), heads, -1}).transpose(1, 2);
  }

  // What is added to the scores for keys that a mask of integers hides; undefined: nothing.
  torch::Tensor bias_of(const torch::Tensor& mask, int64_t rows, int64_t keys,
                        const torch::TensorOptions& options) const {
    if (!mask.defined()) return {};
    torch::Tensor seen;
    if (mask.dim() == 1 && mask.size(0) == rows) {
      seen = torch::arange(keys, mask.options()).unsqueeze(0) < mask.unsqueeze(1);
    } else if ((mask.dim() == 2 || mask.dim() == 3) && mask.size(0) == rows) {
      seen = mask > 0;
    } else {
      fail(describe(node), ": the mask has shape ", shape_text(mask.sizes()), ", expected [", rows,
           "], [", rows, ", ", keys, "] or [", rows, ", T, ", keys, "]");
    }
    const torch::Tensor added = torch::zeros(seen.sizes(), options)
                                    .masked_fill(seen.to(options.device()).logical_not(), hidden);
    return added.dim() == 2 ? added.unsqueeze(1).unsqueeze(1) : added.unsqueeze(1);
  }

  torch::Tensor attend(const torch::Tensor& query, const torch::Tensor& key,
                       const torch::Tensor& value, const torch::Tensor& mask,
                       const torch::Tensor& more) const {
    const torch::Tensor q = split(query), k = split(key), v = split(value);
    const double s = scale > 0 ? scale : 1 / std::sqrt(static_cast<double>(q.size(3)));
    torch::Tensor scores = torch::matmul(q, k.transpose(2, 3)) * s;
    const torch::Tensor bias = bias_of(mask, q.size(0), k.size(2), q.options());
    if (bias.defined()) scores = scores + bias;
    if (more.defined()) scores = scores + more;
    if (causal) {
      const auto options = torch::device(q.device()).dtype(torch::kLong);
      const torch::Tensor later =
          torch::arange(k.size(2), options) > torch::arange(q.size(2), options).unsqueeze(1);
      scores = scores.masked_fill(later, hidden);
    }
    return torch::matmul(torch::softmax(scores, -1), v).transpose(1, 2).flatten(2);
  }
};

// input, weights [D, 3·D'], bias [3·D'], mask_index, past, attention_bias.
class ContribAttention : public Op {
 public:
  explicit ContribAttention(OpArguments& arguments) : options_(arguments) {
    arguments.expect_inputs(2, 7);
    options_.refuse(4, "a past");
    if (arguments.integer("do_rotary", 0) != 0) {
      fail(describe(options_.node), ": do_rotary is not supported");
    }
    sizes_ = arguments.integers("qkv_hidden_sizes");
    arguments.ignore("past_present_share_buffer");
    arguments.ignore("rotary_embedding_dim");
  }

  Tensors forward(const Tensors& inputs) const override {
    const auto given = [&](size_t i) { return i < inputs.size() ? inputs[i] : torch::Tensor(); };
    expect_floating(inputs[0], options_.node, "the input");
    torch::Tensor all = torch::matmul(inputs[0], inputs[1]);
    if (given(2).defined()) all = all + given(2);
    std::vector<int64_t> sizes = sizes_;
    if (sizes.empty()) sizes.assign(3, all.size(2) / 3);
    if (sizes.size() != 3 || sizes[0] + sizes[1] + sizes[2] != all.size(2)) {
      fail(describe(options_.node), ": the weights give ", all.size(2),
           " numbers, expected those of query, key and value");
    }
    const auto parts = all.split_with_sizes(sizes, 2);
    return {options_.attend(parts[0], parts[1], parts[2], given(3), given(5))};
  }

 private:
  HeadOptions options_;
  std::vector<int64_t> sizes_;
};

// query, key, value, bias, key_padding_mask, attention_bias, past_key, past_value.
class MultiHeadAttention : public Op {
 public:
  explicit MultiHeadAttention(OpArguments& arguments) : options_(arguments) {
    arguments.expect_inputs(3, 10);
    options_.refuse(6, "a past");
    options_.refuse(7, "a past");
  }

  Tensors forward(const Tensors& inputs) const override {
    const auto given = [&](size_t i) { return i < inputs.size() ? inputs[i] : torch::Tensor(); };
    torch::Tensor parts[3] = {inputs[0], inputs[1], inputs[2]};
    int64_t first = 0;
    for (torch::Tensor& part : parts) {
      expect_rank(part, 3, 3, options_.node, "query, key or value");
      if (!given(3).defined()) continue;
      if (first + part.size(2) > given(3).numel()) {
        fail(describe(options_.node), ": the bias has shape ", shape_text(given(3).sizes()),
             ", too small for query, key and value");
      }
      part = part + given(3).narrow(0, first, part.size(2));
      first += part.size(2);
    }
    return {options_.attend(parts[0], parts[1], parts[2], given(4), given(5))};
  }

 private:
  HeadOptions options_;
};

}  // namespace

OpPointer make_contrib_attention(OpArguments& arguments) {
  return std::make_unique<ContribAttention>(arguments);
}

OpPointer make_multi_head_attention(OpArguments& arguments) {
  return std::make_unique<MultiHeadAttention>(arguments);
}

}  // namespace fcp
