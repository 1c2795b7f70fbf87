// Targets that are far from 0 beside their spread, as 1e9 ± 3, where float32 numbers are 64 apart.
// Such a target is learned less an offset, subtracted in double precision, and the graph adds the
// offset to its answer as a double: Cast, Add. What is learned of residuals needs no offset. Heads
// and features stay float32.
//
// An offset is taken where one unit in the last place of the mean is more than a thousandth of the
// spread. It is the mean to a multiple of a power of two below the spread, so that whole numbers
// stay whole. Tested by tests/training/target_offset_test.cc and tests/fit/fit_test.cc.
#pragma once

#include <vector>

#include "fcp/data/array.h"
#include "fcp/nn/graph/graph.h"

namespace fcp {

// Of each target, 0 where it needs none; empty where none does. y.exact tells; without it there is
// no offset.
std::vector<double> target_offsets(const Array& y);

// y − offset, as float32.
Array less_offsets(const Array& y, const std::vector<double>& offsets);

// Makes the graph answer y: its outputs `prediction`, `low` and `high`, and those of cross-fitting,
// become doubles, and the metadata kTargetOffsetKey (encoding_text.h) says so.
void add_offsets(Graph& graph, const std::vector<double>& offsets);

}  // namespace fcp
