// Rows that lie in several places: in files one after the other, as a set that was written in
// shards, or side by side in the entries of an archive.
//
// Tested by tests/data/rows_test.cc, tests/data/archive_rows_test.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fcp/data/rows.h"

namespace fcp {

// One long list of rows. A batch may span files, so that batches are those of one file with all
// rows. `names`: of the parts, for an Error where the rows of two do not fit together.
std::unique_ptr<RowSource> join_rows(std::vector<std::unique_ptr<RowSource>> parts,
                                     const std::vector<std::string>& names);

// As open_rows; an Error names two files whose rows do not fit together.
std::unique_ptr<RowSource> join_files(const std::vector<std::string>& files,
                                      const std::string& target, const RowOptions& options);

// The shape of one row of each entry. An Error names an entry that is not there, has no rows, or
// has another number of them than the first.
std::vector<std::vector<int64_t>> archive_row_shapes(const std::string& archive,
                                                     const std::vector<std::string>& entries);

// An archive with one array per input of a network: entry `name` is [N, …] for the input of that
// name. The numbers of a row lie side by side in x [n, …], entry after entry. target: an entry of
// the archive, or an .npy as for open_rows; empty for none.
std::unique_ptr<RowSource> open_archive(const std::string& archive,
                                        const std::vector<std::string>& entries,
                                        const std::string& target, const RowOptions& options = {});

}  // namespace fcp
