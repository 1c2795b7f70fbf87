#include "fcp/data/table_schema.h"

#include <algorithm>

#include "fcp/base/error.h"
#include "fcp/base/text_table.h"
#include "fcp/data/column_summary.h"

namespace fcp {
namespace {

constexpr char kDrop[] = "drop";

std::vector<ColumnSummary> summarise(CsvRecords& records, const CsvHead& head, size_t& rows) {
  std::vector<ColumnSummary> summaries;
  for (const std::string& name : head.names) summaries.emplace_back(name);
  records.rewind();
  if (head.header) records.next();
  while (records.next()) {
    ++rows;
    if (records.cells().size() != summaries.size()) continue;
    for (size_t i = 0; i < summaries.size(); ++i) summaries[i].add(records.cells()[i]);
  }
  return summaries;
}

// What the user said of columns, by their place.
void apply_wishes(const SchemaOptions& options, TableSchema& schema) {
  const CsvHead& head = schema.head;
  const auto column = [&](const std::string& name, const char* role) -> TableColumn& {
    return schema.columns[head.find(name, role)];
  };
  for (const std::string& name : options.drop) {
    TableColumn& one = column(name, "to drop");
    if (one.target) {
      fail(head.file, ": column ", in_quotes(one.name), " is the target and cannot be dropped");
    }
    one.dropped = true;
  }
  for (const std::string& name : options.categorical) {
    TableColumn& one = column(name, "categorical");
    if (one.target || one.dropped) {
      fail(head.file, ": categorical column ", in_quotes(one.name), " is ",
           one.target ? "the target" : "dropped");
    }
    one.format = {.kind = ColumnKind::kCategory};
    one.why.clear();
  }
  for (const auto& [name, type] : options.types) {
    TableColumn& one = column(name, "schema");
    if (type == kDrop) {
      if (one.target) {
        fail(head.file, ": column ", in_quotes(one.name), " is the target and cannot be dropped");
      }
      one.dropped = true;
      continue;
    }
    one.format = *parse_format(type);
    one.why = is_read(one.format.kind) ? "" : "is left out as you said";
  }
}

std::string note_of(const TableColumn& column) {
  return concat("column ", in_quotes(column.name), " ", column.why, ": left out (",
                format_text(column.format), ')');
}

}  // namespace

TableSchema find_schema(const std::string& path, const std::string& target,
                        const SchemaOptions& options) {
  CsvRecords records(open_text(path, options.text_encoding), options.separator);
  TableSchema schema{.head = read_head(records, options.header)};
  check_names_differ(schema.head);
  records.set_missing(options.missing);
  const bool nameless = schema.head.header && schema.head.names[0].empty();
  schema.notes = make_names_unique(schema.head);
  const std::vector<ColumnSummary> summaries = summarise(records, schema.head, schema.rows);
  const bool commas = records.separator() == ';' ||
                      std::any_of(summaries.begin(), summaries.end(),
                                  [](const ColumnSummary& summary) { return summary.has_comma(); });
  std::vector<size_t> targets;
  if (!target.empty()) targets = schema.head.find_list(target, "target");
  for (size_t i = 0; i < summaries.size(); ++i) {
    TableColumn column{.name = schema.head.names[i],
                       .missing = summaries[i].missing(),
                       .distinct = summaries[i].distinct()};
    column.target = std::find(targets.begin(), targets.end(), i) != targets.end();
    column.format = column.target ? summaries[i].target_format(commas)
                                  : summaries[i].format(commas, column.why);
    schema.columns.push_back(std::move(column));
  }
  schema.few_whole_numbers = targets.size() == 1 && summaries[targets[0]].few_whole_numbers();
  apply_wishes(options, schema);
  if (nameless && schema.columns[0].format.kind == ColumnKind::kIdentifier) {
    schema.notes.erase(schema.notes.begin());
    schema.columns[0].why = "has no name and counts the rows";
  }
  for (const TableColumn& column : schema.columns) {
    if (!column.target && !column.dropped && !is_read(column.format.kind)) {
      schema.notes.push_back(note_of(column));
    }
    if (!column.target && !column.dropped && column.format.kind == ColumnKind::kText) {
      schema.notes.push_back(concat("column ", in_quotes(column.name),
                                    " is free text: read by its most frequent words (text)"));
    }
  }
  return schema;
}

std::string schema_text(const TableSchema& schema, const std::string& target) {
  const bool sampled = schema.rows > ColumnSummary::kCounted;
  Table table({"column", "type", "missing", "values", "read as"});
  for (const TableColumn& column : schema.columns) {
    const bool read = is_read(column.format.kind) && !column.dropped;
    table.add_row({column.name, format_text(column.format), std::to_string(column.missing),
                   concat(column.distinct, sampled && column.distinct > 1 ? "+" : ""),
                   column.target    ? target
                   : column.dropped ? "left out: dropped"
                   : read           ? "feature"
                                    : "left out: " + column.why});
  }
  std::string text = concat(table.text(0), schema.rows, " rows");
  if (sampled) text += concat("; values are counted among the first ", ColumnSummary::kCounted);
  return text + "\n";
}

std::map<std::string, std::string> parse_types(const std::string& text) {
  std::map<std::string, std::string> types;
  for (size_t begin = 0, end; begin < text.size(); begin = end + 1) {
    end = std::min(text.find(',', begin), text.size());
    const std::string part = trimmed(std::string_view(text).substr(begin, end - begin));
    const size_t equal = part.rfind('=');
    if (equal == std::string::npos || equal == 0) {
      fail_option("schema", in_quotes(part), " is not COLUMN=TYPE");
    }
    const std::string type = part.substr(equal + 1);
    if (type != kDrop && !parse_format(type)) {
      fail_option("schema", in_quotes(type),
                  " is not a type; expected number, number:point, number:comma, category, date, "
                  "date:dmy, boolean, constant, identifier, text or drop");
    }
    types[part.substr(0, equal)] = type;
  }
  return types;
}

}  // namespace fcp
