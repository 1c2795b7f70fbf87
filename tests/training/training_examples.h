// Random data for the tests of this module.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include <torch/types.h>

#include "fcp/base/random.h"
#include "fcp/data/array.h"

namespace fcp {

inline Array normal_array(int64_t rows, int64_t columns, uint64_t seed) {
  Random random(seed);
  Array array = zeros({rows, columns});
  for (float& value : array.values) value = static_cast<float>(random.normal());
  return array;
}

// One column: f of each row of x.
inline Array column_of(const Array& x, const std::function<double(std::span<const float>)>& f) {
  Array y = zeros({static_cast<int64_t>(x.rows()), 1});
  for (size_t i = 0; i < x.rows(); ++i) y.values[i] = static_cast<float>(f(x.row(i)));
  return y;
}

inline torch::Tensor tensor_of(std::span<const float> values, std::vector<int64_t> shape) {
  return torch::tensor(std::vector<float>(values.begin(), values.end()), torch::kFloat).view(shape);
}

inline torch::Tensor tensor_of(const Array& array) { return tensor_of(array.values, array.shape); }

inline double largest_difference(const torch::Tensor& a, const torch::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

}  // namespace fcp
