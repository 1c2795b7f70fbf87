#include "apps/experiments/result_rows.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace fcp {
namespace {

std::string csv_cell(const Json& value) {
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

Spread scaled(Spread spread, double factor) {
  spread.mean *= factor;
  spread.deviation *= factor;
  return spread;
}

}  // namespace

double number_of(const Json& row, std::string_view field) {
  const auto found = row.find(std::string(field));
  if (found == row.end()) return std::numeric_limits<double>::quiet_NaN();
  if (found->is_number()) return found->get<double>();
  if (*found == "inf") return std::numeric_limits<double>::infinity();
  if (*found == "-inf") return -std::numeric_limits<double>::infinity();
  return std::numeric_limits<double>::quiet_NaN();
}

std::string text_of(const Json& row, std::string_view field) {
  const auto found = row.find(std::string(field));
  if (found == row.end() || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

Spread spread_of(std::span<const double> values) {
  Spread spread;
  spread.count = values.size();
  const auto n = static_cast<double>(values.size());
  if (values.empty()) {
    spread.mean = std::numeric_limits<double>::quiet_NaN();
    return spread;
  }
  for (const double value : values) spread.mean += value / n;
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  spread.deviation = n > 1 ? std::sqrt(squares / (n - 1)) : 0;
  return spread;
}

std::string fixed_text(double value, int decimals) {
  if (std::isnan(value)) return "–";
  if (std::isinf(value)) return value > 0 ? "∞" : "−∞";
  char text[400];
  const auto end =
      std::to_chars(text, text + sizeof(text), std::abs(value), std::chars_format::fixed, decimals);
  return (value < 0 ? "−" : "") + std::string(text, end.ptr);
}

std::string spread_text(const Spread& spread, int decimals) {
  if (spread.count == 0) return "–";
  const std::string mean = fixed_text(spread.mean, decimals);
  if (spread.count == 1 || !std::isfinite(spread.mean)) return mean;
  return concat(mean, " ± ", fixed_text(spread.deviation, decimals));
}

std::string percent_text(const Spread& spread, int decimals) {
  return spread_text(scaled(spread, 100), decimals);
}

std::vector<double> RowGroup::numbers(std::string_view field) const {
  std::vector<double> values;
  for (const Json* row : rows) {
    const double value = number_of(*row, field);
    if (!std::isnan(value)) values.push_back(value);
  }
  return values;
}

Spread RowGroup::spread(std::string_view field) const { return spread_of(numbers(field)); }

std::string RowGroup::failed_text() const {
  if (failed == 0) return "";
  return concat(failed, " of ", failed + rows.size(), ": no M");
}

std::vector<RowGroup> group_rows(const Json& rows, std::span<const std::string_view> fields) {
  std::vector<RowGroup> groups;
  for (const Json& row : rows) {
    std::vector<std::string> key;
    for (const std::string_view field : fields) key.push_back(text_of(row, field));
    auto found = std::find_if(groups.begin(), groups.end(),
                              [&](const RowGroup& group) { return group.key == key; });
    if (found == groups.end()) found = groups.insert(groups.end(), RowGroup{key, {}, 0});
    if (row.contains("failed")) {
      ++found->failed;
    } else {
      found->rows.push_back(&row);
    }
  }
  return groups;
}

std::vector<RowGroup> group_rows(const Json& rows, std::initializer_list<std::string_view> fields) {
  return group_rows(rows, std::span(fields.begin(), fields.size()));
}

const RowGroup* find_group(std::span<const RowGroup> groups,
                           std::initializer_list<std::string_view> key) {
  for (const RowGroup& group : groups) {
    if (std::equal(group.key.begin(), group.key.end(), key.begin(), key.end())) return &group;
  }
  return nullptr;
}

Spread spread_at(std::span<const RowGroup> groups, std::initializer_list<std::string_view> key,
                 std::string_view field) {
  const RowGroup* group = find_group(groups, key);
  return group ? group->spread(field) : spread_of({});
}

std::vector<std::string> values_of(const Json& rows, std::string_view field) {
  std::vector<std::string> values;
  for (const Json& row : rows) {
    const std::string value = text_of(row, field);
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  }
  return values;
}

std::string rows_csv(const Json& rows) {
  std::vector<std::string> columns;
  for (const Json& row : rows) {
    for (const auto& [field, value] : row.items()) {
      if (field == "seconds") continue;
      if (std::find(columns.begin(), columns.end(), field) == columns.end()) {
        columns.push_back(field);
      }
    }
  }
  std::string csv;
  for (size_t i = 0; i < columns.size(); ++i) csv.append(i > 0 ? "," : "").append(columns[i]);
  csv += "\n";
  for (const Json& row : rows) {
    std::string line;
    for (size_t i = 0; i < columns.size(); ++i) {
      if (i > 0) line += ",";
      if (row.contains(columns[i]) && !row[columns[i]].is_null()) line += csv_cell(row[columns[i]]);
    }
    csv += line + "\n";
  }
  return csv;
}

}  // namespace fcp
