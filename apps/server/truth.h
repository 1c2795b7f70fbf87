// A truth that a client reports, and what became of it.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace fcp {

struct TruthReport {
  std::string id;
  int64_t row = 0;
  std::vector<float> truth;
};

struct TruthResult {
  std::string status;      // "accepted", "duplicate", "unknown" or "wrong"
  std::string error = {};  // more about it
  // NaN where the version that predicted is served no longer: the answer tells only whether it
  // covered the truth.
  double p_value = std::numeric_limits<double>::quiet_NaN();
  bool covered = false;
};

}  // namespace fcp
