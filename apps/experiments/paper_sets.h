// The paper's ten one-dimensional data sets, prepared exactly as the official code does: columns,
// order, encodings of text and treatment of missing values, before any scaling. Files keep the
// names their sources give them; see paper_sets.cc for each set's preparation.
//
// Tested by tests/experiments/paper_sets_test.cc.
#pragma once

#include <string>
#include <vector>

#include "fcp/data/array.h"

namespace fcp {

struct PaperSetOptions {
  bool check_rows = true;  // the number of rows must be the published one
};

// community star bio bike facebook1 facebook2 blog meps19 meps20 meps21
const std::vector<std::string>& paper_set_names();

// Whether the set's file is in data_dir or data_dir/tabular.
bool has_paper_set(const std::string& name, const std::string& data_dir);

// Looks in data_dir and data_dir/tabular for the file, plain or with ".gz". Where meps21 had to be
// read from the rebuilt file, the set's name is "meps21 (rebuilt)".
DataSet load_paper_set(const std::string& name, const std::string& data_dir,
                       const PaperSetOptions& options = {});

}  // namespace fcp
