// Runs a job on all ranks, and ends all of them when one fails.
//
// A process that mpirun did not start is a job of one rank and does not touch MPI; its exceptions
// go on to the caller. Under mpirun an exception that leaves the body on any rank ends the job: one
// line on standard error,
//
//   fcp: rank 2 of 4: scores.npy row 17 …
//
// and exit code 1 (2 for a UsageError). The stack of the failing rank is unwound first, so its
// temporary files are gone. Where several ranks fail alike, for instance because all opened the
// same wrong file, the lowest is heard: each waits a tenth of a second per rank before it speaks,
// and by then the others have been told to end. Interrupts end the job quietly.
//
// mpirun adds a paragraph of its own about the end of the job; `mpirun -q` leaves it out.
// Tested by tests/distributed/test_mpirun.py and tests/distributed/without_mpi_test.cc.
#pragma once

#include <functional>

#include "fcp/distributed/communicator.h"

namespace fcp {

// Whether the environment is one that mpirun (or another starter of MPI processes) made.
bool started_by_mpirun();

// The body's result, which is this process's exit code. Started by mpirun but built without MPI:
// an Error where there are several ranks, because each would do the whole work.
int run_ranks(const std::function<int(Communicator&)>& body);

}  // namespace fcp
