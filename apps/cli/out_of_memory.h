// How the program ends when memory runs out.
#pragma once

namespace fcp::cli {

// Ends the process with one line and exit code 1, without the work that libraries do at exit:
// OpenBLAS would wait there for threads that wait for memory.
[[noreturn]] void end_out_of_memory();

}  // namespace fcp::cli
