// Softmax and its logarithm. From opset 13 on along one axis; before, the tensor is seen as a
// matrix whose rows are all axes from `axis` on, and each row is normalised as a whole.
//
// Cost: linear in the input. Reference: ONNX operator specification, versions 1, 11 and 13.
// Tested by tests/nn/ops/pooling_test.cc.
#include <limits>

#include <torch/types.h>

#include "fcp/nn/kernels/cpu/row_functions.h"
#include "fcp/nn/kernels/cpu/row_product.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/shared.h"

namespace fcp {
namespace {

class Softmax : public Op {
 public:
  Softmax(OpArguments& arguments, bool logarithm)
      : node_(arguments.node()),
        flattens_(arguments.opset() < 13),
        axis_(arguments.integer("axis", flattens_ ? 1 : -1)),
        logarithm_(logarithm) {
    arguments.expect_inputs(1, 1);
  }

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    expect_floating(x, node_, "input");
    const int64_t axis = normalize_axis(axis_, x.dim(), node_);
    if (!flattens_ || axis == x.dim() - 1) return {along(x, axis)};
    const torch::Tensor rows = x.flatten(axis, -1);
    return {along(rows, axis).view(x.sizes())};
  }

  BoundRule bound_rule(const std::vector<bool>&) const override { return BoundRule::kSmooth; }

  // 1 / (1 + Σ exp(x_j − x_i)) over the other j is least where x_i is and they are largest.
  std::vector<Range> interval(const std::vector<Range>& inputs, double unit) const override {
    const torch::Tensor& like = inputs[0].lower;
    const int64_t axis = normalize_axis(axis_, like.dim(), node_);
    const torch::Tensor lower = ready(inputs[0].lower, axis), upper = ready(inputs[0].upper, axis);
    Range range = {against(lower, upper, axis, -kMasked), against(upper, lower, axis, kMasked)};
    if (unit > 0) {
      const torch::Tensor error = rounding(lower, upper, axis, unit);
      range = {range.lower - error, range.upper + error};
    }
    const torch::Tensor none = upper.amax(axis, true) == kMasked;  // 0 / 0
    range = {range.lower.masked_fill(none, kMasked), range.upper.masked_fill(none, -kMasked)};
    return {{range.lower.to(like.scalar_type()).view(like.sizes()),
             range.upper.to(like.scalar_type()).view(like.sizes())}};
  }

  // At the middle m let p be the output, and x = m + d with |d| ≤ r. Then ln Σ p e^d = Σ p d + e,
  //
  //   0 ≤ e ≤ E,   E the least of Σ p (e^r − 1 − r), max r² / 2 (Hoeffding) and max r + Σ p r
  //
  // and the logarithm of an output, d_i − Σ p d − e more than at m, is off its tangent by −e. The
  // output itself is p_i exp(a − e) for a = d_i − Σ p d, |a| ≤ A, and off its tangent p_i (1 + a)
  // by p_i times something in [−E, e^A − 1 − A].
  Remainder remainder(const std::vector<Range>& inputs, const Tensors& middles,
                      double unit) const override {
    const torch::Tensor& like = inputs[0].lower;
    const int64_t axis = normalize_axis(axis_, like.dim(), node_);
    const torch::Tensor lower = ready(inputs[0].lower, axis), upper = ready(inputs[0].upper, axis);
    const torch::Tensor m = ready(middles[0], axis);
    const torch::Tensor r =
        torch::maximum(upper - m, m - lower).masked_fill(gone(lower, upper, axis), 0);
    const torch::Tensor p = torch::softmax(m, axis);
    const torch::Tensor mean = (p * r).sum(axis, true), most = r.amax(axis, true);
    const torch::Tensor bend = torch::minimum(
        torch::minimum((p * (torch::expm1(r) - r)).sum(axis, true), most.square() / 2),
        most + mean);
    Range exact = {-bend.expand_as(m), torch::zeros_like(m)};
    if (!logarithm_) {
      const torch::Tensor a = (r + mean - p * r * 2).clamp_min(0);
      exact = {-p * bend, p * (torch::expm1(a) - a)};
    }
    const auto shaped = [&](const torch::Tensor& x) {
      return x.expand_as(m).reshape(like.sizes());
    };
    return {{shaped(exact.lower), shaped(exact.upper)}, shaped(rounding(lower, upper, axis, unit))};
  }

