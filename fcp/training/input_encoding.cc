#include "fcp/training/input_encoding.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/nn/runtime/network.h"
#include "fcp/training/export.h"

namespace fcp {
namespace {

constexpr int64_t kMostBins = 8;        // of a column with many values
constexpr int64_t kBinBudget = 768;     // of all such columns together, about
constexpr int64_t kMostDistinct = 32;   // values up to which each one has an edge
constexpr size_t kMostSorted = 200000;  // rows that quantiles are taken from
constexpr float kSoftClip = 3;
constexpr float kHardClip = 1e6f;              // its square is a float
constexpr float kWeek = 7, kYear = 365.2425f;  // days

// The column's values that are not missing, ascending.
std::vector<float> sorted_column(const Array& x, size_t column) {
  const size_t columns = x.row_size(), rows = x.rows();
  const size_t stride = (rows + kMostSorted - 1) / kMostSorted;
  std::vector<float> values;
  for (size_t i = 0; i < rows; i += std::max<size_t>(stride, 1)) {
    const float value = x.values[i * columns + column];
    if (!std::isnan(value)) values.push_back(value);
  }
  std::sort(values.begin(), values.end());
  return values;
}

bool has_missing(const Array& x, size_t column) {
  for (size_t i = column; i < x.values.size(); i += x.row_size()) {
    if (std::isnan(x.values[i])) return true;
  }
  return false;
}

float sorted_quantile(const std::vector<float>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const size_t below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = at - static_cast<double>(below);
  return static_cast<float>((1 - part) * sorted[below] + part * sorted[above]);
}

double sorted_deviation(const std::vector<float>& sorted) {
  double sum = 0, squares = 0;
  for (const float value : sorted) sum += value;
  const double mean = sum / static_cast<double>(sorted.size());
  for (const float value : sorted) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(sorted.size()));
}

// 0.7413 times the interquartile range, which is the deviation of normal values; the deviation
// where that is 0 because most values are the same; 1 for a constant.
float robust_scale(const std::vector<float>& sorted) {
  const double range = static_cast<double>(sorted_quantile(sorted, 0.75)) -
                       static_cast<double>(sorted_quantile(sorted, 0.25));
  const float scale = static_cast<float>(range > 0 ? 0.7413 * range : sorted_deviation(sorted));
  return scale > 0 && std::isfinite(scale) ? scale : 1.0f;
}

std::vector<float> distinct_values(std::vector<float> sorted) {
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  return sorted;
}

std::vector<float> bin_edges(const std::vector<float>& sorted, const std::vector<float>& distinct,
                             int64_t bins, int64_t most_distinct) {
  if (static_cast<int64_t>(distinct.size()) <= std::max(bins, most_distinct) + 1) return distinct;
  std::vector<float> edges;
  for (int64_t i = 0; i <= bins; ++i) {
    edges.push_back(sorted_quantile(sorted, static_cast<double>(i) / static_cast<double>(bins)));
  }
  return distinct_values(std::move(edges));
}

// Two edges would only repeat the scaled column.
void add_bins(InputEncoding& encoding, size_t column, const std::vector<float>& edges) {
  if (edges.size() < 3) return;
  for (size_t i = 0; i + 1 < edges.size(); ++i) {
    const float width = edges[i + 1] - edges[i];
    if (!(width > 0) || !std::isfinite(1 / width) || !std::isfinite(width)) continue;
    encoding.bin_column.push_back(static_cast<int64_t>(column));
    encoding.bin_start.push_back(edges[i]);
    encoding.bin_width.push_back(width);
  }
}

torch::Tensor row_of(const std::vector<float>& values) {
  return torch::tensor(values, torch::kFloat).view({1, static_cast<int64_t>(values.size())});
}

std::string append_soft(Graph& graph, const InputEncoding& encoding, const std::string& input) {
  graph.initializers["median"] = row_of(encoding.median);
  graph.initializers["scale"] = row_of(encoding.scale);
  graph.initializers["lowest"] = torch::full({}, -kHardClip);
  graph.initializers["highest"] = torch::full({}, kHardClip);
  graph.initializers["soft_clip"] = torch::full({}, 1 / (kSoftClip * kSoftClip));
  graph.initializers["one"] = torch::full({}, 1.0f);
  append_node(graph, "Sub", {input, "median"}, "centred");
  append_node(graph, "Div", {"centred", "scale"}, "standardised");
  append_node(graph, "Clip", {"standardised", "lowest", "highest"}, "bounded");
  append_node(graph, "Mul", {"bounded", "bounded"}, "square");
  append_node(graph, "Mul", {"square", "soft_clip"}, "square_share");
  append_node(graph, "Add", {"square_share", "one"}, "square_sum");
  append_node(graph, "Sqrt", {"square_sum"}, "shrinkage");
  append_node(graph, "Div", {"bounded", "shrinkage"}, "soft");
  return "soft";
}

std::string append_bins(Graph& graph, const InputEncoding& encoding, const std::string& input) {
  graph.initializers["bin_column"] = torch::tensor(encoding.bin_column, torch::kLong);
  graph.initializers["bin_start"] = row_of(encoding.bin_start);
  graph.initializers["bin_width"] = row_of(encoding.bin_width);
  graph.initializers["bin_empty"] = torch::full({}, 0.0f);
  graph.initializers["bin_full"] = torch::full({}, 1.0f);
  append_node(graph, "Gather", {input, "bin_column"}, "bin_value", {{"axis", int64_t{1}}});
  append_node(graph, "Sub", {"bin_value", "bin_start"}, "bin_offset");
  append_node(graph, "Div", {"bin_offset", "bin_width"}, "bin_share");
  append_node(graph, "Clip", {"bin_share", "bin_empty", "bin_full"}, "bins");
  return "bins";
}

// NaN is the one number that does not equal itself.
std::string append_filled(Graph& graph, const InputEncoding& encoding, const std::string& input) {
  graph.initializers["fill"] =
      row_of({encoding.median.begin(), encoding.median.begin() + encoding.columns()});
  append_node(graph, "Equal", {input, input}, "is_present");
  append_node(graph, "Where", {"is_present", input, "fill"}, "filled");
  return "filled";
}

std::string append_missing(Graph& graph, const InputEncoding& encoding) {
  graph.initializers["missing_column"] = torch::tensor(encoding.missing, torch::kLong);
  graph.initializers["all_present"] = torch::full({}, 1.0f);
  append_node(graph, "Cast", {"is_present"}, "present", {{"to", int64_t{1}}});
  append_node(graph, "Gather", {"present", "missing_column"}, "present_chosen",
              {{"axis", int64_t{1}}});
  append_node(graph, "Sub", {"all_present", "present_chosen"}, "missing");
  return "missing";
}

float median_of(const Array& x, size_t column) {
  std::vector<float> values = sorted_column(x, column);
  return values.empty() ? 0 : sorted_quantile(values, 0.5);
}

// The calendar's columns behind those of `value`.
std::string append_calendar(Graph& graph, const InputEncoding& encoding, const std::string& value) {
  graph.initializers["date_columns"] = torch::tensor(encoding.dates, torch::kLong);
  graph.initializers["week"] = torch::full({}, kWeek);
  graph.initializers["year"] = torch::full({}, kYear);
  append_node(graph, "Gather", {value, "date_columns"}, "days", {{"axis", int64_t{1}}});
  append_node(graph, "Floor", {"days"}, "whole_days");
  const auto remainder = [&](const std::string& of, const std::string& period,
                             const std::string& output) {
    append_node(graph, "Div", {of, period}, output + "_share");
    append_node(graph, "Floor", {output + "_share"}, output + "_count");
    append_node(graph, "Mul", {output + "_count", period}, output + "_start");
    append_node(graph, "Sub", {of, output + "_start"}, output);
  };
  remainder("whole_days", "week", "weekday");
  remainder("days", "year", "day_of_year");
  append_node(graph, "Sub", {"days", "whole_days"}, "time_of_day");
  append_node(graph, "Concat", {"weekday", "day_of_year", "time_of_day"}, kCalendar,
              {{"axis", int64_t{1}}});
  append_node(graph, "Concat", {value, kCalendar}, "with_calendar", {{"axis", int64_t{1}}});
  return "with_calendar";
}

}  // namespace

