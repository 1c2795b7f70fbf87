// Stands in for mpi.cc where fcp is built without MPI.
#include "fcp/base/error.h"
#include "fcp/distributed/communicator.h"

namespace fcp {

std::unique_ptr<Communicator> make_mpi_communicator() {
  fail("fcp was built without MPI; expected to be run without mpirun, or built where the package ",
       "libopenmpi-dev is installed");
}

bool built_with_mpi() { return false; }

std::string mpi_library() { return {}; }

}  // namespace fcp
