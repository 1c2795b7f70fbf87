// Lengths of intervals: how much a covering region says.
//
// An infinite interval is legal and makes the mean length infinite, as it should; so that one such
// row does not hide all the others, the mean over the finite intervals stands beside it, and
// infinite and empty intervals are counted. An empty interval has length 0.
// Tested by tests/evaluate/measures/length_test.cc.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "fcp/level.h"

namespace fcp {

struct LengthSummary {
  double mean = 0;               // over all intervals; +∞ if any is infinite
  double mean_finite = 0;        // over the finite ones; +∞ if there is none
  std::optional<double> median;  // the midpoint of the two middle ones where their number is even
  double infinite_share = 0;
  double empty_share = 0;
};

// The running sums behind a LengthSummary.
struct LengthSums {
  double finite_sum = 0;
  size_t intervals = 0;
  size_t infinite = 0;
  size_t empty = 0;

  void add(double lower, double upper);
  // Of a length known as such, of one-sided bounds negative ones too; an empty interval has none.
  void add_length(double length, bool empty_interval);
  void add(const LengthSums& other);
  LengthSummary summary() const;  // without the median; at least one interval is required
};

// The median of at least one value, reordering them. Values may be infinite. O(n).
double median_of(std::span<double> values);

// The weights of the paper's weighted length, for rows of K pixels whose smoothed labels Y are in
// [0, 1]: w_j = |2 Y_j − 1| / Σ_j |2 Y_j − 1|, near zero where an object ends and Y is near 1/2. A
// row with Y = 1/2 throughout weighs all pixels equally. labels is [rows × outputs], row by row,
// and so is the result; each row of it sums to one.
std::vector<double> informative_weights(std::span<const double> labels, size_t outputs);

}  // namespace fcp
