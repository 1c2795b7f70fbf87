#include "fcp/data/array.h"

#include <algorithm>
#include <limits>

#include "fcp/base/error.h"

namespace fcp {

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

size_t element_count(std::span<const int64_t> shape) {
  // Eight bytes for each element must be addressable, whatever its type.
  constexpr uint64_t kLimit = std::numeric_limits<int64_t>::max() / 8;
  const bool negative = std::any_of(shape.begin(), shape.end(), [](int64_t n) { return n < 0; });
  if (negative) fail("shape ", shape_text(shape), " has a negative size");
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  uint64_t count = 1;
  for (const int64_t size : shape) {
    if (static_cast<uint64_t>(size) > kLimit / count) {
      fail("shape ", shape_text(shape), " has too many elements for this machine");
    }
    count *= static_cast<uint64_t>(size);
  }
  return count;
}

size_t Array::row_size() const {
  return shape.empty() ? 0 : element_count(std::span(shape).subspan(1));
}

std::span<const float> Array::row(size_t index) const {
  const size_t size = row_size();
  return std::span(values).subspan(index * size, size);
}

Array zeros(std::vector<int64_t> shape) {
  const size_t count = element_count(shape);
  return {std::move(shape), std::vector<float>(count)};
}

Array take_rows(const Array& array, std::span<const size_t> indices) {
  const size_t size = array.row_size();
  Array taken = array.shape.empty() ? Array{{0}, {}} : Array{array.shape, {}};
  taken.shape[0] = static_cast<int64_t>(indices.size());
  taken.values.reserve(indices.size() * size);
  for (const size_t index : indices) {
    if (index >= array.rows()) {
      fail("row ", index, " asked of an array of ", array.rows(), " rows");
    }
    const auto first = array.values.begin() + static_cast<std::ptrdiff_t>(index * size);
    taken.values.insert(taken.values.end(), first, first + static_cast<std::ptrdiff_t>(size));
  }
  return taken;
}

}  // namespace fcp
