// Prediction regions: what a calibrated predictor answers for one row.
//
// A Box holds one interval for each of the K outputs of a regression; a LabelSet holds labels of a
// classification. Interval ends may be infinite, and an interval whose lower end exceeds its upper
// end is empty: both happen with a coverage guarantee and are reported, never repaired.
// Tested by tests/conformal/region_test.cc.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "fcp/base/error.h"

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

// One interval for each output; y belongs to the box if every output lies in its interval.
struct Box {
  std::vector<Interval> intervals;

  size_t outputs() const { return intervals.size(); }

  bool empty() const {
    return std::any_of(intervals.begin(), intervals.end(),
                       [](const Interval& interval) { return interval.empty(); });
  }

  bool contains(std::span<const double> y) const {
    if (y.size() != intervals.size()) {
      fail("a box of ", intervals.size(), " outputs was asked about a point of ", y.size());
    }
    for (size_t k = 0; k < y.size(); ++k) {
      if (!intervals[k].contains(y[k])) return false;
    }
    return true;
  }

  friend bool operator==(const Box&, const Box&) = default;
};

// A subset of the labels 0 … classes − 1.
class LabelSet {
 public:
  LabelSet() = default;
  explicit LabelSet(size_t classes) : member_(classes, false) {}
  explicit LabelSet(std::vector<bool> member) : member_(std::move(member)) {}

  void insert(size_t label) {
    if (label >= classes()) fail("label ", label, " is not one of the ", classes(), " classes");
    member_[label] = true;
  }

  bool contains(size_t label) const { return label < classes() && member_[label]; }
  size_t classes() const { return member_.size(); }
  size_t size() const {  // labels in the set
    return static_cast<size_t>(std::count(member_.begin(), member_.end(), true));
  }
  bool empty() const { return size() == 0; }

  friend bool operator==(const LabelSet&, const LabelSet&) = default;

 private:
  std::vector<bool> member_;
};

using Region = std::variant<Box, LabelSet>;

}  // namespace fcp
