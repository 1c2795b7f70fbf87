// `If` nodes whose condition is known when the file is read, replaced by the branch they take.
// Exporters write such nodes around shapes ("squeeze this axis where it is 1").
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "fcp/nn/graph/onnx_tensor.h"

namespace fcp {

// The value of a tensor of the graph, given the nodes before place `end`; nothing where it depends
// on the inputs' numbers.
using KnownTruth =
    std::function<std::optional<bool>(const onnx::GraphProto&, const std::string&, int end)>;

// Replaces every If from the first on, those inside a chosen branch too; an If whose condition is
// not known stays. Tensors inside a branch get names of their own.
// Tested by tests/nn/graph/onnx_test.cc.
void inline_if(onnx::GraphProto& graph, const std::string& file, const KnownTruth& truth);

// Gives the tensors that a node reads and makes other names, in the graphs inside it too.
using TensorNames = std::map<std::string, std::string>;
void rename_tensors(onnx::NodeProto& node, const TensorNames& names);

}  // namespace fcp
