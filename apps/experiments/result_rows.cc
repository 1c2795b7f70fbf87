#include "apps/experiments/result_rows.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "apps/report/charts.h"

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

ResultTable coverage_table(const Json& rows) {
  ResultTable table{
      "Coverage and length of every method",
      {"set", "method", "detection %", "interval coverage %", "worst third %", "length", ""},
      {},
      true};
  for (const RowGroup& group : group_rows(rows, {"set", "method"})) {
    const Spread detection = group.spread("detection_coverage");
    table.rows.push_back(
        {group.key[0], group.key[1], detection.count > 0 ? fixed_text(100 * detection.mean, 1) : "",
         percent_text(group.spread("coverage")), percent_text(group.spread("worst_third_coverage")),
         spread_text(group.spread("length")), group.failed_text()});
  }
  return table;
}

Figure relative_length_figure(const Json& rows, const std::string& base,
                              const std::vector<std::string>& methods) {
  const std::vector<RowGroup> groups = group_rows(rows, {"set", "method"});
  Comparison chart{"Length divided by that of " + base,
                   "length / length of " + base,
                   values_of(rows, "set"),
                   {},
                   1.0};
  for (const std::string& method : methods) {
    ComparisonSeries series{method, {}, {}};
    for (const std::string& set : chart.rows) {
      const Spread unit = spread_at(groups, {set, base}, "length");
      const Spread length = spread_at(groups, {set, method}, "length");
      series.values.push_back(length.mean / unit.mean);
      series.deviations.push_back(length.deviation / unit.mean);
    }
    chart.series.push_back(series);
  }
  return {.caption = chart.title,
          .remark = "Left of the dashed line is shorter. Whiskers: the deviation over seeds.",
          .chart = comparison_chart(chart),
          .wide = true};
}

Figure coverage_figure(const Json& rows, const std::vector<std::string>& methods,
                       const Level& level) {
  const std::vector<RowGroup> groups = group_rows(rows, {"set", "method"});
  Comparison chart{"Coverage of the printed intervals",
                   "share of test rows in their interval",
                   values_of(rows, "set"),
                   {},
                   1 - level.value()};
  for (const std::string& method : methods) {
    ComparisonSeries series{method, {}, {}};
    for (const std::string& set : chart.rows) {
      const Spread coverage = spread_at(groups, {set, method}, "coverage");
      series.values.push_back(coverage.mean);
      series.deviations.push_back(coverage.deviation);
    }
    chart.series.push_back(series);
  }
  return {.caption = chart.title,
          .remark = "The dashed line is the target.",
          .chart = comparison_chart(chart),
          .wide = true};
}

namespace {

constexpr std::array<PaperSet, 12> kSets = {{
    {"community", "1.99 ± 0.09", "1.99 ± 0.19", "1.986 ± 0.095", "1.952 ± 0.196", "1.60 ± 0.08",
     "1.23 ± 0.15", "78.8", "76.1", "0.115 ± 0.029", "0.807 ± 0.145", "4.85 ± 0.22", "4.92 ± 0.77"},
    {"star", "0.41 ± 0.02", "0.41 ± 0.03", "0.403 ± 0.015", "0.409 ± 0.029", "0.20 ± 0.00",
     "0.13 ± 0.01", "82.2", "84.6", "0.023 ± 0.003", "0.161 ± 0.012", "2.23 ± 0.18", "2.24 ± 0.40"},
    {"bio", "1.97 ± 0.01", "1.87 ± 0.04", "1.967 ± 0.015", "1.889 ± 0.043", "1.39 ± 0.01",
     "1.22 ± 0.02", "80.0", "84.8", "0.105 ± 0.006", "0.851 ± 0.037", "4.25 ± 0.11", "4.44 ± 0.74"},
    {"bike", "1.91 ± 0.04", "1.79 ± 0.08", "1.886 ± 0.057", "1.742 ± 0.071", "0.58 ± 0.01",
     "0.38 ± 0.02", "78.2", "81.1", "0.092 ± 0.006", "0.776 ± 0.047", "4.65 ± 0.15", "4.13 ± 0.38"},
    {"facebook1", "3.17 ± 0.59", "2.08 ± 0.17", "", "", "1.15 ± 0.04", "1.00 ± 0.04", "66.7",
     "65.5", "0.249 ± 0.039", "1.895 ± 0.206", "3.42 ± 0.25", "3.20 ± 0.50"},
    {"facebook2", "2.72 ± 0.37", "1.97 ± 0.17", "", "", "1.25 ± 0.08", "1.08 ± 0.06", "70.8",
     "65.7", "0.239 ± 0.096", "1.792 ± 0.522", "3.51 ± 0.26", "3.34 ± 0.39"},
    {"blog", "3.32 ± 0.38", "2.81 ± 0.40", "", "", "1.47 ± 0.05", "0.89 ± 0.03", "49.1", "59.4",
     "0.354 ± 0.114", "2.377 ± 0.542", "2.41 ± 0.15", "2.58 ± 0.49"},
    {"meps19", "4.25 ± 0.21", "3.58 ± 0.35", "", "", "2.41 ± 0.26", "1.48 ± 0.19", "71.3", "76.7",
     "0.240 ± 0.016", "1.751 ± 0.115", "4.02 ± 0.16", "4.22 ± 0.48"},
    {"meps20", "4.17 ± 0.36", "3.37 ± 0.38", "", "", "2.47 ± 0.10", "1.34 ± 0.35", "71.3", "77.7",
     "0.249 ± 0.057", "1.794 ± 0.353", "4.10 ± 0.28", "4.02 ± 0.41"},
    {"meps21", "4.67 ± 0.30", "3.93 ± 0.54", "", "", "2.26 ± 0.20", "1.69 ± 0.20", "70.7", "74.7",
     "0.253 ± 0.049", "1.869 ± 0.335", "4.08 ± 0.16", "3.81 ± 0.32"},
    {"synthetic", "0.401 ± 0.01", "0.373 ± 0.05", "0.408 ± 0.006", "0.369 ± 0.079", "", "", "", "",
     "", "", "", ""},
    {"", "", "", "", "", "", "", "", "", "", "", "", ""},
}};

struct PaperCut {
  std::string_view set, layers, length;
};

constexpr std::array<PaperCut, 9> kCuts = {{{"bio", "1:3", "1.860 ± 0.12"},
                                            {"bio", "2:2", "1.873 ± 0.06"},
                                            {"bio", "3:1", "1.961 ± 0.02"},
                                            {"bike", "1:3", "1.748 ± 0.10"},
                                            {"bike", "2:2", "1.794 ± 0.11"},
                                            {"bike", "3:1", "1.917 ± 0.14"},
                                            {"blog", "1:3", "2.595 ± 0.38"},
                                            {"blog", "2:2", "2.811 ± 0.54"},
                                            {"blog", "3:1", "3.319 ± 0.22"}}};

}  // namespace

const PaperSet& paper_set(std::string_view set) {
  const std::string_view name = set.substr(0, set.find(" (rebuilt)"));
  for (const PaperSet& row : kSets) {
    if (row.set == name) return row;
  }
  return kSets.back();
}

std::string paper_cut_length(std::string_view set, std::string_view layers) {
  for (const PaperCut& cut : kCuts) {
    if (cut.set == set && cut.layers == layers) return std::string(cut.length);
  }
  return "";
}

}  // namespace fcp
