// A block of float32 numbers with a shape, row-major; the first axis counts the rows (samples).
// Everything this module reads becomes one of these: networks compute in float32, so integers and
// doubles in files are converted when read. For the inputs of networks that are integers or doubles
// themselves the numbers are kept as doubles beside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fcp {

// The product of all sizes. Fails where a size is negative or the product does not fit in memory.
size_t element_count(std::span<const int64_t> shape);

// "[3, 4]": for messages.
std::string shape_text(std::span<const int64_t> shape);

struct Array {
  std::vector<int64_t> shape;
  std::vector<float> values;
  std::vector<double> exact = {};  // the same numbers unrounded, where they were asked for

  bool empty() const { return values.empty(); }
  size_t rows() const { return shape.empty() ? 0 : static_cast<size_t>(shape[0]); }
  // Numbers in one row: the product of all sizes but the first.
  size_t row_size() const;
  std::span<const float> row(size_t index) const;
};

// The array of this shape filled with zeros.
Array zeros(std::vector<int64_t> shape);

// Appends the rows of `some`, of the same shape, to `all`; an empty `all` becomes `some`.
void append_rows(const Array& some, Array& all);

// The rows first … first + count − 1.
Array slice_rows(const Array& array, size_t first, size_t count);

// The rows named by `indices`, in that order; an index may come twice.
Array take_rows(const Array& array, std::span<const size_t> indices);

// A whole data set in memory: x is [N, …], y is [N, K].
struct DataSet {
  std::string name;
  std::vector<std::string> columns;  // of x; empty where they have no names
  std::vector<std::string> targets;  // of y
  Array x;
  Array y;
};

}  // namespace fcp
