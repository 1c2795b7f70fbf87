// What `fcp --version` says.
#pragma once

#include <string>

namespace fcp::cli {

// "fcp 0.3.0"; with `json` also the compiler and, as a bill of materials, the libraries it was
// built with, null for one that it was built without, and their licenses (SPDX).
std::string version_text(bool json);

}  // namespace fcp::cli