  int64_t unit_sum(int64_t rank) const override {
    const int64_t axis = normalize_axis(axis_, rank, node_);
    return logarithm_ || (flattens_ && axis != rank - 1) ? -1 : axis;
  }

 private:
  static constexpr double kMasked = -std::numeric_limits<double>::infinity();

  // Far enough below another number to be 0 in the output, whatever is computed of it.
  static torch::Tensor gone(const torch::Tensor& lower, const torch::Tensor& upper, int64_t axis) {
    return upper < lower.amax(axis, true) - 800;
  }

  torch::Tensor ready(const torch::Tensor& x, int64_t axis) const {
    const bool flat = flattens_ && axis != x.dim() - 1;
    return (flat ? x.flatten(axis, -1) : x).to(torch::kDouble);
  }

  // Computed as exp(x − max) over a sum of exponentials: the difference's error counts too.
  torch::Tensor rounding(const torch::Tensor& lower, const torch::Tensor& upper, int64_t axis,
                         double unit) const {
    torch::Tensor each = torch::maximum(lower.abs(), upper.abs());
    if (!logarithm_) each = each.masked_fill(gone(lower, upper, axis), 0);
    const torch::Tensor size = each.amax(axis, true);
    const double units = (static_cast<double>(lower.size(axis)) + 16) * unit;
    return (size * 2 + 1) * units + std::numeric_limits<float>::min();
  }

  // The output for each element at x and all others at y; `unknown` stands for y − x where it is
  // not a number, and nothing is masked.
  torch::Tensor against(const torch::Tensor& x, const torch::Tensor& y, int64_t axis,
                        double unknown) const {
    Tensors results;
    for (int64_t i = 0; i < x.size(axis); ++i) {
      const torch::Tensor difference = y - x.narrow(axis, i, 1);
      const torch::Tensor lost = difference.isnan();
      const torch::Tensor terms = torch::exp(
          difference.masked_fill(lost, unknown).masked_fill(lost & (y == kMasked), kMasked));
      terms.narrow(axis, i, 1).zero_();
      const torch::Tensor sum = terms.sum(axis, /*keepdim=*/true);
      results.push_back(logarithm_ ? -torch::log1p(sum) : torch::reciprocal(sum + 1));
    }
    return torch::cat(results, axis);
  }

  torch::Tensor along(const torch::Tensor& x, int64_t axis) const {
    const bool rows = !logarithm_ && axis == x.dim() - 1 && x.numel() > 0 && has_row_functions(x);
    if (rows) return softmax_rows(x);
    const torch::Tensor shifted = x - x.detach().amax(axis, /*keepdim=*/true);
    const torch::Tensor terms = each_alike([](const torch::Tensor& t) { return t.exp(); }, shifted);
    const torch::Tensor sum = sum_along(terms, {axis}, /*keep_axes=*/true);
    if (!logarithm_) return terms / sum;
    return shifted - each_alike([](const torch::Tensor& t) { return t.log(); }, sum);
  }

  Node node_;
  bool flattens_;
  int64_t axis_;
  bool logarithm_;
};

}  // namespace

OpPointer make_softmax(OpArguments& arguments) {
  return std::make_unique<Softmax>(arguments, /*logarithm=*/false);
}

OpPointer make_log_softmax(OpArguments& arguments) {
  return std::make_unique<Softmax>(arguments, /*logarithm=*/true);
}

}  // namespace fcp
