// Which rows of a table train, calibrate and test, and what is kept together or in order.
//
// By time the newest rows test; where groups are kept together too, those with the newest rows
// (fcp/data/split.h). What is written afterwards is made on other parts: all rows but the
// newest train it, and the newest calibrate it, so that the recent past counts (refit_split).
//
// Tested by tests/fit/fit_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fcp/evaluate/evaluate.h"
#include "fcp/predictor/open_data.h"

namespace fcp {

struct TableSplit {
  std::vector<size_t> training, calibration, test;  // row numbers, ascending
  std::vector<int64_t> groups{};                    // of all rows, where groups are kept together
  std::vector<double> times{};                      // of all rows, where time splits them
  std::vector<size_t> order{};                      // then all rows, the newest last
  std::vector<std::string> moments{};               // the cells that say these times
  std::string way{};                                // "at random", for people
  std::string text{};                               // likewise, with periods where it is by time
};

// The columns by which rows are split; each may be empty.
struct SplitBy {
  std::string keep_together{}, time{};
};

TableSplit split_table(const DataOptions& data, const SplitBy& by, size_t rows,
                       const std::vector<double>& shares, uint64_t seed);

// Of a split by time: as many of the newest rows calibrate as did before, and what their groups
// have besides; all others train, and none is left to test.
TableSplit refit_split(const TableSplit& split);

// "trained on 2001-01-22 to 2010-03-01, calibrated on …".
std::string periods_text(const TableSplit& split);

// From the first to the last moment of these rows: "2001-01-22 to 2014-08-28".
std::string period_text(const TableSplit& split, const std::vector<size_t>& rows);

// The rows `which` of a column of numbers, or of the facts of all rows.
std::vector<int64_t> take_groups(const std::vector<int64_t>& groups,
                                 const std::vector<size_t>& which);
RowFacts take_facts(const RowFacts& facts, const std::vector<size_t>& which);

// The test rows in about a dozen periods of as many rows each: for coverage over time.
RowGroups test_periods(const TableSplit& split);

// Weights of rows in training: a column of the table, or an .npy file with a number for each row.
// They say nothing about calibration, which stays unweighted.
// Tested by tests/fit/fit_test.cc and tests/python/test_fit.py.

// Of the rows that are read, in their order; all are finite and above 0, and an Error names the row
// of another one. Empty where no column is named.
std::vector<double> read_row_weights(const DataOptions& data, const std::string& weights);

// Those of some rows.
std::vector<double> take_weights(const std::vector<double>& weights,
                                 const std::vector<size_t>& which);

// What the provenance says of them.
std::string weights_text(const std::string& weights);

// A column that says something of rows is no feature, unless types or `categorical` name it.
void leave_out(const std::string& column, CsvOptions& csv);

}  // namespace fcp
