// Flags made from the option table: --rank-weight for rank_weight, --not-randomized for a flag that
// is on by default.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "fcp/methods/options.h"

namespace fcp::cli {

// The flag of an option by its name, which need not be in the table.
std::string flag_name(const std::string& option);

// Declares the flag of one option, which is put into the request when it is parsed. `option` is an
// entry of the table, or a copy with other choices, range or help.
CLI::Option* add_option_flag(CLI::App& verb, MethodRequest& request, const Option& option);

// Declares the flags of all options that can be asked of any data.
void add_option_flags(CLI::App& verb, MethodRequest& request);

}  // namespace fcp::cli
