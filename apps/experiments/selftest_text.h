// What `selftest` finds, as JSON and as text.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "apps/experiments/selftest.h"

namespace fcp {

nlohmann::ordered_json selftest_json(const std::vector<SelftestCheck>& checks,
                                     const SelftestOptions& options);

// A line per score and calibration, with the coverage in each world.
std::string selftest_text(const std::vector<SelftestCheck>& checks);

}  // namespace fcp
