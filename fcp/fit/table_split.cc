#include "fcp/fit/table_split.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/data/csv_column.h"
#include "fcp/data/split.h"
#include "fcp/predictor/open_data.h"

namespace fcp {
namespace {

template <typename Cell, typename Read>
std::vector<Cell> column_of_files(const DataOptions& data, const Read& read) {
  std::vector<Cell> cells;
  for (const std::string& file : file_list(data.data)) {
    for (Cell& cell : read(file)) cells.push_back(std::move(cell));
  }
  return cells;
}

std::vector<std::string> text_column(const DataOptions& data, const std::string& name) {
  return column_of_files<std::string>(
      data, [&](const std::string& file) { return read_csv_column(file, name, data.csv); });
}

std::vector<int64_t> numbered(const std::vector<std::string>& names) {
  std::map<std::string, int64_t> known;
  std::vector<int64_t> ids;
  for (const std::string& name : names) {
    ids.push_back(known.emplace(name, static_cast<int64_t>(known.size())).first->second);
  }
  return ids;
}

size_t count_groups(const std::vector<int64_t>& groups) {
  return groups.empty() ? 0
                        : static_cast<size_t>(*std::max_element(groups.begin(), groups.end())) + 1;
}

}  // namespace

// Classes are no strata: where a row goes must not depend on how many others have its class, or the
// calibration rows would not be like new ones.
TableSplit split_table(const DataOptions& data, const SplitBy& by, size_t rows,
                       const std::vector<double>& shares, uint64_t seed) {
  TableSplit split;
  SplitColumns columns;
  split.way = "at random";
  if (!by.keep_together.empty()) {
    columns.groups = text_column(data, by.keep_together);
    split.groups = numbered(columns.groups);
  }
  if (!by.time.empty()) {
    columns.times = column_of_files<double>(
        data, [&](const std::string& file) { return read_time_column(file, by.time, data.csv); });
    split.times = columns.times;
    split.moments = text_column(data, by.time);
    split.order = order_by_time(columns.times, columns.groups);
    split.way = concat("by '", by.time, "'");
  }
  if (!by.keep_together.empty()) {
    split.way += concat(", the rows of each of the ", count_groups(split.groups), " values of '",
                        by.keep_together, "' together",
                        by.time.empty() ? "" : " where the newest of them is");
  }
  auto parts = split_rows(rows, shares, seed, columns);
  split.training = std::move(parts.at(0));
  split.calibration = std::move(parts.at(1));
  split.test = std::move(parts.at(2));
  split.text = split.way;
  if (!by.time.empty()) split.text += concat(": ", periods_text(split));
  return split;
}

TableSplit refit_split(const TableSplit& split) {
  TableSplit refit = split;
  const std::vector<size_t>& all = split.order;
  auto window = all.end() - static_cast<std::ptrdiff_t>(split.calibration.size());
  while (!split.groups.empty() && window != all.begin() &&
         split.groups[*window] == split.groups[*(window - 1)]) {
    --window;
  }
  refit.training.assign(all.begin(), window);
  refit.calibration.assign(window, all.end());
  std::sort(refit.training.begin(), refit.training.end());
  std::sort(refit.calibration.begin(), refit.calibration.end());
  refit.test.clear();
  return refit;
}

std::string period_text(const TableSplit& split, const std::vector<size_t>& rows) {
  if (rows.empty()) return "";
  const auto [first, last] = std::minmax_element(rows.begin(), rows.end(), [&](size_t a, size_t b) {
    return split.times[a] < split.times[b];
  });
  const std::string &from = split.moments[*first], &to = split.moments[*last];
  return from == to ? from : concat(from, " to ", to);
}

std::string periods_text(const TableSplit& split) {
  return concat("trained on ", period_text(split, split.training), ", calibrated on ",
                period_text(split, split.calibration), ", tested on ",
                period_text(split, split.test));
}

std::vector<int64_t> take_groups(const std::vector<int64_t>& groups,
                                 const std::vector<size_t>& which) {
  std::vector<int64_t> some;
  for (const size_t row : which) {
    if (!groups.empty()) some.push_back(groups.at(row));
  }
  return some;
}

RowFacts take_facts(const RowFacts& facts, const std::vector<size_t>& which) {
  RowFacts some;
  some.groups = {take_groups(facts.groups.ids, which), facts.groups.names};
  some.shown = {take_groups(facts.shown.ids, which), facts.shown.names};
  return some;
}

RowGroups test_periods(const TableSplit& split) {
  constexpr size_t kMostPeriods = 12, kLeastRows = 25;
  RowGroups periods;
  if (split.times.empty()) return periods;
  const size_t rows = split.test.size();
  const size_t count = std::clamp<size_t>(rows / kLeastRows, 1, kMostPeriods);
  std::vector<size_t> places(rows);  // in split.test
  for (size_t i = 0; i < rows; ++i) places[i] = i;
  const auto time = [&](size_t place) { return split.times[split.test[place]]; };
  std::stable_sort(places.begin(), places.end(),
                   [&](size_t a, size_t b) { return time(a) < time(b); });
  periods.ids.resize(rows);
  std::vector<std::vector<size_t>> members;
  for (size_t i = 0; i < rows; ++i) {
    // Rows of one moment are of one period.
    const bool begins = i * count / rows >= members.size();
    if (members.empty() || (begins && time(places[i]) > time(places[i - 1])))
      members.emplace_back();
    members.back().push_back(split.test[places[i]]);
    periods.ids[places[i]] = static_cast<int64_t>(members.size()) - 1;
  }
  for (const std::vector<size_t>& period : members) {
    periods.names.push_back(period_text(split, period));
  }
  return periods;
}

namespace {

std::string name_of_weights(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

// An .npy file has a number for rows that are passed over, too.
void drop_refused(const DataOptions& data, std::vector<double>& weights) {
  const std::string file = file_list(data.data)[0];
  if (!data.csv.refused || !data.csv.refused->contains(file)) return;
  const std::vector<size_t>& refused = data.csv.refused->at(file);  // ascending
  for (size_t i = refused.size(); i-- > 0;) {
    if (refused[i] >= weights.size()) continue;
    weights.erase(weights.begin() + static_cast<std::ptrdiff_t>(refused[i]));
  }
}

}  // namespace

std::vector<double> read_row_weights(const DataOptions& data, const std::string& weights) {
  std::vector<double> values = read_facts(data, {.group = {}, .weights = weights}).weights;
  for (size_t row = 0; row < values.size(); ++row) {
    if (values[row] > 0) continue;
    fail("row weights ", name_of_weights(weights), ": row ", row, " (from 0) is ", values[row],
         ", expected a finite number above 0; leave rows out that are not to train");
  }
  if (weights.ends_with(".npy")) drop_refused(data, values);
  return values;
}

std::vector<double> take_weights(const std::vector<double>& weights,
                                 const std::vector<size_t>& which) {
  std::vector<double> some;
  for (const size_t row : which) {
    if (!weights.empty()) some.push_back(weights.at(row));
  }
  return some;
}

std::string weights_text(const std::string& weights) {
  return concat("'", name_of_weights(weights), "', in training alone");
}

void leave_out(const std::string& column, CsvOptions& csv) {
  const auto named = [&](const std::vector<std::string>& columns) {
    return std::find(columns.begin(), columns.end(), column) != columns.end();
  };
  if (column.empty() || column.ends_with(".npy") || named(csv.drop)) return;
  if (!csv.types.contains(column) && !named(csv.categorical)) csv.drop.push_back(column);
}

}  // namespace fcp
