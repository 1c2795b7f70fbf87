#include "fcp/data/row_parts.h"

#include <utility>

#include "fcp/base/error.h"

namespace fcp {
namespace {

class JoinedRows : public RowSource {
 public:
  explicit JoinedRows(std::vector<std::unique_ptr<RowSource>> parts) : parts_(std::move(parts)) {}

  bool next(size_t count, Rows& out) override {
    parts_[current_]->next(count, out);
    while (out.x.rows() < count && current_ + 1 < parts_.size()) {
      Rows more;
      parts_[++current_]->next(count - out.x.rows(), more);
      append_rows(more.x, out.x);
      if (!out.y.shape.empty()) append_rows(more.y, out.y);
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

  // In its own file. What was read before the current part was read to its end, so it has a size.
  std::string row_place(size_t row) const override {
    size_t part = 0;
    while (part < current_ && row >= parts_[part]->size().value_or(0)) {
      row -= parts_[part++]->size().value_or(0);
    }
    return parts_[part]->row_place(row);
  }

 private:
  std::vector<std::unique_ptr<RowSource>> parts_;
  size_t current_ = 0;
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

}  // namespace fcp
