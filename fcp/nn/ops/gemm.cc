// Matrix products: Gemm, Y = α·A'·B' + β·C, and MatMul with numpy's rules for ranks and batches.
// A matrix on the right multiplies row by row (row_product.h), stacks of matrices one by one
// (row_product.h), so that a row's bits do not depend on its batch. Cost: 2·M·K·N.
// Reference: ONNX operator specification. Tested by tests/nn/ops/linear_test.cc.

#include <algorithm>
#include <vector>

#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/nn/kernels/cpu/row_product.h"
#include "fcp/nn/ops/byte_product.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/quantize.h"
#include "fcp/nn/ops/shared.h"

namespace fcp {
namespace {

// The right factor [K, M] as filters.
torch::Tensor matrix_filters(const torch::Tensor& b) { return b.t().unsqueeze(2).unsqueeze(3); }

class Gemm : public Op, public ByteProduct {
 public:
  explicit Gemm(OpArguments& arguments)
      : node_(arguments.node()),
        alpha_(arguments.number("alpha", 1)),
        beta_(arguments.number("beta", 1)),
        transpose_a_(arguments.integer("transA", 0) != 0),
        transpose_b_(arguments.integer("transB", 0) != 0) {
    arguments.expect_inputs(arguments.opset() < 11 ? 3 : 2, 3);
  }

  // A [M, K] or transposed, B [K, N] or transposed, C broadcast to [M, N].
  Tensors forward(const Tensors& inputs) const override {
    check(inputs);
    const torch::Tensor a = transpose_a_ ? inputs[0].t() : inputs[0];
    const torch::Tensor b = transpose_b_ ? inputs[1].t() : inputs[1];
    if (a.size(1) != b.size(0)) {
      fail(describe(node_), ": cannot multiply ", shape_text(a.sizes()), " by ",
           shape_text(b.sizes()), transpose_a_ || transpose_b_ ? " (after transposing)" : "");
    }
    checked_elements({a.size(0), b.size(1)}, node_);
    const torch::Tensor c = inputs.size() < 3 ? torch::Tensor() : inputs[2];
    if (c.defined()) {
      expect_type_of(a, c, node_, "C");
      expect_broadcast(c, {a.size(0), b.size(1)}, node_, "C");
    }
    if (alpha_ == 1 && beta_ == 1) return {row_product(a, b, &weights_, c)};
    torch::Tensor product = row_product(a, b, &weights_);
    if (alpha_ != 1) product = product * alpha_;
    return {c.defined() ? product + (beta_ == 1 ? c : c * beta_) : product};
  }

  torch::Tensor forward_with_epilogue(const Tensors& inputs,
                                      const Epilogue& epilogue) const override {
    if (transpose_a_ || alpha_ != 1 || beta_ != 1 || inputs[0].dim() != 2) return {};
    Epilogue whole = epilogue;
    if (inputs.size() > 2) whole.bias = inputs[2];
    return product_with_epilogue(inputs[0], transpose_b_ ? inputs[1].t() : inputs[1], weights_,
                                 whole);
  }

  torch::Tensor byte_filters(const torch::Tensor& w) const override {
    if (transpose_a_ || alpha_ != 1 || beta_ != 1 || w.dim() != 2) return {};
    return matrix_filters(transpose_b_ ? w.t() : w);
  }
  torch::Tensor forward_bytes(const torch::Tensor& x, int32_t x_zero, const ByteFilters& filters,
                              const ByteEnd& end) const override {
    if (x.dim() != 2 || x.size(1) != filters.shape[1]) return {};
    return byte_product(x, x_zero, filters, end);
  }

  bool batch_free(const Tensors& inputs, const std::vector<bool>& constant) const override {
    const torch::Tensor& b = inputs[1];
    return !transpose_a_ && b.defined() && b.is_floating_point() &&
           (inputs.size() < 3 || constant[2]);
  }

