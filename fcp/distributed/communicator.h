// How the ranks of one job talk to each other. A rank is one process of `mpirun -n R fcp …`;
// without mpirun there is one rank and every operation is a copy. The interface is what fcp needs
// of MPI and no more: sums, minima and maxima over all ranks, small broadcasts and gathers, and
// bytes from one rank to another. All operations but send and receive are collective: every rank
// calls them, in the same order.
//
// Sums of doubles differ in their last bits between numbers of ranks. What must be bit-equal is
// counted (unsigned sums are exact), selected or gathered, never added as doubles.
//
// Tested by tests/distributed/.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fcp {

enum class Reduce { kSum, kMin, kMax };

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;  // 0 … size() - 1
  virtual int size() const = 0;

  // Each element becomes the sum, minimum or maximum of that element over all ranks. Spans have the
  // same length everywhere. Doubles must not be NaN where the minimum or maximum is asked.
  virtual void all_reduce(std::span<uint64_t> values, Reduce how) = 0;
  virtual void all_reduce(std::span<double> values, Reduce how) = 0;

  // `bytes` of rank `root` replaces that of all others, whatever its length.
  virtual void broadcast(std::string& bytes, int root) = 0;

  // On rank 0 the bytes of every rank, by rank; elsewhere empty. For what is small.
  virtual std::vector<std::string> gather(std::string_view bytes) = 0;

  // From this rank to another, and the other's side of it. Messages between two ranks arrive in the
  // order they were sent. A large message waits for its receiver, so nothing piles up there.
  virtual void send(std::string_view bytes, int to) = 0;
  virtual void receive(std::string& bytes, int from) = 0;

  virtual void barrier() = 0;  // returns when all ranks have called it

  // Ends all ranks at once, after one line on standard error that names this one; without a message
  // quietly. The serial communicator throws an Error instead: its caller is the whole job.
  [[noreturn]] virtual void abort(const std::string& message, int exit_code) = 0;
};

std::unique_ptr<Communicator> make_serial_communicator();

// Of the processes mpirun started; MPI ends with the communicator. An Error where fcp was built
// without MPI. At most one at a time.
std::unique_ptr<Communicator> make_mpi_communicator();
bool built_with_mpi();
// The MPI library's name and version, in one line; empty where fcp was built without MPI.
std::string mpi_library();

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

// Whether the environment is one that mpirun (or another starter of MPI processes) made.
bool started_by_mpirun();

// The body's result, which is this process's exit code. Started by mpirun but built without MPI:
// an Error where there are several ranks, because each would do the whole work.
int run_ranks(const std::function<int(Communicator&)>& body);

}  // namespace fcp
