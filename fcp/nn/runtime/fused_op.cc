#include "fcp/nn/runtime/fused_op.h"

#include "fcp/nn/runtime/tensor_memory.h"

namespace fcp {

torch::Tensor FusedOp::at_once(const Tensors& inputs) const {
  Epilogue epilogue;
  epilogue.activation = ends_.activation;
  if (ends_.bias >= 0) epilogue.bias = inputs[static_cast<size_t>(ends_.bias)];
  if (ends_.added >= 0) epilogue.added = inputs[static_cast<size_t>(ends_.added)];
  const auto own = static_cast<ptrdiff_t>(parts_[0].sources.size());
  Tensors first(inputs.begin(), inputs.begin() + own);
  if (!ends_.joins) return parts_[0].op->forward_with_epilogue(first, epilogue);
  for (const Source& source : parts_[1].sources) {
    if (!source.inner) first.push_back(inputs[static_cast<size_t>(source.index)]);
  }
  return parts_[1].op->forward_with_epilogue(first, epilogue);
}

Tensors FusedOp::forward(const Tensors& inputs) const {
  const torch::Tensor whole = at_once(inputs);
  if (whole.defined()) return {whole};
  const TensorMemory memory(0);  // a sum may be far larger than what is added
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
    memory.before(part.node, arguments);
    results.push_back(part.op->forward(arguments)[0]);
  }
  return {results.back()};
}

}  // namespace fcp