int64_t InputEncoding::width() const {
  return all_columns() + static_cast<int64_t>(missing.size() + bin_column.size());
}

Array with_calendar(const InputEncoding& encoding, const Array& x) {
  if (encoding.dates.empty()) return x;
  const size_t columns = x.row_size(), more = 3 * encoding.dates.size();
  Array all = zeros({static_cast<int64_t>(x.rows()), static_cast<int64_t>(columns + more)});
  for (size_t i = 0; i < x.rows(); ++i) {
    float* row = all.values.data() + i * (columns + more);
    std::copy_n(x.values.data() + i * columns, columns, row);
    for (size_t d = 0; d < encoding.dates.size(); ++d) {
      const auto column = static_cast<size_t>(encoding.dates[d]);
      const float days = std::isnan(row[column]) ? encoding.median[column] : row[column];
      const float whole = std::floor(days);
      float* calendar = row + columns + d;
      calendar[0] = whole - kWeek * std::floor(whole / kWeek);
      calendar[encoding.dates.size()] = days - kYear * std::floor(days / kYear);
      calendar[2 * encoding.dates.size()] = days - whole;
    }
  }
  return all;
}

InputEncoding fit_input_encoding(const Array& table, const std::vector<int64_t>& dates) {
  InputEncoding encoding;
  encoding.dates = dates;
  encoding.median.resize(table.row_size());
  for (const int64_t j : dates) {
    encoding.median[static_cast<size_t>(j)] = median_of(table, static_cast<size_t>(j));
  }
  const Array x = with_calendar(encoding, table);
  encoding.median.clear();
  std::vector<std::vector<float>> columns, distinct;
  int64_t curved = 0;  // columns for which bins say more than the scaled column
  for (size_t j = 0; j < x.row_size(); ++j) {
    if (has_missing(x, j)) encoding.missing.push_back(static_cast<int64_t>(j));
    columns.push_back(sorted_column(x, j));
    if (columns[j].empty()) columns[j].push_back(0);  // nothing but missing values
    distinct.push_back(distinct_values(columns[j]));
    curved += distinct[j].size() > 2;
    encoding.median.push_back(sorted_quantile(columns[j], 0.5));
    encoding.scale.push_back(robust_scale(columns[j]));
  }
  encoding.fill = !encoding.missing.empty();
  const int64_t bins = std::min(kMostBins, kBinBudget / std::max<int64_t>(curved, 1));
  const int64_t most_distinct =
      std::min(kMostDistinct, 4 * kBinBudget / std::max<int64_t>(curved, 1));
  if (bins < 2) return encoding;
  for (size_t j = 0; j < columns.size(); ++j) {
    add_bins(encoding, j, bin_edges(columns[j], distinct[j], bins, most_distinct));
  }
  return encoding;
}

