// Attention of operator set 23, softmax(s · Q Kᵀ + mask) V by heads, and RotaryEmbedding, which
// turns pairs of numbers by an angle given per position.
//
// Q, K and V are [N, heads, T, size] or [N, T, heads·size]; a key head serves as many query heads
// as there are for each (grouped queries). A query that may see no key gives zeros.
// Gradients flow. Bounds go through an Attention taken apart (lower_attention.h), and through a
// rotation, by constant angles, as it is: every number is a sum of two products.
// Cost: 4 · N · heads · T_q · T_k · size. Reference: ONNX operator specification, versions 23 and
// 24. Tested by tests/nn/ops/attention_test.cc.

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/index.h"
#include "fcp/nn/ops/shared.h"

namespace fcp {
namespace {

constexpr double kMasked = -std::numeric_limits<double>::infinity();

// [N, T, heads·size] to [N, heads, T, size].
torch::Tensor by_heads(const torch::Tensor& x, int64_t heads, const Node& node, const char* what) {
  if (x.dim() == 4) return x;
  if (heads < 1 || x.size(2) % heads != 0) {
    fail(describe(node), ": ", what, " has shape ", shape_text(x.sizes()), ", which ", heads,
         " heads do not divide");
  }
  return x.reshape({x.size(0), x.size(1), heads, -1}).transpose(1, 2);
}

class AttentionOp : public Op {
 public:
  explicit AttentionOp(OpArguments& arguments)
      : node_(arguments.node()),
        query_heads_(arguments.integer("q_num_heads", 0)),
        key_heads_(arguments.integer("kv_num_heads", 0)),
        causal_(arguments.integer("is_causal", 0) != 0),
        scale_(arguments.number("scale", 0)),
        cap_(arguments.number("softcap", 0)),
        mode_(arguments.integer("qk_matmul_output_mode", 0)) {
    arguments.expect_inputs(3, arguments.opset() >= 24 ? 7 : 6);
    arguments.ignore("softmax_precision");  // no less than the input's here
  }

  Tensors forward(const Tensors& inputs) const override {
    for (size_t i = 0; i < 3; ++i) {
      expect_rank(inputs[i], 3, 4, node_, "Q, K or V");
      expect_floating(inputs[i], node_, "Q, K or V");
    }
    const torch::Tensor q = by_heads(inputs[0], query_heads_, node_, "Q");
    const torch::Tensor key = with_past(inputs, 4, by_heads(inputs[1], key_heads_, node_, "K"));
    const torch::Tensor value = with_past(inputs, 5, by_heads(inputs[2], key_heads_, node_, "V"));
    const torch::Tensor k = for_queries(key, q), v = for_queries(value, q);
    const double root =
        std::sqrt(scale_ > 0 ? scale_ : 1 / std::sqrt(static_cast<double>(q.size(3))));
    const torch::Tensor product = torch::matmul(q * root, k.transpose(2, 3) * root);
    const torch::Tensor capped = cap_ > 0 ? torch::tanh(product / cap_) * cap_ : product;
    const torch::Tensor bias = bias_of(inputs, q, k.size(2));
    const torch::Tensor scores = bias.defined() ? capped + bias : capped;
    torch::Tensor shares = torch::softmax(scores, -1);
    if (bias.defined()) {
      shares = shares.masked_fill(bias.amax(-1, /*keepdim=*/true) == kMasked, 0);
    }
    torch::Tensor y = torch::matmul(shares, v);
    if (inputs[0].dim() == 3) y = y.transpose(1, 2).flatten(2);
    const torch::Tensor shown = mode_ == 0   ? product
                                : mode_ == 1 ? capped
                                : mode_ == 2 ? scores
                                             : shares;
    return {y, key, value, shown};
  }

  double flops(const Tensors& inputs, const Tensors& outputs) const override {
    const int64_t keys = inputs[1].size(inputs[1].dim() == 4 ? 2 : 1);
    return 4 * static_cast<double>(outputs[0].numel()) * static_cast<double>(keys);
  }

