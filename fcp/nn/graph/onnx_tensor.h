// Tensors between ONNX messages and memory; the reader and the writer share this file.
#pragma once

#include <string>

#include "fcp/nn/graph/constant_tensor.h"

// The protobuf messages of ONNX, for what reads and writes them.

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include FCP_ONNX_HEADER
#pragma GCC diagnostic pop

namespace fcp {

// The tensor of a message. Its bytes come from the message or, for external data, from a file
// below `folder` (empty: refused). `owner` names the file and tensor in errors.
ConstantTensor tensor_from_onnx(const onnx::TensorProto& message, const std::string& owner,
                                const std::string& folder);

// The message of a tensor, as raw little-endian bytes.
void tensor_to_onnx(const std::string& name, const ConstantTensor& tensor,
                    onnx::TensorProto& message);

// The same but for those bytes.
void header_to_onnx(const std::string& name, const ConstantTensor& tensor,
                    onnx::TensorProto& message);

}  // namespace fcp
