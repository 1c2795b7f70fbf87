#include "fcp/data/npy_column.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>

#include "fcp/base/error.h"
#include "fcp/base/text.h"
#include "fcp/data/npy.h"
#include "fcp/data/npz.h"

namespace fcp {
namespace {

constexpr size_t kCellsAtOnce = 4096;

// `size` bytes as an unsigned number.
uint64_t word_of(const char* bytes, int size, bool big_endian) {
  uint64_t word = 0;
  for (int i = 0; i < size; ++i) {
    const int from = big_endian ? i : size - 1 - i;
    word = word << 8 | static_cast<unsigned char>(bytes[from]);
  }
  return word;
}

void append_utf8(std::string& text, uint32_t point) {
  const auto put = [&](uint32_t byte) { text += static_cast<char>(byte); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xc0 | point >> 6);
    put(0x80 | (point & 63));
  } else if (point < 0x10000) {
    put(0xe0 | point >> 12);
    put(0x80 | (point >> 6 & 63));
    put(0x80 | (point & 63));
  } else {
    put(0xf0 | point >> 18);
    put(0x80 | (point >> 12 & 63));
    put(0x80 | (point >> 6 & 63));
    put(0x80 | (point & 63));
  }
}

// Cells are filled up with NULs.
std::string text_cell(const NpyType& type, const char* bytes) {
  std::string text;
  if (type.kind == 'S') {
    text.assign(bytes, static_cast<size_t>(type.size));
    text.resize(text.find_last_not_of('\0') + 1);
    return text;
  }
  size_t length = 0;  // up to the last character that is not NUL
  for (int at = 0; at < type.size; at += 4) {
    const auto point = static_cast<uint32_t>(word_of(bytes + at, 4, type.big_endian));
    const bool legal = point < 0x110000 && (point < 0xd800 || point > 0xdfff);
    append_utf8(text, legal ? point : 0xfffd);
    if (point != 0) length = text.size();
  }
  text.resize(length);
  return text;
}

// Of float16 the 11 bits are exact in single precision.
double number_cell(const NpyType& type, uint64_t word) {
  if (type.size == 8) return std::bit_cast<double>(word);
  if (type.size == 4) return std::bit_cast<float>(static_cast<uint32_t>(word));
  const int exponent = static_cast<int>(word >> 10 & 31), fraction = static_cast<int>(word & 1023);
  if (exponent == 31) return fraction == 0 ? INFINITY : NAN;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return word >> 15 != 0 ? -magnitude : magnitude;
}

std::string whole_number(const NpyType& type, uint64_t word, const std::string& name, size_t row) {
  const double value = number_cell(type, word);
  const double most = type.size == 8 ? 0x1p53 : type.size == 4 ? 0x1p24 : 0x1p11;
  if (!(std::abs(value) <= most) || value != std::floor(value)) {
    fail(name, ": row ", row, " (from 0) is ", value,
         ", expected text, integers, or whole numbers up to ", most);
  }
  return std::to_string(static_cast<int64_t>(value));
}

std::string cell_text(const NpyType& type, const char* bytes, const std::string& name, size_t row) {
  if (type.kind == 'U' || type.kind == 'S') {
    std::string text = text_cell(type, bytes);
    if (!is_utf8(text)) fail(name, ": row ", row, " (from 0) is not UTF-8 text");
    return text;
  }
  const uint64_t word = word_of(bytes, type.size, type.big_endian);
  if (type.kind == 'f') return whole_number(type, word, name, row);
  if (type.kind == 'b') return word == 0 ? "0" : "1";
  if (type.kind == 'u') return std::to_string(word);
  const int unused = 64 - 8 * type.size;  // shifts the sign up and back
  return std::to_string(static_cast<int64_t>(word << unused) >> unused);
}

}  // namespace

std::vector<std::string> read_npy_column(const std::string& path) {
  const std::unique_ptr<ByteSource> bytes = open_array_bytes(path);
  const NpyHeader header = read_npy_header(*bytes, /*text=*/true);
  const std::vector<int64_t>& shape = header.shape;
  const bool column = shape.size() == 1 || (shape.size() == 2 && shape[1] == 1);
  if (!column) {
    fail(bytes->name(), ": shape ", shape_text(shape), ", expected one column, [N] or [N, 1]");
  }
  const auto rows = static_cast<size_t>(shape[0]), item = static_cast<size_t>(header.type.size);
  std::vector<std::string> cells;
  std::vector<char> block;
  while (cells.size() < rows) {
    const size_t some = std::min(rows - cells.size(), kCellsAtOnce);
    block.resize(some * item);
    if (bytes->read(block.data(), block.size()) < block.size()) {
      fail(bytes->name(), ": truncated: the data end before shape ", shape_text(shape),
           " is filled");
    }
    for (size_t i = 0; i < some; ++i) {
      cells.push_back(cell_text(header.type, block.data() + i * item, bytes->name(), cells.size()));
    }
  }
  check_npy_end(*bytes);
  return cells;
}

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
