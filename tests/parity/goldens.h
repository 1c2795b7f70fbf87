// What the parity tests share: the folders that make_networks.py and make_op_cases.py wrote, their
// .npy files as tensors of the very type the file has, and how far two tensors differ.
#pragma once

#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <string>

#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/data/npy.h"

namespace fcp {

inline std::string goldens_folder(const std::string& kind) {
  return std::string(FCP_PARITY_DIR) + "/" + kind;
}

// index.json of the folder; null where the goldens could not be made.
inline nlohmann::json read_index(const std::string& folder) {
  std::ifstream file(folder + "/index.json");
  return file ? nlohmann::json::parse(file) : nlohmann::json();
}

// As the file has it, where the data module converts everything to float32: operators are tested on
// integers and booleans too.
inline torch::Tensor read_tensor(const std::string& path) {
  static const std::map<std::string, torch::ScalarType> types = {
      {"f2", torch::kHalf},  {"f4", torch::kFloat}, {"f8", torch::kDouble},
      {"i1", torch::kInt8},  {"i2", torch::kInt16}, {"i4", torch::kInt32},
      {"i8", torch::kInt64}, {"u1", torch::kUInt8}, {"b1", torch::kBool}};
  const NpyHeader header = NpyReader(path).header();
  if (header.fortran_order || header.type.big_endian) fail(path, ": expected C order");
  const auto type = types.find(concat(header.type.kind, header.type.size));
  if (type == types.end()) fail(path, ": no tensor type for ", header.type.kind, header.type.size);
  torch::Tensor tensor = torch::empty(header.shape, type->second);
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(header.data_offset));
  file.read(static_cast<char*>(tensor.data_ptr()), static_cast<std::streamsize>(tensor.nbytes()));
  if (!file) fail(path, ": too short");
  return tensor;
}

// max |found - expected| / max |expected|; infinite where the shapes differ.
inline double relative_error(const torch::Tensor& found, const torch::Tensor& expected) {
  if (found.sizes() != expected.sizes()) return std::numeric_limits<double>::infinity();
  const torch::Tensor difference = (found - expected).abs().max();
  return (difference / expected.abs().max()).item<double>();
}

}  // namespace fcp
