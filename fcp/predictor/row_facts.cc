#include "fcp/predictor/row_facts.h"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>

#include "fcp/base/error.h"
#include "fcp/data/csv_column.h"
#include "fcp/data/csv_head.h"
#include "fcp/data/npy.h"
#include "fcp/data/npy_column.h"
#include "fcp/data/number.h"
#include "fcp/predictor/input_schema.h"

namespace fcp {
namespace {

// Of all files of the data, one after the other.
std::vector<std::string> read_column(const DataOptions& data, const std::string& name) {
  std::vector<std::string> cells;
  for (const std::string& file : file_list(data.data)) {
    for (std::string& cell : read_csv_column(file, name, data.csv)) {
      cells.push_back(std::move(cell));
    }
  }
  return cells;
}

RowGroups read_groups(const DataOptions& data, const std::string& group,
                      const std::vector<std::string>& known_names) {
  RowGroups groups;
  groups.names = known_names;
  if (group.empty()) return groups;
  std::map<std::string, int64_t> known;
  for (const std::string& name : known_names) {
    known.emplace(name, static_cast<int64_t>(known.size()));
  }
  const auto add = [&](const std::string& name) {
    const auto [entry, fresh] = known.emplace(name, static_cast<int64_t>(known.size()));
    if (fresh) groups.names.push_back(name);
    groups.ids.push_back(entry->second);
  };
  if (group.ends_with(".npy")) {
    for (const std::string& name : read_npy_column(group)) add(name);
  } else {
    for (const std::string& cell : read_column(data, group)) add(cell);
  }
  return groups;
}

double parse_weight(const std::string& cell, const std::string& column, size_t row) {
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size() || !(value >= 0) ||
      std::isinf(value)) {
    fail("weights ", column, ": row ", row, " (from 0) is '", cell,
         "', expected a finite number, not negative");
  }
  return value;
}

std::string plain_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

std::vector<double> read_weights(const DataOptions& data, const std::string& weights) {
  std::vector<double> values;
  if (weights.empty()) return values;
  if (weights.ends_with(".npy")) {
    for (const float value : read_npy(weights).values) {
      if (!(value >= 0) || std::isinf(value)) {
        fail(plain_name(weights), ": row ", values.size(), " (from 0) is ", value,
             ", expected a finite number, not negative");
      }
      values.push_back(value);
    }
    return values;
  }
  for (const std::string& cell : read_column(data, weights)) {
    values.push_back(parse_weight(cell, weights, values.size()));
  }
  return values;
}

}  // namespace

RowFacts read_facts(const DataOptions& data, const FactOptions& options) {
  const RowGroups groups = read_groups(data, options.group, {});
  return {groups, groups, read_weights(data, options.weights)};
}

std::optional<std::vector<double>> read_number_column(const DataOptions& data,
                                                      const std::string& name) {
  const std::vector<std::string> files = file_list(data.data);
  if (are_images(data) || holds_array(files[0])) return std::nullopt;
  CsvRecords records(open_text(files[0], data.csv.text_encoding), data.csv.separator);
  if (!read_head(records, data.csv.header).has(name)) return std::nullopt;
  std::vector<double> numbers;
  for (const std::string& cell : read_column(data, name)) {
    double value = 0;
    if (!parse_number(cell, value) || !std::isfinite(value)) {
      fail(data.data, ": row ", numbers.size(), " (from 0), column '", name, "': found '", cell,
           "', expected a finite number");
    }
    numbers.push_back(value);
  }
  return numbers;
}

RowFacts read_facts_for(const CalibrationArtifact& artifact, const DataOptions& data,
                        const FactOptions& options, Observer& observer) {
  const CalibrationOptions& calibration = artifact.method.calibration;
  const std::string column = calibration.group_column();
  const bool by_column = !column.empty();
  const bool in_table = !column.ends_with(".npy") && !data.data.ends_with(".npy");
  const std::string group = !by_column ? "" : in_table ? column : options.group;
  if (by_column && group.empty()) {
    fail_option("group", internal::kNeedsGroups, ", in an .npy file");
  }
  if (calibration.traits().by_weight && !artifact.ratio.defined() && options.weights.empty()) {
    fail_option("weights", internal::kNeedsWeights);
  }
  const std::vector<std::string>& known = artifact.rows.group_names;
  RowFacts facts;
  if (by_column) facts.groups = read_groups(data, group, known);
  facts.shown = options.group.empty() || options.group == group
                    ? facts.groups
                    : read_groups(data, options.group, {});
  facts.weights = read_weights(data, options.weights);
  if (by_column && facts.groups.names.size() > known.size()) {
    std::string unknown;
    for (size_t i = known.size(); i < facts.groups.names.size(); ++i) {
      unknown += concat(i == known.size() ? "'" : ", '", facts.groups.names[i], "'");
    }
    observer.warning(
        concat("calibration has not seen the group ", unknown, ": its regions are infinite"));
  }
  return facts;
}

SideInformation side_information(const RowFacts& facts, size_t known_groups, size_t first,
                                 size_t count) {
  SideInformation given;
  given.first = first;
  for (const int64_t id : groups_of(facts.groups, first, count)) {
    given.groups.push_back(id < static_cast<int64_t>(known_groups) ? id : -1);
  }
  if (!facts.weights.empty()) {
    if (facts.weights.size() < first + count) {
      fail("weights: ", facts.weights.size(), " rows, the data has more");
    }
    given.weights.assign(facts.weights.begin() + static_cast<std::ptrdiff_t>(first),
                         facts.weights.begin() + static_cast<std::ptrdiff_t>(first + count));
  }
  return given;
}

std::span<const int64_t> groups_of(const RowGroups& groups, size_t first, size_t count) {
  if (groups.ids.empty()) return {};
  if (groups.ids.size() < first + count) {
    fail("group: names ", groups.ids.size(), " rows, the data has more");
  }
  return std::span(groups.ids).subspan(first, count);
}

void check_facts(const RowFacts& facts, size_t rows) {
  for (const RowGroups* groups : {&facts.groups, &facts.shown}) {
    if (groups->ids.size() > rows) {
      fail("group: names ", groups->ids.size(), " rows, the data has ", rows);
    }
  }
  if (facts.weights.size() > rows) {
    fail("weights: ", facts.weights.size(), " rows, the data has ", rows);
  }
}

}  // namespace fcp
