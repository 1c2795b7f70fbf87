// A source in front of another: whatever is not changed is the other's.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fcp/data/rows.h"

namespace fcp {

class ForwardedRows : public RowSource {
 public:
  explicit ForwardedRows(std::unique_ptr<RowSource> rows) : rows_(std::move(rows)) {}

  bool next(size_t count, Rows& out) override { return rows_->next(count, out); }
  void rewind() override { rows_->rewind(); }
  size_t skip(size_t count) override { return rows_->skip(count); }
  bool can_prefetch() const override { return rows_->can_prefetch(); }
  std::optional<size_t> size() const override { return rows_->size(); }
  std::optional<size_t> usual_batch() const override { return rows_->usual_batch(); }
  const std::vector<std::string>& column_names() const override { return rows_->column_names(); }
  const std::vector<std::string>& target_names() const override { return rows_->target_names(); }
  const std::vector<int64_t>& row_shape() const override { return rows_->row_shape(); }
  size_t target_count() const override { return rows_->target_count(); }
  const CsvEncoding* encoding() const override { return rows_->encoding(); }
  const TableSchema* schema() const override { return rows_->schema(); }
  const SegmentTask* segmentation() const override { return rows_->segmentation(); }
  std::vector<std::string> notes() const override { return rows_->notes(); }
  std::vector<std::string> warnings() const override { return rows_->warnings(); }
  const std::vector<std::string>& class_names() const override { return rows_->class_names(); }

 protected:
  RowSource& rows() { return *rows_; }

 private:
  std::unique_ptr<RowSource> rows_;
};

}  // namespace fcp
