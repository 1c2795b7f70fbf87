// The conformal quantile of scores that change little from one call to the next, as they do from
// step to step of a search: looked for near the last one. One pass counts what is outside a window
// around it, and the few scores inside are selected from; where the quantile has left the window,
// all are. Always exactly conformal_quantile (quantile.h), errors included.
// Tested by tests/conformal/quantile_test.cc.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "fcp/level.h"

namespace fcp {

class FollowingQuantile {
 public:
  explicit FollowingQuantile(const Level& level) : level_(level) {}

  double of(std::span<const double> scores);

 private:
  std::optional<double> near_last(std::span<const double> scores);

  Level level_;
  double last_ = std::numeric_limits<double>::quiet_NaN();
  double window_ = 0;  // to either side
  std::vector<double> inside_;
};

}  // namespace fcp
