#include "fcp/fit/row_weights.h"

#include <algorithm>
#include <filesystem>

#include "fcp/base/error.h"
#include "fcp/predictor/row_facts.h"

namespace fcp {
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
