// fcp-core, which does what the launcher (launcher.cc) does not answer by itself. Nothing else is
// here, so that all else compiles together with the verbs.
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "fcp/distributed/declared_ranks.h"

#include "apps/cli/program.h"

int main(int argc, char** argv) {
  const int code = fcp::cli::run_program(argc, argv);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which report at the end
  // Libraries take a tenth of a second to take down what the system takes back at once, and a CUDA
  // device two. Ranks of an MPI job say good-bye to each other.
  if (fcp::declared_ranks() == 0) {
    std::cout.flush();
    std::fflush(nullptr);
    std::_Exit(code);
  }
#endif
  return code;
}