  // Rows are kept apart when A varies and is not transposed.
  BoundRule bound_rule(const std::vector<bool>& constant) const override {
    if (affine_in_first(constant) == BoundRule::kNone) return BoundRule::kNone;
    return transpose_a_ ? BoundRule::kInterval : BoundRule::kAffine;
  }
  std::vector<Range> interval(const std::vector<Range>& inputs, double) const override {
    return product_interval(*this, inputs, alpha_, transpose_a_ ? nullptr : &parts_);
  }
  double roundings(const Tensors& inputs) const override {
    return static_cast<double>(inputs[0].size(1)) + 3;
  }
  torch::Tensor pull_back(const torch::Tensor& coefficients, const Tensors& inputs) const override {
    const torch::Tensor result =
        row_product(coefficients, transpose_b_ ? inputs[1] : inputs[1].t());
    return alpha_ == 1 ? result : result * alpha_;
  }
  BallOutput over_ball(const BallInput& ball, const Tensors& inputs) const override {
    return product_over_ball(*this, ball, inputs, alpha_, transpose_b_ ? inputs[1].t() : inputs[1]);
  }

  double flops(const Tensors& inputs, const Tensors& outputs) const override {
    const int64_t inner = inputs[0].size(transpose_a_ ? 0 : 1);
    return 2.0 * static_cast<double>(outputs[0].numel()) * static_cast<double>(inner);
  }

 private:
  void check(const Tensors& inputs) const {
    expect_rank(inputs[0], 2, 2, node_, "A");
    expect_rank(inputs[1], 2, 2, node_, "B");
    expect_floating(inputs[0], node_, "A");
    expect_type_of(inputs[0], inputs[1], node_, "B");
  }

  Node node_;
  double alpha_;
  double beta_;
  bool transpose_a_;
  bool transpose_b_;
  mutable PackedCache weights_;
  mutable SignedCache parts_;
};

// How many products of the two factors' numbers are held at once.
constexpr double kProductsAtOnce = 1 << 20;

// Σ_k a_mk b_kn over intervals: the sum of the least of each product's four corners, and of the
// largest. A sum of minima over k, in a fixed order: a larger range never gives a smaller one.
// a [..., M, K], b [..., K, N]; rows m go in pieces that fit kProductsAtOnce.
Range bilinear_interval(const Range& given_a, const Range& given_b, double terms, double unit) {
  const Range a = open_ends(given_a), b = open_ends(given_b);
  const bool row = a.lower.dim() == 1, column = b.lower.dim() == 1;
  const auto left = [&](const torch::Tensor& x) { return row ? x.unsqueeze(0) : x; };
  const auto right = [&](const torch::Tensor& x) { return column ? x.unsqueeze(1) : x; };
  const Range x = {left(a.lower), left(a.upper)}, y = {right(b.lower), right(b.upper)};
  const int64_t rows = x.lower.size(-2);
  const double per_row = static_cast<double>(torch::matmul(x.lower, y.lower).numel()) /
                         static_cast<double>(std::max<int64_t>(rows, 1)) *
                         static_cast<double>(x.lower.size(-1));
  const auto step = std::max<int64_t>(1, static_cast<int64_t>(kProductsAtOnce / (per_row + 1)));
  Tensors lower, upper;
  for (int64_t first = 0; first < rows; first += step) {
    const int64_t count = std::min(step, rows - first);
    torch::Tensor least, most;
    for (const torch::Tensor& end : {x.lower, x.upper}) {
      for (const torch::Tensor& other : {y.lower, y.upper}) {
        torch::Tensor product =
            end.narrow(-2, first, count).unsqueeze(-1) * other.unsqueeze(-3);  // [..., m, K, N]
        product = product.masked_fill(product.isnan(), 0);                     // 0 · ∞
        least = least.defined() ? torch::minimum(least, product) : product;
        most = most.defined() ? torch::maximum(most, product) : product;
      }
    }
    const torch::Tensor error =
        torch::maximum(least.abs(), most.abs()).sum(-2) * ((terms + 2) * unit * 1.001);
    lower.push_back(least.sum(-2) - error);
    upper.push_back(most.sum(-2) + error);
  }
  Range result = {torch::cat(lower, -2), torch::cat(upper, -2)};
  if (row) result = {result.lower.squeeze(-2), result.upper.squeeze(-2)};
  if (column) result = {result.lower.squeeze(-1), result.upper.squeeze(-1)};
  return result;
}

class MatMul : public Op, public ByteProduct {
 public:
  explicit MatMul(OpArguments& arguments) : node_(arguments.node()) {
    arguments.expect_inputs(2, 2);
  }

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& a = inputs[0];
    const torch::Tensor& b = inputs[1];
    constexpr int64_t kMaxRank = 16;
    expect_rank(a, 1, kMaxRank, node_, "A");
    expect_rank(b, 1, kMaxRank, node_, "B");
    expect_type_of(a, b, node_, "B");
    checked_elements(product_shape(a, b), node_);
    if (b.dim() == 2) return {row_product(a, b, &weights_)};
    if (b.dim() == 1) return {row_product(a, b.unsqueeze(1), &weights_).squeeze(-1)};
    if (a.dim() == 1) return {stack_product(a.unsqueeze(0), b).squeeze(-2)};
    return {stack_product(a, b)};
  }

