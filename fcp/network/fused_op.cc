#include "fcp/network/fused_op.h"

namespace fcp {

Tensors FusedOp::forward(const Tensors& inputs) const {
  Finish finish;
  finish.activation = activation_;
  if (bias_ >= 0) finish.bias = inputs[static_cast<size_t>(bias_)];
  if (added_ >= 0) finish.added = inputs[static_cast<size_t>(added_)];
  const auto own = static_cast<ptrdiff_t>(parts_[0].sources.size());
  const Tensors first(inputs.begin(), inputs.begin() + own);
  const torch::Tensor whole = parts_[0].op->forward_finished(first, finish);
  if (whole.defined()) return {whole};
  Tensors results;
  for (const Part& part : parts_) {
    Tensors arguments;
    for (const Source& source : part.sources) {
      const auto at = static_cast<size_t>(source.index);
      if (source.index < 0)
        arguments.emplace_back();
      else
        arguments.push_back(source.inner ? results[at] : inputs[at]);
    }
    results.push_back(part.op->forward(arguments)[0]);
  }
  return {results.back()};
}

}  // namespace fcp
