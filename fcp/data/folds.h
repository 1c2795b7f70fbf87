// Cutting a data set into folds at random, the same for the same seed.
//
// Tested by tests/data/folds_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fcp {

struct Folds {
  std::vector<size_t> training;
  std::vector<size_t> calibration;
  std::vector<size_t> test;
};

// The paper's 2 : 2 : 1. A fifth of the rows (rounded up) is the test fold; the rest is permuted
// and halved into training and calibration, an odd row dropped.
Folds paper_folds(size_t rows, uint64_t seed);

// Rows in a random order in which those of one group follow each other; groups[i] is that of row i.
struct GroupedOrder {
  std::vector<size_t> rows;
  std::vector<size_t> first;  // for each place of the order, the place where its group begins
};
GroupedOrder grouped_order(std::span<const int64_t> groups, uint64_t seed);

}  // namespace fcp