 private:
  static bool given(const Tensors& inputs, size_t index) {
    return index < inputs.size() && inputs[index].defined();
  }

  static torch::Tensor with_past(const Tensors& inputs, size_t index, const torch::Tensor& x) {
    return given(inputs, index) ? torch::cat({inputs[index], x}, 2) : x;
  }

  torch::Tensor for_queries(const torch::Tensor& x, const torch::Tensor& q) const {
    if (q.size(1) % x.size(1) != 0) {
      fail(describe(node_), ": has ", q.size(1), " query heads for ", x.size(1), " key heads");
    }
    const int64_t times = q.size(1) / x.size(1);
    return times == 1 ? x : repeat_each(x, times, 1);
  }

  // What is added to the scores, broadcast to [N, heads, T_q, T_k]; undefined: nothing.
  torch::Tensor bias_of(const Tensors& inputs, const torch::Tensor& q, int64_t keys) const {
    torch::Tensor bias;
    if (given(inputs, 3)) {
      bias = inputs[3].to(q.device());
      if (bias.scalar_type() == torch::kBool) {
        bias = torch::zeros_like(bias, q.options()).masked_fill(bias.logical_not(), kMasked);
      }
      if (bias.size(-1) < keys) {  // keys that the mask does not name take no part
        bias = torch::constant_pad_nd(bias, {0, keys - bias.size(-1)}, kMasked);
      }
    }
    const auto add = [&](const torch::Tensor& hidden) {
      const torch::Tensor more =
          torch::zeros(hidden.sizes(), q.options()).masked_fill(hidden, kMasked);
      bias = bias.defined() ? bias + more : more;
    };
    const auto options = torch::device(q.device()).dtype(torch::kLong);
    const torch::Tensor at = torch::arange(keys, options);
    torch::Tensor past = torch::full({1}, given(inputs, 4) ? inputs[4].size(2) : 0, options);
    if (given(inputs, 6)) {  // the keys of each row that are no padding
      expect_vector(inputs[6], q.size(0), node_, "nonpad_kv_seqlen");
      const torch::Tensor count = inputs[6].to(options).view({-1, 1, 1, 1});
      past = count - q.size(2);
      add(at >= count);
    }
    if (causal_) add(at > torch::arange(q.size(2), options).unsqueeze(1) + past);
    return bias;
  }

  Node node_;
  int64_t query_heads_;
  int64_t key_heads_;
  bool causal_;
  double scale_;
  double cap_;
  int64_t mode_;
};

// (a, b) to (a cos − b sin, a sin + b cos), where a and b are the halves of a head's numbers, or
// its even and odd ones; the numbers beyond rotary_embedding_dim stay.
class RotaryOp : public Op {
 public:
  explicit RotaryOp(OpArguments& arguments)
      : node_(arguments.node()),
        interleaved_(arguments.integer("interleaved", 0) != 0),
        rotated_(arguments.integer("rotary_embedding_dim", 0)),
        heads_(arguments.integer("num_heads", 0)) {
    arguments.expect_inputs(3, 4);
  }

  Tensors forward(const Tensors& inputs) const override {
    expect_rank(inputs[0], 3, 4, node_, "X");
    expect_floating(inputs[0], node_, "X");
    const torch::Tensor x = by_heads(inputs[0], heads_, node_, "X");
    const int64_t size = turned_size(x);
    const Pairs pairs = taken_apart(x, size);
    const torch::Tensor c = angles(inputs, 1, x, size), s = angles(inputs, 2, x, size);
    return {put_together({pairs.a * c - pairs.b * s, pairs.a * s + pairs.b * c, pairs.rest},
                         inputs[0].dim() == 3)};
  }

