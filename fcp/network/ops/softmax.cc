// Softmax and its logarithm. From opset 13 on along one axis; before, the tensor is seen as a
// matrix whose rows are all axes from `axis` on, and each row is normalised as a whole.
//
// Cost: linear in the input. Reference: ONNX operator specification, versions 1, 11 and 13.
// Tested by tests/network/ops_pooling_test.cc.
#include <limits>

#include <torch/types.h>

#include "fcp/network/ops/checks.h"
#include "fcp/network/ops/factories.h"
#include "fcp/network/ops/shared.h"
#include "fcp/network/row_product.h"

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

  BoundRule bound_rule(const std::vector<bool>&) const override { return BoundRule::kInterval; }

  // 1 / (1 + Σ exp(x_j − x_i)) over the other j is least where x_i is and they are largest.
  std::vector<Range> interval(const std::vector<Range>& inputs, double unit) const override {
    const torch::Tensor& like = inputs[0].lower;
    const int64_t axis = normalize_axis(axis_, like.dim(), node_);
    const bool flat = flattens_ && axis != like.dim() - 1;
    const auto ready = [&](const torch::Tensor& x) {
      return (flat ? x.flatten(axis, -1) : x).to(torch::kDouble);
    };
    const torch::Tensor lower = ready(inputs[0].lower), upper = ready(inputs[0].upper);
    Range range = {against(lower, upper, axis), against(upper, lower, axis)};
    if (unit > 0) {
      // Computed as exp(x − max) over a sum of exponentials: the difference's error counts too.
      const torch::Tensor size = torch::maximum(lower.abs(), upper.abs()).amax(axis, true);
      const double units = (static_cast<double>(lower.size(axis)) + 16) * unit;
      const torch::Tensor error = (size * 2 + 1) * units + std::numeric_limits<float>::min();
      range = {range.lower - error, range.upper + error};
    }
    return {{range.lower.to(like.scalar_type()).view(like.sizes()),
             range.upper.to(like.scalar_type()).view(like.sizes())}};
  }

 private:
  // The output for each element at x and all others at y.
  torch::Tensor against(const torch::Tensor& x, const torch::Tensor& y, int64_t axis) const {
    Tensors results;
    for (int64_t i = 0; i < x.size(axis); ++i) {
      const torch::Tensor terms = torch::exp(y - x.narrow(axis, i, 1));
      terms.narrow(axis, i, 1).zero_();
      const torch::Tensor sum = terms.sum(axis, /*keepdim=*/true);
      results.push_back(logarithm_ ? -torch::log1p(sum) : torch::reciprocal(sum + 1));
    }
    return torch::cat(results, axis);
  }

  torch::Tensor along(const torch::Tensor& x, int64_t axis) const {
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
