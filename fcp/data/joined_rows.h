// An .npz archive with one array per input of a network: entry `name` is [N, …] for the input of
// that name. The numbers of a row lie side by side in x, input after input.
//
// Tested by tests/data/archive_rows_test.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fcp/data/rows.h"

namespace fcp {

// The shape of one row of each entry. An Error names an entry that is not there, has no rows, or
// has another number of them than the first.
std::vector<std::vector<int64_t>> archive_row_shapes(const std::string& archive,
                                                     const std::vector<std::string>& entries);

// Rows of x [n, numbers of all entries]. target: an entry of the archive, or an .npy as for
// open_rows; empty for none.
std::unique_ptr<RowSource> open_archive(const std::string& archive,
                                        const std::vector<std::string>& entries,
                                        const std::string& target, const RowOptions& options = {});

}  // namespace fcp
