#include "fcp/data/row_sources.h"

#include <algorithm>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/data/npy.h"
#include "fcp/data/npz.h"

namespace fcp {

bool PrefetchedRows::next(size_t count, Rows& out) {
  if (prefetcher_ && asked_ != count) drop_prefetched();
  const bool some = prefetcher_ ? prefetcher_->next(out) : rows().next(count, out);
  served_ += out.x.rows();
  if (!some || served_ >= size().value_or(0)) {
    prefetcher_.reset();
  } else if (!prefetcher_ && in_order_ && out.x.values.size() >= large_) {
    asked_ = count;
    prefetcher_ = std::make_unique<Prefetcher<Rows>>(
        1, [this, count](Rows& item) { return rows().next(count, item); });
  }
  return some;
}

void PrefetchedRows::rewind() {
  prefetcher_.reset();
  rows().rewind();
  served_ = 0;
  in_order_ = true;
}

size_t PrefetchedRows::skip(size_t count) {
  drop_prefetched();
  in_order_ = false;
  const size_t done = rows().skip(count);
  served_ += done;
  return done;
}

void PrefetchedRows::drop_prefetched() {
  if (!prefetcher_) return;
  prefetcher_.reset();
  rows().rewind();
  rows().skip(served_);
}

namespace {

// File after file.
class JoinedRows : public RowSource {
 public:
  explicit JoinedRows(std::vector<std::unique_ptr<RowSource>> parts) : parts_(std::move(parts)) {}

  bool next(size_t count, Rows& out) override {
    parts_[current_]->next(count, out);
    while (out.x.rows() < count && current_ + 1 < parts_.size()) {
      Rows more;
      parts_[++current_]->next(count - out.x.rows(), more);
      out.append(more);
    }
    out.first_row = next_row_;
    next_row_ += out.x.rows();
    return out.x.rows() > 0;
  }

  size_t skip(size_t count) override {
    size_t done = parts_[current_]->skip(count);
    while (done < count && current_ + 1 < parts_.size()) {
      done += parts_[++current_]->skip(count - done);
    }
    next_row_ += done;
    return done;
  }

  void rewind() override {
    for (const auto& part : parts_) part->rewind();
    current_ = 0;
    next_row_ = 0;
  }

  std::optional<size_t> size() const override {
    size_t rows = 0;
    for (const auto& part : parts_) {
      if (!part->size()) return std::nullopt;
      rows += *part->size();
    }
    return rows;
  }

  const std::vector<std::string>& column_names() const override {
    return parts_[0]->column_names();
  }
  const std::vector<std::string>& target_names() const override {
    return parts_[0]->target_names();
  }
  const std::vector<int64_t>& row_shape() const override { return parts_[0]->row_shape(); }
  size_t target_count() const override { return parts_[0]->target_count(); }
  const CsvEncoding* encoding() const override { return parts_[0]->encoding(); }
  const TableSchema* schema() const override { return parts_[0]->schema(); }
  std::vector<std::string> notes() const override { return parts_[0]->notes(); }
  std::vector<std::string> warnings() const override {
    std::vector<std::string> all;
    for (const auto& part : parts_) {
      for (std::string& line : part->warnings()) all.push_back(std::move(line));
    }
    return all;
  }
  const std::vector<std::string>& class_names() const override { return parts_[0]->class_names(); }

 private:
  std::vector<std::unique_ptr<RowSource>> parts_;
  size_t current_ = 0;
  size_t next_row_ = 0;
};

std::string entry_of(const std::string& archive, const std::string& entry) {
  return archive + ":" + entry;
}

// Entries side by side, each of them rows of its own.
class ArchiveRows : public RowSource {
 public:
  ArchiveRows(std::string archive, std::vector<std::unique_ptr<RowSource>> parts)
      : archive_(std::move(archive)), parts_(std::move(parts)) {
    int64_t columns = 0;
    for (const auto& part : parts_) {
      columns += static_cast<int64_t>(element_count(part->row_shape()));
    }
    row_shape_ = {columns};
  }

