// The version of fcp: of the headers as macros, of the library that is linked as a function.
#pragma once

// The build and the Python package read it here.
#define FCP_VERSION "0.3.0"
#define FCP_VERSION_MAJOR 0
#define FCP_VERSION_MINOR 3
#define FCP_VERSION_PATCH 0

namespace fcp {

// "0.3.0". Thread-safe; never an error.
const char* version();

}  // namespace fcp
