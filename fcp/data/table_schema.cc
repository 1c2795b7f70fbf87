#include "fcp/data/table_schema.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/base/text_table.h"
#include "fcp/data/csv_head.h"
#include "fcp/data/file_witness.h"
#include "fcp/data/number.h"

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

void TableProblems::add(const CellProblem& problem) {
  const std::pair key(problem.cell(), problem.kind());
  Found& found = found_[key];
  if (found.count++ > 0) return;
  found.first = problem.where();
  order_.push_back(key);
}

std::string TableProblems::text(const std::string& file) const {
  constexpr size_t kShown = 12;
  std::string text = file + ": ";
  if (order_.size() > 1) text += concat(order_.size(), " problems in ", rows, " rows: ");
  for (size_t i = 0; i < order_.size() && i < kShown; ++i) {
    const Found& found = found_.at(order_[i]);
    if (i > 0) text += "; ";
    text += found.first;
    if (found.count > 1) text += concat(" (and ", found.count - 1, " more such rows)");
  }
  if (order_.size() > kShown) text += concat("; and ", order_.size() - kShown, " more");
  return text;
}

std::vector<size_t> TableProblems::cells(CellProblem::Kind kind) const {
  std::vector<size_t> cells;
  for (const auto& [key, found] : found_) {
    if (key.second == kind) cells.push_back(key.first);
  }
  return cells;
}

namespace {

constexpr double kMost = 0.9;         // of the cells: the rest are mistakes
constexpr size_t kFewClasses = 10;    // whole numbers that may be classes
constexpr size_t kEnoughCells = 10;   // before all cells that differ mean anything
constexpr size_t kPartOfCodes = 100;  // of whole numbers: one in so many that can only be a code

bool are_digits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// 00123, 98115-4820
bool is_code(std::string_view cell) {
  if (cell.size() >= 2 && cell[0] == '0') return are_digits(cell);
  return cell.size() == 10 && cell[5] == '-' && are_digits(cell.substr(0, 5)) &&
         are_digits(cell.substr(6));
}

bool is_compact_date(std::string_view cell) {
  double days;
  return cell.size() == 8 && (cell.starts_with("19") || cell.starts_with("20")) &&
         are_digits(cell) && parse_date(cell, DateOrder::kMonthFirst, days);
}

// The words of a name, in small letters: zip_code, zipCode and "Zip Code" are zip and code.
std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words(1);
  bool small = false;
  for (const char c : name) {
    const bool large = c >= 'A' && c <= 'Z', letter = large || (c >= 'a' && c <= 'z');
    if (!letter || (large && small)) words.emplace_back();
    if (letter) words.back() += static_cast<char>(c | 32);
    small = letter && !large;
  }
  return words;
}

template <size_t count>
bool is_one_of(const std::array<const char*, count>& known, const std::string& word) {
  return std::find(known.begin(), known.end(), word) != known.end();
}

}  // namespace

void ColumnSummary::add(std::string_view cell) {
  ++cells_;
  if (is_missing(cell)) {
    ++missing_;
    return;
  }
  if (told_apart_ < kCounted) {
    ++told_apart_;
    hashes_.insert(hash_bytes(trimmed(cell)));
  }
  double value = 0;
  const std::string text = trimmed(cell);
  if (is_code(text)) ++codes_;
  if (parse_number(cell, value)) {
    ++plain_;
    if (std::floor(value) == value) ++whole_;
    if (is_compact_date(text)) ++compact_dates_;
    if (plain_ > 1 && value == last_ + 1) ++steps_;
    if (plain_ == 1 ? value >= 0 : value > last_) ++rises_;
    last_ = value;
    return;
  }
  const bool point = parse_styled_number(cell, NumberStyle::kPoint, value);
  const bool comma = parse_styled_number(cell, NumberStyle::kComma, value);
  if (point || comma) {
    ++(point && comma ? either_ : point ? point_ : comma_);
    return;
  }
  words_ += 1 + static_cast<size_t>(std::count(cell.begin(), cell.end(), ' '));
  if (parse_boolean(cell, value)) {
    ++booleans_;
    return;
  }
  const bool month_first = parse_date(cell, DateOrder::kMonthFirst, value);
  const bool day_first = parse_date(cell, DateOrder::kDayFirst, value);
  if (month_first || day_first) ++dates_;
  if (day_first && !month_first) ++day_first_;
  if (month_first && !day_first) ++month_first_;
}

bool ColumnSummary::few_whole_numbers() const {
  return count() > 0 && whole_ == count() && distinct() >= 2 && distinct() <= kFewClasses &&
         10 * distinct() <= count();
}

bool ColumnSummary::counts_rows() const {
  if (missing_ > 0 || whole_ < cells_ || cells_ < kEnoughCells) return false;
  const bool with_gaps = rises_ == cells_ && last_ <= 2 * static_cast<double>(cells_);
  return steps_ + 1 == cells_ || with_gaps;
}

// Whole numbers that stand for something else: a mean of two zip codes is none.
bool ColumnSummary::are_codes() const {
  constexpr std::array kNames = {"zip",  "zipcode", "postcode",  "postal", "plz",  "code",
                                 "fips", "phone",   "telephone", "sku",    "isbn", "ssn"};
  if (whole_ < plain_ || point_ + comma_ + either_ > 0) return false;
  if (codes_ > 0 && codes_ * kPartOfCodes >= count()) return true;
  const std::vector<std::string> words = words_of(name_);
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return is_one_of(kNames, word); });
}

