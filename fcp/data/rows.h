// The one way the verbs read data: features x and targets y, so many rows at a time, whatever the
// files are. A CSV file (plain or gzip) names its target by column; .npy data takes its target from
// another .npy. An entry of an .npz archive is written archive.npz:entry. Files are known by their
// first bytes, not by their names. Several files, with commas between, are one long list of rows.
//
// Tested by tests/data/rows_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fcp/data/array.h"
#include "fcp/data/csv.h"

namespace fcp {

struct Rows {
  Array x;               // [n, …]
  Array y;               // [n, K]; empty when there is no target
  size_t first_row = 0;  // of x in the whole data, from 0
};

class RowSource {
 public:
  virtual ~RowSource() = default;

  // The next rows, at most `count`; false when there are none left.
  virtual bool next(size_t count, Rows& out) = 0;
  virtual void rewind() = 0;
  // Passes over the next rows, at most `count`, and returns how many there were; here by reading
  // them, where a kind of data knows no better.
  virtual size_t skip(size_t count);

  // Whether row_name and row_place may be asked while another thread reads: they follow from the
  // row's number.
  virtual bool read_apart() const { return false; }

  // Rows in all, where that is known without reading them.
  virtual std::optional<size_t> size() const = 0;

  // Rows to run at a time, where the source knows better than the size of a row tells.
  virtual std::optional<size_t> usual_batch() const { return std::nullopt; }

  virtual const std::vector<std::string>& column_names() const = 0;  // of x; empty for .npy
  virtual const std::vector<std::string>& target_names() const = 0;  // of y; empty for .npy
  virtual const std::vector<int64_t>& row_shape() const = 0;         // of one row of x
  virtual size_t target_count() const = 0;                           // K; 0 without target

  // How a CSV file's columns became features; null for .npy.
  virtual const CsvEncoding* encoding() const { return nullptr; }

  // What the columns of a CSV file are; null unless it was found out.
  virtual const TableSchema* schema() const { return nullptr; }
  // What was left out when the data was opened, and what was odd about the rows read since the last
  // rewind, a line each.
  virtual std::vector<std::string> notes() const { return {}; }
  virtual std::vector<std::string> warnings() const { return {}; }

  // The names of the classes that labels count from 0; empty where they are not known.
  virtual const std::vector<std::string>& class_names() const;
  // What row `row` of the whole data is called: the file of an image; "" where it has no name.
  virtual std::string row_name(size_t row) const;
  // Where row `row` of the whole data stands, for messages: file and row, or the file of an image.
  // Of rows that were read already.
  virtual std::string row_place(size_t row) const;
};

using RowOptions = CsvOptions;  // .npy files leave nothing to choose

// target: columns of a CSV file, or the .npy of y for .npy data, as many as there are files of
// data; empty for none. CSV files are read through the encoding of the first. A one-dimensional
// .npy [N] is read as [N, 1]; y of more axes [N, a, b] as [N, a·b].
std::unique_ptr<RowSource> open_rows(const std::string& data, const std::string& target,
                                     const RowOptions& options = {});

// The files of a list with commas between; a name that has a comma itself and exists is one file.
std::vector<std::string> file_list(const std::string& files);

// Whether open_rows reads it as .npy, or as an entry of an .npz archive.
bool holds_array(const std::string& path);

// All rows from the beginning.
Rows read_all(RowSource& source);

}  // namespace fcp
