// A column of an .npy file as text, exactly: integers of any size in decimal, NumPy's fixed-width
// text ('U' and 'S') as UTF-8, bools as 0 and 1. Group names and row ids are read by it: through
// float32, 16777217 and 16777216 would be one group. Floating-point numbers are taken where they
// are whole and small enough to be exact (2^53, in single precision 2^24); another one is an Error
// that names its row.
//
// Tested by tests/data/npy_column_test.cc.
#pragma once

#include <string>
#include <vector>

namespace fcp {

// One text for each number of the array, whose shape must be [N] or [N, 1]. Also
// "archive.npz:entry".
std::vector<std::string> read_npy_column(const std::string& path);

}  // namespace fcp