  torch::Tensor byte_filters(const torch::Tensor& w) const override {
    return w.dim() == 2 ? matrix_filters(w) : torch::Tensor();
  }
  torch::Tensor forward_bytes(const torch::Tensor& x, int32_t x_zero, const ByteFilters& filters,
                              const ByteEnd& end) const override {
    if (x.dim() < 2 || x.size(-1) != filters.shape[1]) return {};
    return byte_product(x, x_zero, filters, end);
  }

  bool batch_free(const Tensors& inputs, const std::vector<bool>& constant) const override {
    return !constant[1] || inputs[1].is_floating_point();
  }

  torch::Tensor forward_with_epilogue(const Tensors& inputs,
                                      const Epilogue& epilogue) const override {
    return product_with_epilogue(inputs[0], inputs[1], weights_, epilogue);
  }

  BoundRule bound_rule(const std::vector<bool>& constant) const override {
    return constant[0] || constant[1] ? BoundRule::kAffine : BoundRule::kBilinear;
  }
  std::vector<Range> interval(const std::vector<Range>& inputs, double unit) const override {
    const bool constant =
        inputs[0].lower.is_same(inputs[0].upper) || inputs[1].lower.is_same(inputs[1].upper);
    if (constant) return product_interval(*this, inputs, 1, &parts_);
    return {bilinear_interval(inputs[0], inputs[1], roundings({inputs[0].lower}), unit)};
  }
  // Of stacks of matrices on both sides, which may both vary.
  double workspace(const Tensors& inputs, const Tensors&) const override {
    return inputs[0].dim() > 2 && inputs[1].dim() > 2 ? 6 * kProductsAtOnce : 0;
  }
  double roundings(const Tensors& inputs) const override {
    return static_cast<double>(inputs[0].size(-1)) + 2;
  }
  // Known for a matrix on the right.
  BallOutput over_ball(const BallInput& ball, const Tensors& inputs) const override {
    if (ball.center.dim() != 2 || inputs[1].dim() != 2) return {};
    return product_over_ball(*this, ball, inputs, 1, inputs[1]);
  }

  double flops(const Tensors& inputs, const Tensors& outputs) const override {
    return 2.0 * static_cast<double>(outputs[0].numel()) * static_cast<double>(inputs[0].size(-1));
  }