bool ColumnSummary::named_id() const {
  constexpr std::array kNames = {"id",        "ID",      "Id",    "rownames",  "row.names",
                                 "row_names", "rowname", "index", "Unnamed: 0"};
  const bool named = is_one_of(kNames, name_) || name_.ends_with("_id") || name_.ends_with("_ID") ||
                     name_.ends_with("Id");
  return named && whole_ == count() && told_apart_ >= kEnoughCells && distinct() == told_apart_;
}

CellFormat ColumnSummary::number_format(bool commas) const {
  CellFormat format;
  const bool comma = comma_ > point_ || (point_ == 0 && commas && comma_ + either_ > 0);
  if (comma) {
    format.style = NumberStyle::kComma;
  } else if (point_ + either_ > 0) {
    format.style = NumberStyle::kPoint;
  }
  return format;
}

CellFormat ColumnSummary::target_format(bool commas) const {
  const double numbers = static_cast<double>(plain_ + point_ + comma_ + either_);
  if (count() > 0 && numbers >= kMost * static_cast<double>(count())) return number_format(commas);
  return {.kind = ColumnKind::kCategory};
}

CellFormat ColumnSummary::format(bool commas, std::string& why) const {
  const double most = kMost * static_cast<double>(count());
  if (count() == 0) {
    why = "has no values";
    return {.kind = ColumnKind::kConstant};
  }
  if (distinct() == 1 && missing_ == 0) {
    why = "has one value";
    return {.kind = ColumnKind::kConstant};
  }
  if (booleans_ == count()) return {.kind = ColumnKind::kBoolean};
  if (static_cast<double>(plain_ + point_ + comma_ + either_) >= most) {
    // A text among a few whole numbers that come again and again is a further code: of cylinders
    // "4", "6" and "rotary".
    const bool codes = whole_ == plain_ && point_ + comma_ + either_ == 0 && plain_ < count() &&
                       distinct() <= kFewClasses && 5 * distinct() <= count();
    if (codes) return {.kind = ColumnKind::kCategory};
    if (compact_dates_ == count() && count() >= kEnoughCells) return {.kind = ColumnKind::kDate};
    if (counts_rows()) why = "counts the rows";
    if (why.empty() && named_id()) why = "is a different number in every row";
    if (!why.empty()) return {.kind = ColumnKind::kIdentifier};
    return are_codes() ? text_format(why) : number_format(commas);
  }
  if (static_cast<double>(dates_) >= most) {
    CellFormat format{.kind = ColumnKind::kDate};
    if (day_first_ > month_first_) format.order = DateOrder::kDayFirst;
    return format;
  }
  return text_format(why);
}

CellFormat ColumnSummary::text_format(std::string& why) const {
  const bool all_differ = told_apart_ >= kEnoughCells && distinct() == told_apart_;
  const bool many_words = words_ > 3 * count();
  if (all_differ && !many_words) {
    why = "is a different text in every row";
    return {.kind = ColumnKind::kIdentifier};
  }
  if (told_apart_ >= kEnoughCells && (all_differ || 2 * distinct() >= told_apart_)) {
    if (many_words) return {.kind = ColumnKind::kText};
    why = "has too many different short texts";
    return {.kind = ColumnKind::kIdentifier};
  }
  return {.kind = ColumnKind::kCategory};
}

namespace {

constexpr double kFarShare = 0.25;  // of the range's width
constexpr char kSeparator = '|';
constexpr const char* kNovelties[] = {"missing", "unseen", "range"};

}  // namespace

std::pair<double, double> ColumnFacts::usual() const {
  constexpr double kMost = std::numeric_limits<double>::infinity();
  if (low > high) return {-kMost, kMost};
  const double allowed = kFarShare * (high - low);
  return {low - allowed, high + allowed};
}

bool ColumnFacts::is_far(double value) const {
  const auto [least, most] = usual();
  return value < least || value > most;
}

bool ColumnFacts::has_rare(std::string_view category) const {
  return more || std::binary_search(rare.begin(), rare.end(), category_hash(category));
}

// 48 bits, which a JSON number of any reader holds.
uint64_t category_hash(std::string_view category) { return hash_bytes(category) >> 16; }

std::string novelty_flag(Novelty novelty, const std::string& column) {
  return concat(kNovelties[static_cast<size_t>(novelty) - 1], ':', column);
}

void add_flag(const std::string& flag, std::string& flags) {
  if (!flags.empty()) flags += kSeparator;
  flags += flag;
}

void NoveltyCounts::add(const std::string& flags) {
  if (flags.empty()) return;
  ++rows_;
  for (size_t begin = 0, end; begin < flags.size(); begin = end + 1) {
    end = std::min(flags.find(kSeparator, begin), flags.size());
    ++flags_[flags.substr(begin, end - begin)];
  }
}

void NoveltyCounts::add(const NoveltyCounts& more) {
  rows_ += more.rows_;
  for (const auto& [flag, count] : more.flags_) flags_[flag] += count;
}

std::string NoveltyCounts::text(size_t of) const {
  std::string kinds;
  for (const std::string kind : kNovelties) {
    std::string columns;
    for (const auto& [flag, count] : flags_) {
      if (!flag.starts_with(kind + ":")) continue;
      columns += concat(columns.empty() ? "" : ", ", flag.substr(kind.size() + 1), " in ", count);
    }
    if (columns.empty()) continue;
    const std::string name = kind == "range" ? "far outside the training range" : kind;
    kinds += concat(kinds.empty() ? "" : "; ", name, ": ", columns);
  }
  return concat(rows_, " of ", of, " rows have what no training row had (", kinds,
                "): the coverage guarantee does not extend to them");
}

}  // namespace fcp
