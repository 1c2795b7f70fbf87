// Data that charts must draw although there is little, or little sense, in it.
#pragma once

#include <limits>
#include <vector>

#include "report_samples.h"

namespace fcp::testing {

inline std::vector<std::vector<double>> odd_samples() {
  constexpr double kHuge = std::numeric_limits<double>::max();
  return {{},
          {1},
          {kInfinity},
          {-kInfinity, kInfinity},
          {kInfinity, 1, 2},
          {3, 3, 3, 3},
          {0, 0},
          {-kHuge, kHuge},
          {kHuge},
          {std::numeric_limits<double>::denorm_min()},
          {kNaN},
          {1, 1, 1, 1, 1e9}};
}

}  // namespace fcp::testing