  BoundRule bound_rule(const std::vector<bool>& constant) const override {
    return affine_in_first(constant);
  }
  // A negative cosine or sine exchanges the ends of what it multiplies.
  std::vector<Range> interval(const std::vector<Range>& inputs, double) const override {
    Tensors tables;
    for (const Range& input : inputs) tables.push_back(input.lower);
    const torch::Tensor low = by_heads(inputs[0].lower, heads_, node_, "X");
    const torch::Tensor high = by_heads(inputs[0].upper, heads_, node_, "X");
    const int64_t size = turned_size(low);
    const torch::Tensor c = angles(tables, 1, low, size), s = angles(tables, 2, low, size);
    const Pairs l = taken_apart(low, size), u = taken_apart(high, size);
    const auto times = [](const torch::Tensor& least, const torch::Tensor& most,
                          const torch::Tensor& weight) {
      return least * weight.clamp_min(0) + most * weight.clamp_max(0);
    };
    const bool flat = inputs[0].lower.dim() == 3;
    return {{put_together({times(l.a, u.a, c) - times(u.b, l.b, s),
                           times(l.a, u.a, s) + times(l.b, u.b, c), l.rest},
                          flat),
             put_together({times(u.a, l.a, c) - times(l.b, u.b, s),
                           times(u.a, l.a, s) + times(u.b, l.b, c), u.rest},
                          flat)}};
  }
  double roundings(const Tensors&) const override { return 4; }

 private:
  // The two numbers of each pair, [N, heads, T, size / 2], and those that stay.
  struct Pairs {
    torch::Tensor a, b, rest;
  };

  int64_t turned_size(const torch::Tensor& x) const {
    const int64_t size = rotated_ > 0 ? rotated_ : x.size(3);
    if (size > x.size(3) || size % 2 != 0) {
      fail(describe(node_), ": turns ", size, " of ", x.size(3), " numbers, expected an even part");
    }
    return size;
  }

  Pairs taken_apart(const torch::Tensor& x, int64_t size) const {
    const torch::Tensor turned = x.narrow(3, 0, size), rest = x.narrow(3, size, x.size(3) - size);
    if (!interleaved_) {
      return {turned.narrow(3, 0, size / 2), turned.narrow(3, size / 2, size / 2), rest};
    }
    const torch::Tensor pairs = turned.reshape({x.size(0), x.size(1), x.size(2), size / 2, 2});
    return {pairs.select(4, 0), pairs.select(4, 1), rest};
  }

  torch::Tensor put_together(const Pairs& pairs, bool flat) const {
    const torch::Tensor turned = interleaved_ ? torch::stack({pairs.a, pairs.b}, 4).flatten(3)
                                              : torch::cat({pairs.a, pairs.b}, 3);
    const torch::Tensor result = torch::cat({turned, pairs.rest}, 3);
    return flat ? result.transpose(1, 2).flatten(2) : result;
  }

  // [N, 1, T, size / 2], from a cache by position or as given.
  torch::Tensor angles(const Tensors& inputs, size_t index, const torch::Tensor& x,
                       int64_t size) const {
    torch::Tensor table = inputs[index].to(x.device(), x.scalar_type());
    if (inputs.size() > 3 && inputs[3].defined()) {
      expect_rank(table, 2, 2, node_, "cos_cache or sin_cache");
      const torch::Tensor at = checked_indices(inputs[3], table.size(0), node_, x.device());
      table = table.index_select(0, at.reshape({-1})).reshape({at.size(0), at.size(1), -1});
    }
    expect_rank(table, 3, 3, node_, "cos_cache or sin_cache");
    if (table.size(2) != size / 2 || table.size(1) != x.size(2)) {
      fail(describe(node_), ": cos_cache or sin_cache gives shape ", shape_text(table.sizes()),
           ", expected [N, ", x.size(2), ", ", size / 2, "]");
    }
    return table.unsqueeze(1);
  }

  Node node_;
  bool interleaved_;
  int64_t rotated_;
  int64_t heads_;
};

}  // namespace

OpPointer make_attention(OpArguments& arguments) {
  return std::make_unique<AttentionOp>(arguments);
}

OpPointer make_rotary_embedding(OpArguments& arguments) {
  return std::make_unique<RotaryOp>(arguments);
}

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