std::string append_encoding(Graph& graph, const InputEncoding& encoding, const std::string& input) {
  std::string value = encoding.fill ? append_filled(graph, encoding, input) : input;
  if (!encoding.dates.empty()) value = append_calendar(graph, encoding, value);
  std::vector<std::string> parts{append_soft(graph, encoding, value)};
  if (!encoding.bin_column.empty()) parts.push_back(append_bins(graph, encoding, value));
  if (!encoding.missing.empty()) parts.push_back(append_missing(graph, encoding));
  if (parts.size() == 1) return parts[0];
  append_node(graph, "Concat", parts, "encoded", {{"axis", int64_t{1}}});
  return "encoded";
}

torch::Tensor encode_rows(const InputEncoding& encoding, const Array& x) {
  const torch::NoGradGuard no_gradients;
  Graph graph;
  graph.name = "fcp_encoding";
  graph.inputs = {batch_of("input", encoding.columns())};
  graph.outputs = {batch_of(append_encoding(graph, encoding, "input"), encoding.width())};
  sort_and_check(graph);
  const Network network(graph);
  const int64_t rows = static_cast<int64_t>(x.rows());
  torch::Tensor encoded = torch::empty({rows, encoding.width()}, torch::kFloat);
  constexpr int64_t kBlock = 4096;
  for (int64_t first = 0; first < rows; first += kBlock) {
    const int64_t count = std::min(kBlock, rows - first);
    const torch::Tensor block =
        torch::from_blob(const_cast<float*>(x.values.data() + first * encoding.columns()),
                         {count, encoding.columns()}, torch::kFloat);
    encoded.narrow(0, first, count).copy_(network.forward(block));
  }
  return encoded;
}

}  // namespace fcp
