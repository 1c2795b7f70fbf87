#include "fcp/fit/column_warnings.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/base/text.h"
#include "fcp/base/text_table.h"
#include "fcp/data/csv_records.h"

namespace fcp {
namespace {

constexpr size_t kMostLookedAt = 50'000;
constexpr size_t kLeastTable = 100;
constexpr size_t kMostClasses = 100;
constexpr double kLeak = 0.99;        // of the target's spread
constexpr double kAlike = 0.1;        // of it, beyond what the next values explain
constexpr size_t kLeastValues = 20;   // of a column of groups
constexpr double kMostRepeated = 50;  // rows of a group, on average
constexpr double kLeastRepeated = 2;  // likewise
constexpr double kOutOfOrder = 0.01;  // of the steps from row to row
constexpr double kLeastSteps = 0.2;   // of the rows that step at all

// The cells of a column: which are equal, and their numbers where they have some.
struct CellColumn {
  std::vector<uint32_t> ids;
  std::vector<double> numbers;  // NaN: missing; empty: a column of text
  size_t values = 0;
};

std::vector<CellColumn> read_columns(const DataOptions& data, const TableSchema& schema,
                                     size_t most) {
  const std::string file = file_list(data.data)[0];
  CsvRecords records(open_bytes(file), data.csv.separator);
  std::vector<size_t> refused;
  if (data.csv.refused && data.csv.refused->contains(file)) refused = data.csv.refused->at(file);
  std::vector<CellColumn> columns(schema.columns.size());
  std::vector<std::unordered_map<std::string, uint32_t>> known(columns.size());
  if (schema.head.header) records.next();
  for (size_t row = 0; columns[0].ids.size() < most && records.next(); ++row) {
    if (std::binary_search(refused.begin(), refused.end(), row)) continue;
    if (records.cells().size() != columns.size()) return {};
    for (size_t i = 0; i < columns.size(); ++i) {
      const std::string cell(records.cells()[i]);
      const auto id = static_cast<uint32_t>(known[i].size());
      columns[i].ids.push_back(known[i].emplace(cell, id).first->second);
      const CellFormat& format = schema.columns[i].format;
      if (format.kind != ColumnKind::kNumber && format.kind != ColumnKind::kDate) continue;
      double value = 0;
      const bool read = parse_cell(cell, format, value);
      columns[i].numbers.push_back(read ? value : std::numeric_limits<double>::quiet_NaN());
    }
  }
  for (size_t i = 0; i < columns.size(); ++i) columns[i].values = known[i].size();
  return columns;
}

// What is to be explained: of each row its rank, or 1 at its class, less the mean over the rows.
struct Truth {
  size_t rows = 0, width = 1;
  std::vector<double> values{};  // [rows, width]
  double spread = 0;             // Σ of squares

  const double* row(size_t i) const { return values.data() + i * width; }
};

// The mean rank of equal numbers, in [0, 1].
std::vector<double> ranks_of(const std::vector<double>& numbers) {
  std::vector<size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return numbers[a] < numbers[b]; });
  std::vector<double> ranks(numbers.size());
  for (size_t first = 0, last = 0; first < order.size(); first = last) {
    for (last = first; last < order.size() && numbers[order[last]] == numbers[order[first]];)
      ++last;
    const double rank = static_cast<double>(first + last) / 2 / static_cast<double>(order.size());
    for (size_t i = first; i < last; ++i) ranks[order[i]] = rank;
  }
  return ranks;
}

std::optional<Truth> truth_of(const Array& y, size_t rows, bool classes) {
  Truth truth{.rows = rows};
  std::vector<double> first;
  for (size_t i = 0; i < rows; ++i) {
    const size_t at = i * y.row_size();
    first.push_back(y.exact.empty() ? y.values[at] : y.exact[at]);
  }
  if (classes) {
    double largest = 0;
    for (const double label : first)
      largest = std::isinf(label) ? largest : std::max(largest, label);
    truth.width = static_cast<size_t>(largest) + 1;
    if (truth.width > kMostClasses) return std::nullopt;
    truth.values.assign(rows * truth.width, 0);
    for (size_t i = 0; i < rows; ++i) {
      if (std::isfinite(first[i]))
        truth.values[i * truth.width + static_cast<size_t>(first[i])] = 1;
    }
  } else {
    truth.values = ranks_of(first);
  }
  for (size_t k = 0; k < truth.width; ++k) {
    double mean = 0;
    for (size_t i = 0; i < rows; ++i) mean += truth.row(i)[k] / static_cast<double>(rows);
    for (size_t i = 0; i < rows; ++i) truth.values[i * truth.width + k] -= mean;
  }
  for (const double value : truth.values) truth.spread += value * value;
  if (!(truth.spread > 0)) return std::nullopt;
  return truth;
}

