#include "fcp/pipeline/kept_columns.h"

#include "fcp/base/error.h"
#include "fcp/data/csv_column.h"

namespace fcp {

KeptColumns read_kept_columns(const DataOptions& data, const std::string& list) {
  KeptColumns kept;
  if (list.empty()) return kept;
  const std::vector<std::string> files = file_list(data.data);
  if (are_images(data) || holds_array(files[0])) {
    fail_option("keep", "takes columns of a CSV file; ", data.data, " has none");
  }
  CsvRecords records(open_bytes(files[0]), data.csv.separator);
  CsvHead head = read_head(records, data.csv.header);
  make_names_unique(head);
  for (const size_t column : head.find_list(list, "keep")) {
    kept.names.push_back(head.names[column]);
    std::vector<std::string>& cells = kept.cells.emplace_back();
    for (const std::string& file : files) {
      for (std::string& cell : read_csv_column(file, head.names[column], data.csv)) {
        cells.push_back(std::move(cell));
      }
    }
  }
  return kept;
}

}  // namespace fcp
