// NumPy's .npy files (format versions 1, 2 and 3).
//
// Read: half, float, double, all integers and bool, of either byte order, in C or Fortran order,
// as float32; a finite double that float32 cannot hold is an Error, and so are bytes behind the
// array. npy_column.h reads integers and text exactly. In C order rows are streamed; Fortran order
// keeps whole columns together, so such a file is read whole. A header never makes us allocate more
// than the file can fill. Written: float32, bool and int64, little-endian, C order.
//
// Tested by tests/data/npy_test.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fcp/base/output_file.h"
#include "fcp/data/array.h"
#include "fcp/data/bytes.h"

namespace fcp {

// One number's layout in the file: kind 'f', 'i', 'u' or 'b', and its size in bytes. Text that is
// asked for has kind 'U' (four bytes a character) or 'S'.
struct NpyType {
  char kind = 'f';
  int size = 4;
  bool big_endian = false;
};

struct NpyHeader {
  NpyType type;
  bool fortran_order = false;
  std::vector<int64_t> shape;
  uint64_t data_offset = 0;
};

// Reads the header and holds it against the size of the source. Text is an Error unless asked for.
NpyHeader read_npy_header(ByteSource& bytes, bool text = false);

// An Error where the source goes on behind its array; called when all of that has been read.
void check_npy_end(ByteSource& bytes);

class NpyReader {
 public:
  explicit NpyReader(const std::string& path);  // path, or archive.npz:entry
  explicit NpyReader(std::unique_ptr<ByteSource> bytes);

  const std::string& name() const { return bytes_->name(); }
  const std::vector<int64_t>& shape() const { return header_.shape; }
  const NpyHeader& header() const { return header_; }

  // From now on arrays have their numbers as doubles too (Array::exact).
  void keep_exact() { exact_ = true; }

  // The next rows, at most `count`, into `out`; false when there are none left.
  bool next(size_t count, Array& out);
  void skip(size_t count);  // rows; fewer at the end
  Array read_all();
  void rewind();

 private:
  void read_numbers(size_t count, Array& out);
  void check_range(const char* bytes, const float* converted, size_t count) const;

  std::unique_ptr<ByteSource> bytes_;
  NpyHeader header_;
  size_t next_row_ = 0;
  size_t next_number_ = 0;  // in the order of the file
  bool exact_ = false;
  bool loaded_ = false;  // whole_ is filled
  Array whole_;          // Fortran order only
  std::vector<char> buffer_;
};

// The whole array, its shape unchanged (a single number has the shape []). Also
// "archive.npz:entry".
Array read_npy(const std::string& path);

// Whether the file begins as an .npy does.
bool is_npy(const std::string& path);

// Appends rows; the number of rows is put into the header by close(). A writer that is not closed
// leaves no file behind.
class NpyWriter {
 public:
  enum class Type { kFloat32, kBool };

  NpyWriter(const std::string& path, std::vector<int64_t> row_shape, Type type = Type::kFloat32);

  // A whole number of rows. The element type must be the writer's own.
  void append(std::span<const float> values);
  void append(std::span<const bool> values);
  void close();

 private:
  void append_bytes(Type type, size_t count, std::string_view bytes);

  OutputFile file_;
  std::vector<int64_t> row_shape_;
  Type type_;
  size_t row_size_;
  int64_t rows_ = 0;
};

void write_npy(const std::string& path, const Array& array);

}  // namespace fcp
