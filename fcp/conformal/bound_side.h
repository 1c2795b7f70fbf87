// Which ends an interval has: both, or one alone, a one-sided prediction bound, whose whole
// miscoverage alpha lies on its side. The other end is infinite, or that of a known support.
#pragma once

#include <string>

namespace fcp {

enum class BoundSide { kBoth, kLower, kUpper };

inline std::string side_name(BoundSide side) {
  if (side == BoundSide::kBoth) return "both";
  return side == BoundSide::kLower ? "lower" : "upper";
}

// Of one of the names above.
inline BoundSide parse_side(const std::string& name) {
  if (name == "lower") return BoundSide::kLower;
  return name == "upper" ? BoundSide::kUpper : BoundSide::kBoth;
}

}  // namespace fcp
