// The program fcp: parses the command line, runs one verb, and turns what went wrong into one line
// and an exit code: 0 done, 1 the data or model is wrong, 2 bad usage, 3 an alarm, 130
// interrupted.
#pragma once

namespace fcp::cli {

int run_program(int argc, char** argv);

}  // namespace fcp::cli
