// What `fcp --version` says.
#pragma once

#include <string>

namespace fcp::cli {

// "fcp 0.1.0"; with `json` also the compiler and the libraries it was built with, null for one that
// it was built without.
std::string version_text(bool json);

}  // namespace fcp::cli
