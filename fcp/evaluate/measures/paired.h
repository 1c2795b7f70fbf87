// Two predictors on the same rows: the difference of a number, row by row, with a confidence
// interval, which is far narrower than that of two separate means.
//
//   mean d ± z · sd(d) / √n,   d_i = a_i − b_i,   z = 1.96 for 95 %
//
// by the central limit theorem; rows are independent. Infinite numbers have no difference: a pair
// with one is counted and left out.
// Tested by tests/evaluate/measures/paired_test.cc.
#pragma once

#include <cstddef>
#include <span>

namespace fcp {

struct PairedDifference {
  double mean_a = 0, mean_b = 0;  // over the pairs that count
  double difference = 0;          // mean_a − mean_b
  double low = 0, high = 0;       // of the difference, 95 %
  size_t rows = 0;                // pairs that count
  size_t infinite_a = 0, infinite_b = 0;

  bool certain() const { return rows > 1 && (low > 0 || high < 0); }
};

// Lists of the same length; a NaN is an Error that names the row.
PairedDifference paired_difference(std::span<const double> a, std::span<const double> b);

}  // namespace fcp
