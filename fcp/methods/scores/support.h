// A known support of y: the range that it can lie in, and whether it is a whole number.
//
//   region'(v, r) = region(v, r) ∩ S        score'(v, y) = score(v, y) of a y in S, else +∞
//
// An intersection with S loses no y that can be true: coverage stays as it is, and no interval gets
// longer. Of whole numbers, ends move inwards to the nearest one; an infinite radius gives S. A y
// outside S contradicts what was said: it is missed at every radius, and calibration refuses it.
//
// As text "0:", "0:100" or ":100", ends included. Data are read as float32, so the ends of S are
// those of float32 that lie around it.
// Tested by tests/methods/scores/support_test.cc.
#pragma once

#include <memory>
#include <string>

#include "fcp/base/special_numbers.h"
#include "fcp/methods/scores/score.h"

namespace fcp {

struct Support {
  double lower = -kInfinity;
  double upper = kInfinity;
  bool integer = false;

  // Whether it says anything.
  bool known() const { return integer || lower > -kInfinity || upper < kInfinity; }
  bool holds(double y) const;
};

// An OptionError says what was found where the text is none. Empty: all numbers.
Support parse_support(const std::string& text, bool integer);

std::unique_ptr<Score> with_support(std::unique_ptr<Score> score, const Support& support);

}  // namespace fcp
