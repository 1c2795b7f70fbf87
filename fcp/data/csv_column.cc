#include "fcp/data/csv_column.h"

#include "fcp/base/error.h"
#include "fcp/data/csv_records.h"

namespace fcp {

std::vector<std::string> read_csv_column(const std::string& path, const std::string& column,
                                         const CsvOptions& options) {
  CsvRecords records(open_text(path, options.text_encoding), options.separator);
  CsvHead head = read_head(records, options.header);
  if (!head.has(column)) make_names_unique(head);  // as the names that were given to others
  const size_t position = head.find(column, "column");
  std::vector<size_t> refused;
  if (options.refused && options.refused->contains(path)) refused = options.refused->at(path);

  records.rewind();
  if (head.header) records.next();
  std::vector<std::string> cells;
  auto next_refused = refused.begin();
  for (size_t row = 0; records.next(); ++row) {
    if (next_refused != refused.end() && *next_refused == row) {
      ++next_refused;
      continue;
    }
    if (records.cells().size() != head.names.size()) {
      fail(path, ": line ", records.line(), " has ", records.cells().size(), " cells, expected ",
           head.names.size());
    }
    cells.emplace_back(records.cells()[position]);
  }
  return cells;
}

}  // namespace fcp
