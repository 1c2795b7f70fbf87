#include "fcp/data/encoding_text.h"

#include <algorithm>
#include <limits>
#include <set>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/data/words.h"

namespace fcp {
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
