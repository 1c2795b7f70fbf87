#include "fcp/data/columns.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/data/number.h"
#include "fcp/data/words.h"

namespace fcp {
namespace {

std::string_view without_spaces_around(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// One column of the encoding, cell by cell.
class ColumnEncoder {
 public:
  struct Found {
    bool missing = false, unknown = false;
    Novelty novelty = Novelty::kNone;
  };

  ColumnEncoder(const CsvEncoding& encoding, size_t column,
                const std::function<std::string(size_t)>& row_name)
      : encoding_(encoding),
        column_(column),
        row_name_(row_name),
        format_(encoding.format(column)),
        width_(encoding.width_of(column)) {
    const std::vector<std::string>& categories = encoding.categories[column];
    for (size_t i = 0; i < categories.size(); ++i) known_.emplace(categories[i], i);
  }

  size_t width() const { return width_; }

  // `text`: null where the cell is not there. `out` is for width() features.
  Found encode(size_t row, const std::string* text, float* out) const {
    const std::string_view cell = text == nullptr ? "" : without_spaces_around(*text);
    if (is_missing(cell) || is_mark(cell)) return encode_missing(row, text == nullptr, out);
    if (format_.kind == ColumnKind::kText) return encode_words(cell, out);
    if (encoding_.is_category(column_)) return encode_category(cell, out);
    double value = 0;
    if (!parse_cell(cell, format_, value)) {
      fail(where(row), "expected ", expected_text(format_.kind), ", found '", cell, "'");
    }
    return encode_number(row, value, cell, out);
  }

  Found encode(size_t row, double value, float* out) const {
    const bool plain = format_.kind == ColumnKind::kNumber && encoding_.missing.empty();
    if (plain && !std::isnan(value)) return encode_number(row, value, {}, out);
    const std::string text = cell_text(value);
    // A mark such as -999 is no number; any other is itself, however the file writes its numbers.
    const bool number = format_.kind == ColumnKind::kNumber && !text.empty() && !is_mark(text);
    return number ? encode_number(row, value, {}, out) : encode(row, &text, out);
  }

 private:
  std::string where(size_t row) const {
    return concat(row_name_(row), ", column '", encoding_.columns[column_], "': ");
  }

  bool is_mark(std::string_view cell) const {
    const std::vector<std::string>& marks = encoding_.missing;
    return std::find(marks.begin(), marks.end(), cell) != marks.end();
  }

  Found encode_missing(size_t row, bool absent, float* out) const {
    if (encoding_.means.empty()) {
      fail(where(row), absent ? "is not there" : "is missing",
           "; the network was trained without missing values");
    }
    if (has_texts(format_.kind)) {
      std::fill_n(out, width_, 0.f);
    } else {
      *out = encoding_.means[column_];
    }
    return {.missing = true, .novelty = encoding_.novelty_of_missing(column_)};
  }

  // `text`: as messages have it; empty: the number's own.
  Found encode_number(size_t row, double value, std::string_view text, float* out) const {
    *out = static_cast<float>(value);
    if (std::isinf(*out)) {
      fail(where(row), "found '", text.empty() ? cell_text(value) : std::string(text),
           "', expected a finite float32");
    }
    return {.novelty = encoding_.novelty_of(column_, static_cast<double>(*out))};
  }

  Found encode_category(std::string_view cell, float* out) const {
    std::fill_n(out, width_, 0.f);
    const auto category = known_.find(cell);
    if (category != known_.end()) {
      out[category->second] = 1;
      return {};
    }
    if (encoding_.has_other(column_)) out[width_ - 1] = 1;
    return {.unknown = true, .novelty = encoding_.novelty_of(column_, cell)};
  }

  Found encode_words(std::string_view cell, float* out) const {
    std::fill_n(out, width_, 0.f);
    bool any = false;
    for (const std::string& word : distinct_words(cell)) {
      const auto place = known_.find(word);
      if (place == known_.end()) continue;
      out[place->second] = 1;
      any = true;
    }
    if (!any && encoding_.has_other(column_)) out[width_ - 1] = 1;
    return {};
  }

  const CsvEncoding& encoding_;
  size_t column_;
  const std::function<std::string(size_t)>& row_name_;
  CellFormat format_;
  size_t width_;
  std::unordered_map<std::string_view, size_t> known_;  // categories
};

}  // namespace

CellNotes encode_columns(const CsvEncoding& encoding, std::span<const ColumnCells> cells,
                         size_t rows, const std::function<std::string(size_t)>& row_name,
                         float* features) {
  const size_t columns = encoding.columns.size(), width = encoding.feature_count();
  CellNotes notes{.flags = std::vector<std::string>(rows),
                  .missing = std::vector<size_t>(columns),
                  .unknown = std::vector<size_t>(columns)};
  for (size_t i = 0, first = 0; i < columns; ++i) {
    const ColumnEncoder column(encoding, i, row_name);
    const ColumnCells& given = cells[i];
    for (size_t row = 0; row < rows; ++row) {
      float* const out = features + row * width + first;
      const ColumnEncoder::Found found = given.text ? column.encode(row, given.text(row), out)
                                                    : column.encode(row, given.numbers[row], out);
      notes.missing[i] += found.missing ? 1 : 0;
      notes.unknown[i] += found.unknown ? 1 : 0;
      if (found.novelty == Novelty::kNone) continue;
      add_flag(novelty_flag(found.novelty, encoding.columns[i]), notes.flags[row]);
    }
    first += column.width();
  }
  return notes;
}

std::string cell_text(double value) {
  if (std::isnan(value)) return "";
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return {text, end};
}

bool accepts_missing(const CsvEncoding& encoding) {
  return std::any_of(encoding.means.begin(), encoding.means.end(),
                     [](float mean) { return std::isnan(mean); });
}

namespace {

// The text may come from a damaged or hostile file: what a reader uses as an index must be one.
bool is_consistent(const CsvEncoding& encoding) {
  const size_t columns = encoding.columns.size();
  if (columns == 0 || encoding.positions.size() != columns ||
      encoding.categories.size() != columns ||
      (!encoding.means.empty() && encoding.means.size() != columns) ||
      (!encoding.formats.empty() && encoding.formats.size() != columns) ||
      (!encoding.others.empty() && encoding.others.size() != columns) ||
      (!encoding.facts.empty() && encoding.facts.size() != columns)) {
    return false;
  }
  for (size_t i = 0; i < columns; ++i) {
    const bool features = is_read(encoding.format(i).kind) && encoding.width_of(i) > 0;
    const bool more = !encoding.categories[i].empty() || encoding.has_other(i);
    if (!features || (!has_texts(encoding.format(i).kind) && more)) return false;
  }
  if (!encoding.typical.empty() && encoding.typical.size() != encoding.feature_count())
    return false;
  for (const size_t position : encoding.positions) {
    if (position >= encoding.width) return false;
  }
  const auto all_differ = [](const std::vector<std::string>& names) {
    return std::set<std::string>(names.begin(), names.end()).size() == names.size();
  };
  return all_differ(encoding.classes) &&
         std::all_of(encoding.categories.begin(), encoding.categories.end(), all_differ);
}

// json's own conversion takes -1 and 1e99 for sizes as well.
size_t size_from(const nlohmann::json& json) {
  if (!json.is_number_unsigned()) fail("not a size");
  return json.get<size_t>();
}

nlohmann::ordered_json formats_json(const std::vector<CellFormat>& formats) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const CellFormat& format : formats) json.push_back(format_text(format));
  return json;
}

// Of networks before column types there are none.
std::vector<CellFormat> formats_from(const nlohmann::json& json, const char* key) {
  std::vector<CellFormat> formats;
  if (!json.contains(key)) return formats;
  for (const auto& text : json.at(key)) {
    const auto format = parse_format(text.get<std::string>());
    if (!format) fail("not a format");
    formats.push_back(*format);
  }
  return formats;
}

nlohmann::ordered_json facts_json(const std::vector<ColumnFacts>& facts) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const ColumnFacts& column : facts) {
    nlohmann::ordered_json one = {{"missing", column.missing}};
    if (column.low <= column.high) one["range"] = {column.low, column.high};
    if (!column.rare.empty()) one["rare"] = column.rare;
    if (column.more) one["more"] = true;
    json.push_back(std::move(one));
  }
  return json;
}

