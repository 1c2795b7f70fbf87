#include "fcp/data/csv_column.h"

#include "fcp/base/error.h"
#include "fcp/data/bytes.h"
#include "fcp/data/csv_records.h"

namespace fcp {

std::vector<std::string> read_csv_column(const std::string& path, const std::string& column,
                                         const CsvOptions& options) {
  // A reader that drops this column alone tells which one it is, and whether there is a header.
  CsvOptions head;
  head.separator = options.separator;
  head.header = options.header;
  const CsvEncoding all = CsvReader(path, "", head).encoding();
  size_t position = 0;
  const bool only = all.width == 1 && (column == all.columns[0] || column == "0" || column == "-1");
  if (!only) {
    head.drop = {column};
    const CsvEncoding others = CsvReader(path, "", head).encoding();
    while (position < others.positions.size() && others.positions[position] == position) ++position;
  }

  CsvRecords records(open_bytes(path), options.separator);
  if (all.header) records.next();
  std::vector<std::string> cells;
  while (records.next()) {
    if (records.cells().size() != all.width) {
      fail(path, ": line ", records.line(), " has ", records.cells().size(), " cells, expected ",
           all.width);
    }
    cells.emplace_back(records.cells()[position]);
  }
  return cells;
}

}  // namespace fcp
