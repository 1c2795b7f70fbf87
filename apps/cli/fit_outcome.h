// What `fcp fit` found, for people and for programs.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "fcp/fit/fit.h"

namespace fcp::cli {

// What came out, what to watch, how it was made, and what to type next: a line each.
std::string fit_text(const FitOutcome& result, const std::string& out, const std::string& report);

nlohmann::ordered_json fit_json(const FitOutcome& result, const std::string& out,
                                const std::string& report);

}  // namespace fcp::cli
