#include "apps/cli/out_of_memory.h"

#include <iostream>

#include <unistd.h>

namespace fcp::cli {

void end_out_of_memory() {
  std::cerr << "fcp: out of memory; try a smaller --batch or fewer --threads, or allow more memory "
               "(ulimit -v)\n";
  _exit(1);
}

}  // namespace fcp::cli
