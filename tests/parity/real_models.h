// The trained networks and their data, where FCP_DATA_DIR says they are.
#pragma once

#include <cstdlib>
#include <string>

#include <torch/types.h>

#include "fcp/nn/graph/onnx_reader.h"
#include "fcp/nn/runtime/network.h"

#include "tests/parity/goldens.h"

namespace fcp {

// Empty where FCP_DATA_DIR is not set.
inline std::string data_folder() {
  const char* folder = std::getenv("FCP_DATA_DIR");
  return folder ? folder : "";
}

inline std::string model_path(const std::string& name) {
  return data_folder() + "/../models/" + name + ".onnx";
}

// Rows whose label is among the `k` largest logits.
inline int64_t count_correct(const torch::Tensor& logits, const torch::Tensor& labels, int64_t k) {
  const torch::Tensor best = std::get<1>(logits.topk(k, 1));
  return best.eq(labels.unsqueeze(1)).any(1).sum().item<int64_t>();
}

}  // namespace fcp
