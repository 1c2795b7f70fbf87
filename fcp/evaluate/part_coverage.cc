#include "fcp/evaluate/part_coverage.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fcp/evaluate/conditional_sample.h"
#include "fcp/predictor/region_tensors.h"

namespace fcp {
namespace {

constexpr size_t kMostShown = 3;    // that are kept
constexpr size_t kMostValues = 30;  // of a column
constexpr size_t kLeastRows = 10;   // of a value that tells whether a column is uneven
constexpr int64_t kNoValue = -1;

// How far coverage is from being equal in all parts, in standard deviations of chance.
double unevenness(const GroupCounts& counts) {
  double covered = 0, rows = 0, parts = 0;
  for (const auto& [value, count] : counts.groups) {
    if (count.rows < kLeastRows) continue;
    covered += static_cast<double>(count.covered);
    rows += static_cast<double>(count.rows);
    ++parts;
  }
  const double rate = covered / std::max(rows, 1.0);
  if (parts < 2 || rate <= 0 || rate >= 1) return -1;
  double statistic = 0;
  for (const auto& [value, count] : counts.groups) {
    if (count.rows < kLeastRows) continue;
    const auto n = static_cast<double>(count.rows);
    const double off = static_cast<double>(count.covered) - n * rate;
    statistic += off * off / (n * rate * (1 - rate));
  }
  return (statistic - (parts - 1)) / std::sqrt(2 * (parts - 1));
}

}  // namespace

PartCoverage::PartCoverage(const RowSource& source, const EvaluateOptions& options)
    : options_(options) {
  const CsvEncoding* encoding = source.encoding();
  if (encoding == nullptr) return;
  for (size_t i = 0; i < encoding->columns.size(); width_ += encoding->width_of(i++)) {
    Column column{encoding->columns[i], width_};
    column.flag = encoding->format(i).kind == ColumnKind::kBoolean;
    if (column.flag) column.names = {"no", "yes"};
    if (encoding->is_category(i)) {
      column.names = encoding->categories[i];
      if (encoding->has_other(i)) column.names.emplace_back("(other)");
    }
    if (column.names.size() >= 2 && column.names.size() <= kMostValues) columns_.push_back(column);
  }
}

int64_t PartCoverage::value_of(const Column& column, const float* row) const {
  if (column.flag) {
    return std::isnan(row[column.first]) ? kNoValue
                                         : static_cast<int64_t>(row[column.first] > 0.5f);
  }
  for (size_t i = 0; i < column.names.size(); ++i) {
    if (row[column.first + i] > 0.5f) return static_cast<int64_t>(i);
  }
  return kNoValue;
}

void PartCoverage::measure(const Rows& rows, const Regions& regions, Packer& packer) const {
  std::vector<uint8_t> covered;
  std::vector<int64_t> values;
  const bool wanted =
      !columns_.empty() || !options_.periods.ids.empty() || !options_.together.empty();
  if (wanted) {
    const torch::Tensor inside = host_doubles(covered_rows(regions, view(rows.y)));
    for (const double in : numbers(inside)) covered.push_back(in > 0.5);
  }
  if (rows.x.row_size() == width_) {
    for (size_t i = 0; i < covered.size(); ++i) {
      for (const Column& column : columns_) {
        values.push_back(value_of(column, rows.x.values.data() + i * width_));
      }
    }
  }
  packer.add(covered);
  packer.add(values);
}

void PartCoverage::take(Unpacker& unpacker) {
  const auto covered = unpacker.numbers<uint8_t>();
  const auto values = unpacker.numbers<int64_t>();
  for (size_t i = 0; i < covered.size(); ++i, ++rows_) {
    for (size_t column = 0; column < columns_.size() && !values.empty(); ++column) {
      const int64_t value = values[i * columns_.size() + column];
      if (value != kNoValue) columns_[column].counts.add(value, covered[i] != 0);
    }
    if (!options_.periods.ids.empty())
      periods_.add(options_.periods.ids.at(rows_), covered[i] != 0);
    if (!options_.together.empty()) together_.add(options_.together.at(rows_), covered[i] != 0);
  }
}

void PartCoverage::finish(EvaluationReport& report) const {
  std::vector<std::pair<double, const Column*>> order;
  for (const Column& column : columns_) {
    const double uneven = unevenness(column.counts);
    if (uneven > 0) order.emplace_back(uneven, &column);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (size_t i = 0; i < std::min(order.size(), kMostShown); ++i) {
    const Column& column = *order[i].second;
    report.by_column.push_back({column.name, group_coverage(column.counts, column.names)});
  }
  report.over_time = group_coverage(periods_, options_.periods.names);
  if (!together_.groups.empty()) report.rows_alike = design_effect(together_);
}

double design_effect(const GroupCounts& groups) {
  double covered = 0, rows = 0;
  for (const auto& [group, count] : groups.groups) {
    covered += static_cast<double>(count.covered);
    rows += static_cast<double>(count.rows);
  }
  const auto n = static_cast<double>(groups.groups.size());
  const double rate = covered / rows;
  if (rate <= 0 || rate >= 1 || n < 2) return rows / n;
  double spread = 0;
  for (const auto& [group, count] : groups.groups) {
    const double off = static_cast<double>(count.covered) - rate * static_cast<double>(count.rows);
    spread += off * off;
  }
  return std::max(1.0, n / (n - 1) * spread / (rows * rate * (1 - rate)));
}

}  // namespace fcp
