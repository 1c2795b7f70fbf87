#include "fcp/data/encoding_text.h"

#include <limits>
#include <set>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"

namespace fcp {
namespace {

// The text may come from a damaged or hostile file: what a reader uses as an index must be one.
bool is_consistent(const CsvEncoding& encoding) {
  const size_t columns = encoding.columns.size();
  if (columns == 0 || encoding.positions.size() != columns ||
      encoding.categories.size() != columns ||
      (!encoding.means.empty() && encoding.means.size() != columns)) {
    return false;
  }
  for (const size_t position : encoding.positions) {
    if (position >= encoding.width) return false;
  }
  for (const auto& categories : encoding.categories) {
    const std::set<std::string> distinct(categories.begin(), categories.end());
    if (distinct.size() != categories.size()) return false;
  }
  return true;
}

// json's own conversion takes -1 and 1e99 for sizes as well.
size_t size_from(const nlohmann::json& json) {
  if (!json.is_number_unsigned()) fail("not a size");
  return json.get<size_t>();
}

}  // namespace

std::string encoding_text(const CsvEncoding& encoding) {
  const nlohmann::ordered_json json = {
      {"header", encoding.header},         {"width", encoding.width},
      {"columns", encoding.columns},       {"positions", encoding.positions},
      {"categories", encoding.categories}, {"means", encoding.means}};
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
