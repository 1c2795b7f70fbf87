// A truth that a client reports, and what became of it.
#pragma once

#include <cstdint>
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
  double p_value = 0;
  bool covered = false;
};

}  // namespace fcp
