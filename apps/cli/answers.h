// What the launcher (launcher.cc) says without fcp-core: the output of commands that is known when
// the program is built.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace fcp::cli {

// C++ source with the words and the output of each such command of `app`. `run` runs a command and
// gives its exit code; what it prints to std::cout is its output. An Error where one fails.
std::string answers_source(const CLI::App& app,
                           const std::function<int(const std::vector<std::string>&)>& run);

}  // namespace fcp::cli
