// Rows of a CSV file that are passed over: those that cannot be read, and those without a target.
// They are found in a pass of their own, so that whatever reads the file afterwards (rows, groups,
// weights) passes over the same ones. Tested by tests/data/refused_rows_test.cc.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fcp/data/csv.h"

namespace fcp {

struct RefusalRule {
  bool problems = false;        // rows with a cell that cannot be read
  bool without_target = false;  // rows whose target is missing, whatever else is wrong with them
};

struct Refusals {
  RefusedRows rows{};
  size_t kept = 0;      // rows
  size_t problems = 0;  // rows, by the rule that they fell under
  size_t without_target = 0;
  std::string first{};  // problem: where and what
};

// Of several files, of which the later ones are read through the encoding of the first, as in
// open_rows. Rows with problems are written to the CSV file `out`, with two more columns: the line
// and what is wrong. No file is written where there are none, or where `out` is empty.
Refusals find_refusals(const std::vector<std::string>& files, const std::string& target,
                       const CsvOptions& options, const RefusalRule& rule, const std::string& out);

}  // namespace fcp
