// Weights of rows in training: a column of the table, or an .npy file with a number for each row.
// They say nothing about calibration, which stays unweighted.
// Tested by tests/fit/fit_test.cc and tests/python/test_fit.py.
#pragma once

#include <string>
#include <vector>

#include "fcp/predictor/open_data.h"

namespace fcp {

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
