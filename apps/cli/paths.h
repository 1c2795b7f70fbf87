// What a command writes must not be what it reads, nor two of its files one: found before anything
// is done, with links resolved.
#pragma once

#include <CLI/CLI.hpp>

namespace fcp::cli {

// Looks at the verb's own options once they are parsed. Two files to write that are one are bad
// usage, whatever else is said; a file to write that is also an input needs --force, which is
// declared here for the verbs that write a file.
void guard_paths(CLI::App& verb);

}  // namespace fcp::cli
