// Columns of the data that are written beside its regions: names and identifiers.
// Tested by tests/cli/test_fit.py.
#pragma once

#include <string>
#include <vector>

#include "fcp/pipeline/open_data.h"

namespace fcp {

struct KeptColumns {
  std::vector<std::string> names{};
  std::vector<std::vector<std::string>> cells{};  // of each column, one per row
};

// `list`: columns of a CSV file by name or index, with commas between; empty for none.
KeptColumns read_kept_columns(const DataOptions& data, const std::string& list);

}  // namespace fcp
