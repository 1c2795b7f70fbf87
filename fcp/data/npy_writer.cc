#include <algorithm>
#include <bit>

#include "fcp/base/error.h"
#include "fcp/data/npy.h"

namespace fcp {

namespace {

// Bytes go to the file as they lie in memory.
static_assert(std::endian::native == std::endian::little && sizeof(bool) == 1);

struct WrittenType {
  const char* text;
  size_t size;
};

WrittenType written_type(NpyWriter::Type type) {
  return type == NpyWriter::Type::kFloat32 ? WrittenType{"<f4", 4} : WrittenType{"|b1", 1};
}

std::string dictionary(NpyWriter::Type type, int64_t rows, std::span<const int64_t> row_shape) {
  std::string text = concat("{'descr': '", written_type(type).text,
                            "', 'fortran_order': False, 'shape': (", rows, ",");
  for (size_t i = 0; i < row_shape.size(); ++i) text += concat(i > 0 ? ", " : " ", row_shape[i]);
  return text + "), }";
}

// A header whose length does not depend on the number of rows, so that it can be replaced later.
std::string header_text(NpyWriter::Type type, int64_t rows, std::span<const int64_t> row_shape) {
  const size_t longest = dictionary(type, INT64_MAX, row_shape).size();
  const size_t total = (10 + longest + 1 + 63) / 64 * 64;  // the data begin at a multiple of 64
  const size_t length = total - 10;
  std::string text = dictionary(type, rows, row_shape);
  text.resize(length - 1, ' ');
  const char low = static_cast<char>(length & 255), high = static_cast<char>(length >> 8);
  return std::string("\x93NUMPY\x01\x00", 8) + low + high + text + '\n';
}

template <typename T>
std::string_view as_bytes(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

}  // namespace

NpyWriter::NpyWriter(const std::string& path, std::vector<int64_t> row_shape, Type type)
    : file_(path),
      row_shape_(std::move(row_shape)),
      type_(type),
      row_size_(element_count(row_shape_)) {
  file_.write(header_text(type_, 0, row_shape_));
}

void NpyWriter::append_bytes(Type type, size_t count, std::string_view bytes) {
  if (type != type_) {
    fail(file_.path(), ": numbers of type ", written_type(type).text, " appended, expected ",
         written_type(type_).text);
  }
  if (row_size_ == 0 || count % row_size_ != 0) {
    fail(file_.path(), ": ", count, " numbers are not a whole number of rows of ", row_size_);
  }
  file_.write(bytes);
  rows_ += static_cast<int64_t>(count / row_size_);
}

void NpyWriter::append(std::span<const float> values) {
  append_bytes(Type::kFloat32, values.size(), as_bytes(values));
}

void NpyWriter::append(std::span<const bool> values) {
  append_bytes(Type::kBool, values.size(), as_bytes(values));
}

void NpyWriter::close() {
  file_.overwrite(0, header_text(type_, rows_, row_shape_));
  file_.commit();
}

void write_npy(const std::string& path, const Array& array) {
  if (array.shape.empty()) fail(path, ": cannot write an array without rows");
  NpyWriter writer(path, {array.shape.begin() + 1, array.shape.end()});
  if (!array.values.empty()) writer.append(std::span(array.values));
  writer.close();
}

}  // namespace fcp
