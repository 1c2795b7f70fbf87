// +∞: a legal radius, end and length everywhere in fcp.
#pragma once

#include <limits>

namespace fcp {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace fcp
