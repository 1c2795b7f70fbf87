// What the columns of a CSV file are: inferred in one pass over it.
// The rules are those of fcp/data/column_summary.h.
//
// Tested by tests/data/table_schema_test.cc.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "fcp/data/cell_format.h"
#include "fcp/data/csv_head.h"
#include "fcp/data/text_encoding.h"

namespace fcp {

struct TableColumn {
  std::string name{};
  CellFormat format{};
  bool target = false;
  bool dropped = false;  // the user said so
  std::string why{};     // a column that is not read: what it is
  size_t missing = 0;    // cells
  size_t distinct = 0;   // values, among the first 20,000 cells that are not missing
};

struct TableSchema {
  CsvHead head;  // its names are unique
  size_t rows = 0;
  std::vector<TableColumn> columns{};  // all of the file
  bool few_whole_numbers = false;      // the target may be classes (column_summary.h)
  std::vector<std::string> notes{};    // what was left out or renamed, a line each
};

struct SchemaOptions {
  char separator = 0;
  CsvHeader header = CsvHeader::kAuto;
  std::vector<std::string> drop{};
  std::vector<std::string> categorical{};
  std::map<std::string, std::string> types{};  // a column's format by its name: it is not inferred
  std::vector<std::string> missing{};          // cells that stand for no value besides the usual
  TextEncoding text_encoding = TextEncoding::kUtf8;
};

// target: columns, as in csv.h; empty for none. Rows of another width are passed over. An Error
// where two columns have one name.
TableSchema find_schema(const std::string& path, const std::string& target,
                        const SchemaOptions& options = {});

// A table for people: column, type, missing, values, and what becomes of it. `target`: what the
// target is taken for.
std::string schema_text(const TableSchema& schema, const std::string& target = "target");

// "a=date:dmy,b=drop" as a map; an OptionError `schema` where it is something else.
std::map<std::string, std::string> parse_types(const std::string& text);

}  // namespace fcp
