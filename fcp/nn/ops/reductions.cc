#include "fcp/nn/ops/reductions.h"

#include <algorithm>
#include <numeric>

#include "fcp/base/error.h"
#include "fcp/nn/ops/shared.h"

namespace fcp {

ReducedAxes::ReducedAxes(OpArguments& arguments, int64_t inputs_since)
    : node_(arguments.node()),
      are_input_(arguments.opset() >= inputs_since),
      keep_(arguments.integer("keepdims", 1) != 0) {
  if (are_input_) {
    arguments.expect_inputs(1, 2);
    empty_means_none_ = arguments.integer("noop_with_empty_axes", 0) != 0;
  } else {
    arguments.expect_inputs(1, 1);
    axes_ = arguments.integers("axes");
  }
}

std::vector<int64_t> ReducedAxes::of(const Tensors& inputs) const {
  const torch::Tensor& x = inputs[0];
  if (!x.defined()) fail(describe(node_), ": data is absent");
  const bool given = are_input_ && inputs.size() > 1 && inputs[1].defined();
  std::vector<int64_t> axes = given ? to_integers(inputs[1], node_, "axes") : axes_;
  if (axes.empty()) {
    if (empty_means_none_) return {};
    axes.resize(static_cast<size_t>(x.dim()));
    std::iota(axes.begin(), axes.end(), 0);
  }
  for (int64_t& axis : axes) axis = normalize_axis(axis, x.dim(), node_);
  std::sort(axes.begin(), axes.end());
  const auto twice = std::adjacent_find(axes.begin(), axes.end());
  if (twice != axes.end()) fail(describe(node_), ": axis ", *twice, " is named twice");
  return axes;
}

}  // namespace fcp