std::vector<ColumnFacts> facts_from(const nlohmann::json& json) {
  std::vector<ColumnFacts> facts;
  for (const auto& one : json) {
    ColumnFacts& column = facts.emplace_back();
    one.at("missing").get_to(column.missing);
    if (one.contains("range")) {
      one.at("range").at(0).get_to(column.low);
      one.at("range").at(1).get_to(column.high);
    }
    if (one.contains("rare")) {
      for (const auto& hash : one.at("rare")) column.rare.push_back(size_from(hash));
    }
    if (one.contains("more")) one.at("more").get_to(column.more);
    if (!std::is_sorted(column.rare.begin(), column.rare.end())) fail("not in order");
  }
  return facts;
}

}  // namespace

std::string encoding_text(const CsvEncoding& encoding) {
  nlohmann::ordered_json json = {
      {"header", encoding.header},         {"width", encoding.width},
      {"columns", encoding.columns},       {"positions", encoding.positions},
      {"categories", encoding.categories}, {"means", encoding.means}};
  if (!encoding.formats.empty()) json["formats"] = formats_json(encoding.formats);
  if (!encoding.others.empty()) json["others"] = encoding.others;
  if (!encoding.target_formats.empty()) {
    json["target_formats"] = formats_json(encoding.target_formats);
  }
  if (!encoding.classes.empty()) json["classes"] = encoding.classes;
  if (!encoding.facts.empty()) json["training"] = facts_json(encoding.facts);
  if (!encoding.typical.empty()) json["typical"] = encoding.typical;
  if (!encoding.missing.empty()) json["missing"] = encoding.missing;
  return json.dump();
}

CsvEncoding parse_encoding(const std::string& text) {
  CsvEncoding encoding;
  try {
    const auto json = nlohmann::json::parse(text);
    json.at("header").get_to(encoding.header);
    encoding.width = size_from(json.at("width"));
    json.at("columns").get_to(encoding.columns);
    for (const auto& position : json.at("positions")) {
      encoding.positions.push_back(size_from(position));
    }
    json.at("categories").get_to(encoding.categories);
    for (const auto& mean : json.at("means")) {  // JSON writes NaN as null
      encoding.means.push_back(mean.is_null() ? std::numeric_limits<float>::quiet_NaN()
                                              : mean.get<float>());
    }
    encoding.formats = formats_from(json, "formats");
    encoding.target_formats = formats_from(json, "target_formats");
    if (json.contains("others")) json.at("others").get_to(encoding.others);
    if (json.contains("classes")) json.at("classes").get_to(encoding.classes);
    if (json.contains("training")) encoding.facts = facts_from(json.at("training"));
    if (json.contains("typical")) json.at("typical").get_to(encoding.typical);
    if (json.contains("missing")) json.at("missing").get_to(encoding.missing);
  } catch (const std::exception&) {
    fail("the description of the network's columns (metadata '", kEncodingKey, "') is damaged");
  }
  if (!is_consistent(encoding)) {
    fail("the description of the network's columns (metadata '", kEncodingKey,
         "') contradicts itself");
  }
  return encoding;
}

}  // namespace fcp
