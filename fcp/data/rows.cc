#include "fcp/data/rows.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "fcp/base/error.h"
#include "fcp/base/special_numbers.h"
#include "fcp/data/bytes.h"
#include "fcp/data/npy.h"
#include "fcp/data/npz.h"
#include "fcp/data/number.h"
#include "fcp/data/row_sources.h"

namespace fcp {

namespace {

constexpr size_t kRowsAtOnce = 4096;

const std::vector<std::string>& no_names() {
  static const std::vector<std::string> kNone;
  return kNone;
}

class CsvRows : public RowSource {
 public:
  CsvRows(const std::string& path, const std::string& target, const CsvOptions& options)
      : path_(path),
        reader_(path, target, options),
        row_shape_{static_cast<int64_t>(reader_.feature_names().size())} {}

  bool next(size_t count, Rows& out) override {
    out.first_row = next_row_;
    out.stand_in(path_, next_row_);
    const bool some = reader_.next(count, out.x, out.y);
    out.notes = reader_.row_notes();
    next_row_ += out.x.rows();
    return some;
  }
  size_t skip(size_t count) override {
    const size_t done = reader_.skip(count);
    next_row_ += done;
    return done;
  }
  void rewind() override {
    reader_.rewind();
    next_row_ = 0;
  }
  std::optional<size_t> size() const override { return reader_.size(); }
  const std::vector<std::string>& column_names() const override { return reader_.feature_names(); }
  const std::vector<std::string>& target_names() const override { return reader_.target_names(); }
  const std::vector<int64_t>& row_shape() const override { return row_shape_; }
  size_t target_count() const override { return reader_.target_names().size(); }
  const CsvEncoding* encoding() const override { return &reader_.encoding(); }
  const TableSchema* schema() const override { return reader_.schema(); }
  std::vector<std::string> notes() const override { return reader_.notes(); }
  std::vector<std::string> warnings() const override { return reader_.warnings(); }
  const std::vector<std::string>& class_names() const override {
    return reader_.encoding().classes;
  }

 private:
  std::string path_;
  CsvReader reader_;
  std::vector<int64_t> row_shape_;
  size_t next_row_ = 0;
};

class NpyRows : public RowSource {
 public:
  NpyRows(const std::string& data, const std::string& target, const RowOptions& options)
      : x_(data), missing_as_nan_(options.missing_as_nan) {
    if (options.exact) x_.keep_exact();
    const std::vector<int64_t>& shape = x_.shape();
    if (shape.empty()) fail(x_.name(), ": holds a single number, expected rows");
    row_shape_.assign(shape.begin() + 1, shape.end());
    if (row_shape_.empty()) row_shape_ = {1};
    if (target.empty()) return;
    y_.emplace(target);
    if (options.exact) y_->keep_exact();
    const std::vector<int64_t>& y_shape = y_->shape();
    if (y_shape.empty()) fail(y_->name(), ": holds a single number, expected rows");
    if (y_shape[0] != shape[0]) {
      fail(y_->name(), ": found ", y_shape[0], " rows, expected ", shape[0], " as in ", x_.name());
    }
    target_count_ = element_count(std::span(y_shape).subspan(1));
  }

  bool next(size_t count, Rows& out) override {
    out.first_row = next_row_;
    out.stand_in(x_.name(), next_row_);
    const bool some = x_.next(count, out.x);
    refuse_bad_numbers(out.x, x_.name(), /*may_be_infinite=*/false, missing_as_nan_);
    const int64_t rows = out.x.shape[0];
    if (out.x.shape.size() == 1) out.x.shape.push_back(1);
    out.y = Array{};
    if (y_) {
      y_->next(count, out.y);
      refuse_bad_numbers(out.y, y_->name(), /*may_be_infinite=*/true, /*may_be_nan=*/false);
      out.y.shape = {rows, static_cast<int64_t>(target_count_)};
    }
    next_row_ += static_cast<size_t>(rows);
    return some;
  }

  size_t skip(size_t count) override {
    x_.skip(count);
    if (y_) y_->skip(count);
    const size_t done = std::min(count, static_cast<size_t>(x_.shape()[0]) - next_row_);
    next_row_ += done;
    return done;
  }
  void rewind() override {
    x_.rewind();
    if (y_) y_->rewind();
    next_row_ = 0;
  }
  bool can_prefetch() const override { return true; }
  std::optional<size_t> size() const override { return static_cast<size_t>(x_.shape()[0]); }
  const std::vector<int64_t>& row_shape() const override { return row_shape_; }
  size_t target_count() const override { return target_count_; }

