// Data from a pipe. Rows are read more than once (header, types, groups), which a pipe does not
// allow: what comes is put into a file, which is removed when the program ends.
#pragma once

#include <string>

namespace fcp::cli {

// The path of the file with all of standard input, which is read on the first call.
const std::string& standard_input_file();

}  // namespace fcp::cli