// Sums of the truth over the rows of each value.
struct ValueSums {
  std::vector<double> sums;  // [values, width]
  std::vector<double> rows;  // [values]

  ValueSums(const Truth& truth, const CellColumn& column)
      : sums(column.values * truth.width), rows(column.values) {
    for (size_t i = 0; i < truth.rows; ++i) {
      ++rows[column.ids[i]];
      for (size_t k = 0; k < truth.width; ++k) {
        sums[column.ids[i] * truth.width + k] += truth.row(i)[k];
      }
    }
  }
};

// Each row by the others of its value.
double skill_of_values(const Truth& truth, const CellColumn& column) {
  const ValueSums all(truth, column);
  double left = 0;
  for (size_t i = 0; i < truth.rows; ++i) {
    const size_t id = column.ids[i];
    for (size_t k = 0; k < truth.width; ++k) {
      const double own = truth.row(i)[k];
      const double others =
          all.rows[id] > 1 ? (all.sums[id * truth.width + k] - own) / (all.rows[id] - 1) : 0;
      left += (own - others) * (own - others);
    }
  }
  return 1 - left / truth.spread;
}

std::vector<size_t> order_of(const std::vector<double>& numbers) {
  std::vector<size_t> order;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (!std::isnan(numbers[i])) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return numbers[a] < numbers[b]; });
  return order;
}

// Each row by the two on either side of it in the order of the numbers.
double skill_of_neighbours(const Truth& truth, const std::vector<double>& numbers) {
  constexpr size_t kSide = 2;
  const std::vector<size_t> order = order_of(numbers);
  if (order.size() < kLeastTable) return 0;
  double explained = truth.spread;  // rows without a number stay unexplained
  for (size_t at = 0; at < order.size(); ++at) {
    const size_t first = at < kSide ? 0 : at - kSide, last = std::min(at + kSide + 1, order.size());
    for (size_t k = 0; k < truth.width; ++k) {
      double sum = 0;
      for (size_t i = first; i < last; ++i) sum += i == at ? 0 : truth.row(order[i])[k];
      const double own = truth.row(order[at])[k];
      const double off = own - sum / static_cast<double>(last - first - 1);
      explained -= off * off;
    }
  }
  for (size_t i = 0; i < truth.rows; ++i) {
    if (!std::isnan(numbers[i])) continue;
    for (size_t k = 0; k < truth.width; ++k) explained -= truth.row(i)[k] * truth.row(i)[k];
  }
  return explained / truth.spread;
}

// Each row by the rows of the next smaller and the next larger value.
double skill_of_next_values(const Truth& truth, const CellColumn& column) {
  if (column.numbers.empty()) return 0;
  const ValueSums all(truth, column);
  std::vector<double> number(column.values, std::numeric_limits<double>::quiet_NaN());
  for (size_t i = 0; i < truth.rows; ++i) number[column.ids[i]] = column.numbers[i];
  const std::vector<size_t> order = order_of(number);
  std::vector<double> answers(column.values * truth.width);
  for (size_t at = 0; at < order.size(); ++at) {
    for (size_t k = 0; k < truth.width; ++k) {
      double sum = 0, rows = 0;
      for (const size_t next : {at - 1, at + 1}) {  // 0 - 1 is beyond the end
        if (next >= order.size()) continue;
        sum += all.sums[order[next] * truth.width + k];
        rows += all.rows[order[next]];
      }
      answers[order[at] * truth.width + k] = rows > 0 ? sum / rows : 0;
    }
  }
  double left = 0;
  for (size_t i = 0; i < truth.rows; ++i) {
    for (size_t k = 0; k < truth.width; ++k) {
      const double off = truth.row(i)[k] - answers[column.ids[i] * truth.width + k];
      left += off * off;
    }
  }
  return 1 - left / truth.spread;
}

