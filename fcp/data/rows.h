// The one way the verbs read data: features x and targets y, so many rows at a time, whatever the
// files are. A CSV file (plain or gzip) names its target by column; .npy data takes its target from
// another .npy. An entry of an .npz archive is written archive.npz:entry. Files are known by their
// first bytes, not by their names. Several files, with commas between, are one long list of rows.
//
// Tested by tests/data/rows_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fcp/data/array.h"
#include "fcp/data/csv.h"

namespace fcp {

struct SegmentImage;  // both: fcp/data/images/segmentation.h
struct SegmentTask;

// A batch of rows, with what has to be said of them.
struct Rows {
  // A text for each row, made when it is asked for. Any thread may ask, as long as the source
  // lives.
  using Text = std::function<std::string(size_t row)>;

  Array x;               // [n, …]
  Array y;               // [n, K]; empty when there is no target
  size_t first_row = 0;  // of x in the whole data, from 0
  // Where rows stand, part by part: row `begin` of the batch is row 0 of the part's text.
  struct Part {
    size_t begin = 0;
    Text place;
  };
  std::vector<Part> parts = {};
  Text names = {};      // none: rows have no names
  RowNotes notes = {};  // of rows of a CSV file
  // Of a source with segmentation(): the picture of each row.
  std::vector<std::shared_ptr<const SegmentImage>> images = {};

  // Where row `i` of the batch stands, for messages: its file and row, or the file of an image.
  std::string place(size_t i) const;
  // What it is called: the file of an image, the line of a CSV file; "" where rows have no names.
  std::string name(size_t i) const;

  // The batch is rows `first` and following of a table. The name must live as long as the source.
  void stand_in(const std::string& table, size_t first);
  // Appends x, y and places of more rows.
  void append(const Rows& more);
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

  // Whether another thread may call next() while this one calls the functions that are const.
  virtual bool can_prefetch() const { return false; }

  // Rows in all, where that is known without reading them.
  virtual std::optional<size_t> size() const = 0;

  // Rows to run at a time, where the source knows better than the size of a row tells.
  virtual std::optional<size_t> usual_batch() const { return std::nullopt; }

  virtual const std::vector<std::string>& column_names() const;  // of x; here: none
  virtual const std::vector<std::string>& target_names() const;  // of y; here: none
  virtual const std::vector<int64_t>& row_shape() const = 0;     // of one row of x
  virtual size_t target_count() const = 0;                       // K; 0 without target

  // How a CSV file's columns became features; null for .npy.
  virtual const CsvEncoding* encoding() const { return nullptr; }

  // What the columns of a CSV file are; null unless it was inferred.
  virtual const TableSchema* schema() const { return nullptr; }

  // How the pixels of images are labelled; null where rows are anything else. Batches then have
  // Rows::images.
  virtual const SegmentTask* segmentation() const { return nullptr; }

  // What was left out when the data was opened, and what was odd about the rows read since the last
  // rewind, a line each.
  virtual std::vector<std::string> notes() const { return {}; }
  virtual std::vector<std::string> warnings() const { return {}; }

  // The names of the classes that labels count from 0; empty where they are not known.
  virtual const std::vector<std::string>& class_names() const;
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
