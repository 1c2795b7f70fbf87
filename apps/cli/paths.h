// What a command writes must not be what it reads, nor two of its files one: found before anything
// is done, with links resolved.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace fcp::cli {

// Looks at the verb's own options once they are parsed. Two files to write that are one are bad
// usage, whatever else is said; a file to write that is also an input needs --force, which is
// declared here for the verbs that write a file.
void guard_paths(CLI::App& verb);

// Data from a pipe. Rows are read more than once (header, types, groups), which a pipe does not
// allow: what comes is put into a file, which is removed when the program ends.

// The path of the file with all of standard input, which is read on the first call.
const std::string& standard_input_file();

}  // namespace fcp::cli
