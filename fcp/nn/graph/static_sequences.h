// Sequences of tensors whose length is known when the file is read, replaced by their tensors:
// SequenceConstruct, SequenceEmpty, SequenceInsert, SequenceErase, SequenceAt, SequenceLength,
// SplitToSequence and ConcatFromSequence become Identity, Slice, Split and Concat nodes. A Loop
// that carries a sequence is written out, iteration by iteration, where their number is known.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "fcp/nn/graph/constant_tensor.h"
#include "fcp/nn/graph/onnx_tensor.h"

namespace fcp {

// The value of a tensor of the graph, given the nodes before place `end`; nothing where it depends
// on the inputs' numbers.
using KnownValue = std::function<std::optional<ConstantTensor>(const onnx::GraphProto&,
                                                               const std::string&, int end)>;

// An Error names the node where a length or a place is not known.
// Tested by tests/nn/graph/onnx_test.cc.
void resolve_sequences(onnx::GraphProto& graph, int64_t opset, const std::string& file,
                       const KnownValue& known);

}  // namespace fcp
