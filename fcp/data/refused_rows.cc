#include "fcp/data/refused_rows.h"

#include <algorithm>
#include <memory>

#include "fcp/data/csv_writer.h"

namespace fcp {
namespace {

// The columns of the first file, and two more.
class RefusedFile {
 public:
  explicit RefusedFile(std::string path) : path_(std::move(path)) {}

  void add(const CsvReader& reader, const CellProblem& problem) {
    if (path_.empty()) return;
    if (!writer_) {
      std::vector<std::string> columns = reader.column_names();
      width_ = columns.size();
      columns.insert(columns.end(), {"fcp_line", "fcp_problem"});
      writer_ = std::make_unique<CsvWriter>(path_, columns);
    }
    const std::vector<std::string_view>& cells = reader.records().cells();
    for (size_t i = 0; i < width_; ++i) {
      std::string cell(i < cells.size() ? cells[i] : "");
      const bool last = i + 1 == width_;  // of a row that is too long
      for (size_t more = width_; last && more < cells.size(); ++more) {
        cell += reader.records().separator();
        cell += cells[more];
      }
      writer_->cell(std::string_view(cell));
    }
    writer_->cell(static_cast<int64_t>(reader.records().line()));
    writer_->cell(std::string_view(problem.where()));
    writer_->end_row();
  }

  void close() {
    if (writer_) writer_->close();
  }

 private:
  std::string path_;
  size_t width_ = 0;
  std::unique_ptr<CsvWriter> writer_;
};

}  // namespace

Refusals find_refusals(const std::vector<std::string>& files, const std::string& target,
                       const CsvOptions& options, const RefusalRule& rule, const std::string& out) {
  Refusals refusals;
  RefusedFile written(out);
  CsvOptions each = options;
  each.refused.reset();
  for (const std::string& file : files) {
    CsvReader reader(file, target, each);
    std::vector<size_t>& rows = refusals.rows[file];
    reader.find_problems([&](size_t row, const CellProblem& problem) {
      const std::vector<size_t>& targets = reader.target_cells();
      const bool no_target =
          problem.kind() == CellProblem::Kind::kMissing &&
          std::find(targets.begin(), targets.end(), problem.cell()) != targets.end();
      if (no_target && rule.without_target) {
        ++refusals.without_target;
      } else if (rule.problems) {
        if (refusals.problems++ == 0) refusals.first = file + ": " + problem.where();
        written.add(reader, problem);
      } else {
        return;
      }
      rows.push_back(row);
    });
    refusals.kept += reader.size().value_or(0) - rows.size();
    each.encoding = reader.encoding();
  }
  written.close();
  return refusals;
}

}  // namespace fcp
