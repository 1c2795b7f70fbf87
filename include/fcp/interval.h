// A prediction interval. Its ends may be infinite, and an interval whose lower end exceeds its
// upper end is empty: both happen with a coverage guarantee and are reported, never repaired.
// Tested by tests/conformal/interval_test.cc.
#pragma once

#include <limits>

namespace fcp {

// [lower, upper], ends included. By default the whole line.
struct Interval {
  double lower = -std::numeric_limits<double>::infinity();
  double upper = std::numeric_limits<double>::infinity();

  bool empty() const { return lower > upper; }
  bool contains(double y) const { return lower <= y && y <= upper; }

  // 0 where empty; +∞ where an end is infinite. A single point has length 0, at infinity too,
  // where upper - lower would be NaN.
  double length() const { return lower < upper ? upper - lower : 0.0; }

  friend bool operator==(const Interval&, const Interval&) = default;
};

}  // namespace fcp