  bool next(size_t count, Rows& out) override {
    std::vector<Rows> read(parts_.size());
    for (size_t i = 0; i < parts_.size(); ++i) parts_[i]->next(count, read[i]);
    const size_t rows = read[0].x.rows();
    out.first_row = next_row_;
    out.stand_in(archive_, next_row_);
    out.y = std::move(read[0].y);
    out.x.shape = {static_cast<int64_t>(rows), row_shape_[0]};
    join(read, &Array::values, rows, out.x);
    join(read, &Array::exact, rows, out.x);
    next_row_ += rows;
    return rows > 0;
  }
  size_t skip(size_t count) override {
    size_t done = 0;
    for (const auto& part : parts_) done = part->skip(count);
    next_row_ += done;
    return done;
  }
  void rewind() override {
    for (const auto& part : parts_) part->rewind();
    next_row_ = 0;
  }
  std::optional<size_t> size() const override { return parts_[0]->size(); }
  const std::vector<std::string>& column_names() const override {
    return parts_[0]->column_names();  // of arrays: none
  }
  const std::vector<std::string>& target_names() const override {
    return parts_[0]->target_names();
  }
  const std::vector<int64_t>& row_shape() const override { return row_shape_; }
  size_t target_count() const override { return parts_[0]->target_count(); }

 private:
  template <typename Numbers>
  static void join(const std::vector<Rows>& read, Numbers Array::*numbers, size_t rows, Array& x) {
    Numbers& all = x.*numbers;
    all.clear();
    if ((read[0].x.*numbers).empty()) return;
    all.reserve(rows * x.row_size());
    for (size_t row = 0; row < rows; ++row) {
      for (const Rows& part : read) {
        const auto width = static_cast<std::ptrdiff_t>(part.x.row_size());
        const auto first = (part.x.*numbers).begin() + static_cast<std::ptrdiff_t>(row) * width;
        all.insert(all.end(), first, first + width);
      }
    }
  }

  std::string archive_;
  std::vector<std::unique_ptr<RowSource>> parts_;
  std::vector<int64_t> row_shape_;
  size_t next_row_ = 0;
};

}  // namespace

std::unique_ptr<RowSource> join_rows(std::vector<std::unique_ptr<RowSource>> parts,
                                     const std::vector<std::string>& names) {
  const RowSource& first = *parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    const RowSource& part = *parts[i];
    if (part.row_shape() != first.row_shape() || part.target_count() != first.target_count()) {
      fail(names[i], ": rows of shape ", shape_text(part.row_shape()), " with ",
           part.target_count(), " targets, expected ", shape_text(first.row_shape()), " with ",
           first.target_count(), " as in ", names[0]);
    }
  }
  return std::make_unique<JoinedRows>(std::move(parts));
}

std::unique_ptr<RowSource> join_files(const std::vector<std::string>& files,
                                      const std::string& target, const RowOptions& options) {
  const bool arrays = holds_array(files[0]);
  const std::vector<std::string> targets = arrays ? file_list(target) : std::vector{target};
  if (arrays && !target.empty() && targets.size() != files.size()) {
    fail("found ", targets.size(), " files of targets for ", files.size(), " files of rows");
  }
  RowOptions each = options;
  std::vector<std::unique_ptr<RowSource>> parts;
  for (size_t i = 0; i < files.size(); ++i) {
    parts.push_back(open_rows(files[i], targets.size() > 1 ? targets[i] : target, each));
    if (parts[0]->encoding() != nullptr) each.encoding = *parts[0]->encoding();
  }
  return join_rows(std::move(parts), files);
}

std::vector<std::vector<int64_t>> archive_row_shapes(const std::string& archive,
                                                     const std::vector<std::string>& entries) {
  std::vector<std::vector<int64_t>> shapes;
  int64_t rows = 0;
  for (const std::string& entry : entries) {
    const auto bytes = open_npz_entry(archive, entry);
    const std::vector<int64_t> shape = read_npy_header(*bytes).shape;
    if (shape.empty()) fail(bytes->name(), ": holds a single number, expected rows");
    if (shapes.empty()) rows = shape[0];
    if (shape[0] != rows) {
      fail(bytes->name(), ": found ", shape[0], " rows, expected ", rows, " as in ", entries[0]);
    }
    shapes.emplace_back(shape.begin() + 1, shape.end());
  }
  return shapes;
}

std::unique_ptr<RowSource> open_archive(const std::string& archive,
                                        const std::vector<std::string>& entries,
                                        const std::string& target, const RowOptions& options) {
  archive_row_shapes(archive, entries);
  const std::vector<std::string> all = npz_entries(archive);
  const bool own = std::find(all.begin(), all.end(), target) != all.end();
  std::vector<std::unique_ptr<RowSource>> parts;
  for (const std::string& entry : entries) {
    const std::string answers = own ? entry_of(archive, target) : target;
    parts.push_back(open_rows(entry_of(archive, entry), parts.empty() ? answers : "", options));
  }
  return std::make_unique<ArchiveRows>(archive, std::move(parts));
}

}  // namespace fcp
