// How many ranks the starter of this process says there are: OpenMPI's mpirun, or others that speak
// PMI. 0: it was not started so. PMIx (srun --mpi=pmix) tells a process its rank but not their
// number: several, to be safe. Needs no MPI.
#pragma once

#include <algorithm>
#include <cstdlib>

namespace fcp {

inline int declared_ranks() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const char* text = std::getenv(name)) return std::max(1, std::atoi(text));
  }
  return std::getenv("PMIX_RANK") != nullptr ? 2 : 0;
}

}  // namespace fcp
