// Element types: which of ONNX's we read, and the libtorch type of each. Only the reader and the
// writer include this file.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include <torch/types.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include FCP_ONNX_HEADER
#pragma GCC diagnostic pop

namespace fcp {

struct TypePair {
  onnx::TensorProto::DataType onnx;
  torch::ScalarType torch;
};

inline constexpr std::array<TypePair, 10> kTypePairs = {{
    {onnx::TensorProto::FLOAT, torch::kFloat},
    {onnx::TensorProto::DOUBLE, torch::kDouble},
    {onnx::TensorProto::FLOAT16, torch::kHalf},
    {onnx::TensorProto::BFLOAT16, torch::kBFloat16},
    {onnx::TensorProto::INT64, torch::kLong},
    {onnx::TensorProto::INT32, torch::kInt},
    {onnx::TensorProto::INT16, torch::kShort},
    {onnx::TensorProto::INT8, torch::kChar},
    {onnx::TensorProto::UINT8, torch::kByte},
    {onnx::TensorProto::BOOL, torch::kBool},
}};

inline std::optional<torch::ScalarType> torch_type(int32_t onnx_type) {
  for (const TypePair& pair : kTypePairs) {
    if (pair.onnx == onnx_type) return pair.torch;
  }
  return std::nullopt;
}

inline std::optional<onnx::TensorProto::DataType> onnx_type(torch::ScalarType type) {
  for (const TypePair& pair : kTypePairs) {
    if (pair.torch == type) return pair.onnx;
  }
  return std::nullopt;
}

}  // namespace fcp