 private:
  // [..., M, K] · [..., K, N]; a vector counts as a row on the left and as a column on the right.
  std::vector<int64_t> product_shape(const torch::Tensor& a, const torch::Tensor& b) const {
    const int64_t a_batch = std::max<int64_t>(a.dim() - 2, 0);
    const int64_t b_batch = std::max<int64_t>(b.dim() - 2, 0);
    bool fits = a.size(-1) == b.size(b.dim() == 1 ? 0 : -2);
    std::vector<int64_t> shape;
    for (int64_t i = std::max(a_batch, b_batch); i >= 1; --i) {
      const int64_t left = i <= a_batch ? a.size(a_batch - i) : 1;
      const int64_t right = i <= b_batch ? b.size(b_batch - i) : 1;
      fits = fits && (left == right || left == 1 || right == 1);
      shape.push_back(left == 1 ? right : left);
    }
    if (!fits) {
      fail(describe(node_), ": cannot multiply ", shape_text(a.sizes()), " by ",
           shape_text(b.sizes()));
    }
    if (a.dim() > 1) shape.push_back(a.size(-2));
    if (b.dim() > 1) shape.push_back(b.size(-1));
    return shape;
  }

  Node node_;
  mutable PackedCache weights_;
  mutable SignedCache parts_;
};

}  // namespace

OpPointer make_gemm(OpArguments& arguments) { return std::make_unique<Gemm>(arguments); }

OpPointer make_matmul(OpArguments& arguments) { return std::make_unique<MatMul>(arguments); }

// Products of quantised matrices: MatMulInteger, which gives int32, and QLinearMatMul, which
// quantises its result again. Computed in double precision, where sums of products of 8-bit numbers
// are exact; what they are multiplied by is rounded to single precision. No gradient, no bounds.
// Cost: 2·M·K·N. Reference: ONNX operator specification. Tested by tests/parity/op_cases_test.cc.

namespace {

torch::Tensor parameter(const Tensors& inputs, size_t index) {
  const bool given = index < inputs.size() && inputs[index].defined();
  return given ? inputs[index].to(torch::kDouble) : torch::zeros({}, torch::kDouble);
}

// One number, one per row of A (a column), or one per column of B (a row).
torch::Tensor beside(const torch::Tensor& value, bool rows) {
  return rows && value.dim() == 1 && value.numel() > 1 ? value.unsqueeze(1) : value;
}

class IntegerMatMul : public Op {
 public:
  explicit IntegerMatMul(OpArguments& arguments) : node_(arguments.node()) {
    arguments.expect_inputs(2, 4);
  }
  Tensors forward(const Tensors& inputs) const override {
    expect_rank(inputs[0], 1, 16, node_, "A");
    expect_rank(inputs[1], 1, 16, node_, "B");
    const torch::Tensor a = inputs[0].to(torch::kDouble) - beside(parameter(inputs, 2), true);
    const torch::Tensor b = inputs[1].to(torch::kDouble) - parameter(inputs, 3);
    return {torch::matmul(a, b).to(torch::kInt)};
  }
  bool differentiable() const override { return false; }

 private:
  Node node_;
};

// a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero.
class QuantizedMatMul : public Op {
 public:
  explicit QuantizedMatMul(OpArguments& arguments) : node_(arguments.node()) {
    arguments.expect_inputs(8, 8);
  }
  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor a = inputs[0].to(torch::kDouble) - beside(parameter(inputs, 2), true);
    const torch::Tensor b = inputs[3].to(torch::kDouble) - parameter(inputs, 5);
    const torch::Tensor factor =
        (beside(inputs[1], true) * inputs[4] / beside(inputs[6], true)).to(torch::kFloat);
    const torch::Tensor y = torch::round(torch::matmul(a, b).to(torch::kFloat) * factor);
    const torch::Tensor zero = beside(parameter(inputs, 7), true).to(torch::kFloat);
    return {saturate(y + zero, inputs[7].scalar_type(), node_)};
  }
  bool differentiable() const override { return false; }

 private:
  Node node_;
};

}  // namespace

OpPointer make_matmul_integer(OpArguments& arguments) {
  return std::make_unique<IntegerMatMul>(arguments);
}

OpPointer make_qlinear_matmul(OpArguments& arguments) {
  return std::make_unique<QuantizedMatMul>(arguments);
}

}  // namespace fcp