 private:
  // A target may be infinite, what a network computes with may not.
  void refuse_bad_numbers(const Array& rows, const std::string& name, bool may_be_infinite,
                          bool may_be_nan) const {
    if (all_finite(rows.values.data(), rows.values.size())) return;
    const auto found = std::find_if(rows.values.begin(), rows.values.end(), [&](float value) {
      return std::isnan(value) ? !may_be_nan : std::isinf(value) && !may_be_infinite;
    });
    if (found == rows.values.end()) return;
    const size_t place = static_cast<size_t>(found - rows.values.begin());
    fail(name, ": row ", next_row_ + place / rows.row_size(), ", element ", place % rows.row_size(),
         " (both from 0): found ", std::isnan(*found) ? "NaN" : number_text(*found), ", expected a",
         std::isnan(*found) ? "" : " finite", " number");
  }

  NpyReader x_;
  bool missing_as_nan_ = false;
  std::optional<NpyReader> y_;
  std::vector<int64_t> row_shape_;
  size_t target_count_ = 0;
  size_t next_row_ = 0;
};

bool names_entry(const std::string& path) { return entry_colon(path) != std::string::npos; }

}  // namespace

size_t RowSource::skip(size_t count) {
  size_t done = 0;
  for (Rows rows; done < count && next(std::min(count - done, kRowsAtOnce), rows);) {
    done += rows.x.rows();
  }
  return done;
}

const std::vector<std::string>& RowSource::column_names() const { return no_names(); }
const std::vector<std::string>& RowSource::target_names() const { return no_names(); }
const std::vector<std::string>& RowSource::class_names() const { return no_names(); }

std::string Rows::place(size_t i) const {
  const auto after = std::upper_bound(
      parts.begin(), parts.end(), i, [](size_t row, const Part& part) { return row < part.begin; });
  if (after == parts.begin()) return concat("row ", first_row + i, " (from 0)");
  const Part& part = *std::prev(after);
  return part.place(i - part.begin);
}

std::string Rows::name(size_t i) const {
  if (names) return names(i);
  return i < notes.lines.size() ? concat("line ", notes.lines[i]) : "";
}

void Rows::stand_in(const std::string& table, size_t first) {
  parts = {
      {0, [&table, first](size_t i) { return concat(table, ": row ", first + i, " (from 0)"); }}};
}

void Rows::append(const Rows& more) {
  for (const Part& part : more.parts) parts.push_back({x.rows() + part.begin, part.place});
  append_rows(more.x, x);
  notes.append(more.notes);
  if (!more.y.shape.empty()) append_rows(more.y, y);
}

bool holds_array(const std::string& path) {
  return names_entry(path) || is_npy(path) || is_npz(path);
}

std::vector<std::string> file_list(const std::string& files) {
  if (std::filesystem::exists(files)) return {files};
  std::vector<std::string> list;
  for (size_t begin = 0, end; begin <= files.size(); begin = end + 1) {
    end = std::min(files.find(',', begin), files.size());
    list.push_back(files.substr(begin, end - begin));
  }
  return list;
}

std::unique_ptr<RowSource> open_rows(const std::string& data, const std::string& target,
                                     const RowOptions& options) {
  if (const std::vector<std::string> files = file_list(data); files.size() > 1) {
    return join_files(files, target, options);
  }
  if (!holds_array(data)) return std::make_unique<CsvRows>(data, target, options);
  if (!target.empty() && !names_entry(target) && !std::filesystem::exists(target)) {
    fail(target, ": no such file; with .npy data the target is an .npy too");
  }
  return std::make_unique<PrefetchedRows>(std::make_unique<NpyRows>(data, target, options));
}

Rows read_all(RowSource& source) {
  source.rewind();
  Rows all, some;
  while (source.next(kRowsAtOnce, some)) all.append(some);
  if (all.x.shape.empty()) all.x = some.x;  // no rows, but their shape
  if (all.y.shape.empty()) all.y = some.y;
  return all;
}

}  // namespace fcp
