// A small regression tree of whether rows are covered: greedy splits of one column at a time that
// lower the squared error most, three levels deep, leaves of at least a twentieth of the rows. A
// leaf answers its mean, drawn towards `prior` by 20 rows. For the excess risk of conditional.h.
// Reference: Breiman, Friedman, Olshen, Stone, Classification and Regression Trees, 1984.
// Tested by tests/evaluation/conditional_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fcp {

class CoverageTree {
 public:
  // x: all rows of so many columns; `rows`: those that are fitted.
  CoverageTree(std::span<const double> x, size_t columns, std::span<const uint8_t> covered,
               const std::vector<size_t>& rows, double prior);

  double predict(std::span<const double> row) const;

 private:
  struct Branch {
    int column = -1;       // −1: a leaf
    double threshold = 0;  // x ≤ threshold goes left; NaN goes right
    double value = 0;
    int left = 0, right = 0;
  };

  int grow(std::span<const double> x, size_t columns, std::span<const uint8_t> covered,
           std::vector<size_t> rows, int depth);

  double prior_;
  size_t least_;  // rows of a leaf
  std::vector<Branch> branches_;
};

}  // namespace fcp
