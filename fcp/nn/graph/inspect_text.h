// What `inspect` finds, as JSON and as text.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "fcp/nn/graph/inspect.h"

namespace fcp {

nlohmann::ordered_json network_json(const NetworkReport& report);
std::string network_text(const NetworkReport& report);  // a line of facts, then the tables

}  // namespace fcp
