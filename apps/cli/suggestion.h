// What a user may have meant by a word that is not known.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace fcp::cli {

// "--dta is not an option; did you mean --data?" for the first of the arguments that looks like an
// option, is none of `verb` and is near to one; "" where there is none.
std::string did_you_mean(const std::vector<std::string>& arguments, const CLI::App& verb);

}  // namespace fcp::cli
