// One column of a CSV file as text: group names, which need be neither numbers nor features.
// Tested by tests/data/csv_column_test.cc.
#pragma once

#include <string>
#include <vector>

#include "fcp/data/csv.h"

namespace fcp {

// The cells of the column `column`, by name or 0-based index (negative: from the end), one per row
// of data. Of the options only separator, header, text_encoding and refused are looked at.
std::vector<std::string> read_csv_column(const std::string& path, const std::string& column,
                                         const CsvOptions& options = {});

}  // namespace fcp