bool is_leak(const Truth& truth, const CellColumn& column) {
  return std::max(skill_of_values(truth, column),
                  column.numbers.empty() ? 0 : skill_of_neighbours(truth, column.numbers)) >= kLeak;
}

// Whether rows come in the order of these numbers, up or down.
bool in_order(const std::vector<double>& numbers) {
  size_t up = 0, down = 0;
  for (size_t i = 1; i < numbers.size(); ++i) {
    up += numbers[i] > numbers[i - 1];
    down += numbers[i] < numbers[i - 1];
  }
  const auto steps = static_cast<double>(up + down);
  return steps >= kLeastSteps * static_cast<double>(numbers.size()) &&
         static_cast<double>(std::min(up, down)) <= kOutOfOrder * steps;
}

// The column whose values make rows alike more than any other's, and how much of the spread each
// explains; columns of text before those of numbers.
struct AlikeRows {
  size_t column = 0;
  double skill = 0, repeated = 0;
};

std::optional<AlikeRows> find_groups(const Truth& truth, const TableSchema& schema,
                                     const std::vector<CellColumn>& columns) {
  std::optional<AlikeRows> found;
  double best = 0;
  for (size_t i = 0; i < columns.size(); ++i) {
    const CellColumn& column = columns[i];
    const double repeated = static_cast<double>(truth.rows) / static_cast<double>(column.values);
    if (schema.columns[i].target || schema.columns[i].dropped || column.values < kLeastValues ||
        repeated < kLeastRepeated || repeated > kMostRepeated) {
      continue;
    }
    const double own = skill_of_values(truth, column);
    const double gain = own - std::max(0.0, skill_of_next_values(truth, column));
    if (gain < kAlike) continue;
    const double rank = own + (column.numbers.empty() ? 0.01 : 0);
    if (rank <= best) continue;
    best = rank;
    found = {i, own, repeated};
  }
  return found;
}

}  // namespace

std::vector<std::string> column_warnings(const DataOptions& data, const TableSchema* schema,
                                         const Array& y, const ColumnCheck& check) {
  std::vector<std::string> warnings;
  if (schema == nullptr || y.rows() < kLeastTable) return warnings;
  const std::vector<CellColumn> columns =
      read_columns(data, *schema, std::min(kMostLookedAt, y.rows()));
  if (columns.empty() || columns[0].ids.size() < kLeastTable) return warnings;
  const std::optional<Truth> truth = truth_of(y, columns[0].ids.size(), check.classes);
  if (!truth) return warnings;
  bool leaks = false;
  for (size_t i = 0; i < columns.size(); ++i) {
    const TableColumn& column = schema->columns[i];
    if (column.target || column.dropped) continue;
    if (is_read(column.format.kind) && is_leak(*truth, columns[i])) {
      leaks = true;
      warnings.push_back(concat(
          "column '", column.name, "' alone explains 99 % or more of ", in_quotes(data.target),
          "; if it is not known when you predict, leave it out: --drop ", shell_word(column.name)));
    }
    if (check.time && column.format.kind == ColumnKind::kDate && in_order(columns[i].numbers)) {
      warnings.push_back(concat("rows are in the order of the dates in '", column.name,
                                "', and a random split tests on ",
                                "days between training days; if new rows come later, use --time ",
                                shell_word(column.name)));
    }
  }
  const auto alike = check.groups && !leaks ? find_groups(*truth, *schema, columns) : std::nullopt;
  if (alike) {
    const std::string& name = schema->columns[alike->column].name;
    warnings.push_back(
        concat("rows of one '", name, "' look alike (", format_percent(alike->skill, 0), " of ",
               in_quotes(data.target), " is explained by other rows of the same one; ",
               columns[alike->column].values, " values of ", format_number(alike->repeated, 2),
               " rows each): coverage and errors here are for these values; for new ones use ",
               "--keep-together ", shell_word(name)));
  }
  return warnings;
}

}  // namespace fcp
