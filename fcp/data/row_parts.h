// Several files as one long list of rows, file after file: a set that was written in shards. A
// batch may span files, so that batches are those of one file with all rows.
//
// Tested by tests/data/rows_test.cc.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fcp/data/rows.h"

namespace fcp {

// `names`: of the parts, for an Error where the rows of two do not fit together.
std::unique_ptr<RowSource> join_rows(std::vector<std::unique_ptr<RowSource>> parts,
                                     const std::vector<std::string>& names);

// As open_rows; an Error names two files whose rows do not fit together.
std::unique_ptr<RowSource> join_files(const std::vector<std::string>& files,
                                      const std::string& target, const RowOptions& options);

}  // namespace fcp
