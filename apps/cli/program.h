// The program fcp: parses the command line, runs one verb, and turns what went wrong into one line
// and an exit code: 0 done, 1 the data or model is wrong, 2 bad usage, 3 an alarm, 130
// interrupted.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace fcp::cli {

int run_program(int argc, char** argv);

// How the program ends when memory runs out.

// Ends the process with one line and exit code 1, without the work that libraries do at exit:
// OpenBLAS would wait there for threads that wait for memory.
[[noreturn]] void end_out_of_memory();

// What a user may have meant by a word that is not known.

// "--dta is not an option; did you mean --data?" for the first of the arguments that looks like an
// option, is none of `verb` and is near to one; "" where there is none.
std::string did_you_mean(const std::vector<std::string>& arguments, const CLI::App& verb);

}  // namespace fcp::cli
