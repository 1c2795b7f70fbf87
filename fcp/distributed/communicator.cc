#include "fcp/distributed/communicator.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <thread>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/distributed/declared_ranks.h"

namespace fcp {
namespace {

// One rank: it already holds what all ranks together would.
class SerialCommunicator : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_reduce(std::span<uint64_t>, Reduce) override {}
  void all_reduce(std::span<double>, Reduce) override {}
  void broadcast(std::string&, int root) override { check(root); }
  std::vector<std::string> gather(std::string_view bytes) override { return {std::string(bytes)}; }
  void send(std::string_view, int to) override { fail_alone(to); }
  void receive(std::string&, int from) override { fail_alone(from); }
  void barrier() override {}
  void abort(const std::string& message, int) override { throw Error(message); }

 private:
  static void check(int rank) {
    if (rank != 0) fail_alone(rank);
  }
  [[noreturn]] static void fail_alone(int rank) {
    fail("there is no rank ", rank, " in a job of 1");
  }
};

}  // namespace

std::unique_ptr<Communicator> make_serial_communicator() {
  return std::make_unique<SerialCommunicator>();
}

namespace {

[[noreturn]] void end_job(Communicator& ranks, std::string message, int exit_code) {
  // libtorch's errors have their call stack behind the first lines.
  message.resize(std::min(message.size(), message.find("\nException raised from")));
  std::replace(message.begin(), message.end(), '\n', ' ');
  std::this_thread::sleep_for(std::chrono::milliseconds(100 * std::min(ranks.rank(), 20)));
  try {
    check_interrupted();
  } catch (const Interrupted&) {
    message.clear();  // another rank was faster, and this one is being ended for its sake
  }
  ranks.abort(message, exit_code);
  std::terminate();  // not reached; g++ does not see that a virtual function never returns
}

int run_or_end_job(Communicator& ranks, const std::function<int(Communicator&)>& body) {
  try {
    return body(ranks);
  } catch (const Interrupted& signal) {
    end_job(ranks, "", signal.exit_code());
  } catch (const UsageError& error) {
    end_job(ranks, error.what(), 2);
  } catch (const std::bad_alloc&) {
    end_job(ranks, "out of memory; try a smaller --batch, or fewer ranks on this machine", 1);
  } catch (const std::exception& error) {
    end_job(ranks, error.what(), 1);
  } catch (...) {
    end_job(ranks, "an exception of unknown type", 1);
  }
}

}  // namespace

bool started_by_mpirun() { return declared_ranks() > 0; }

int run_ranks(const std::function<int(Communicator&)>& body) {
  const bool alone = !built_with_mpi() && declared_ranks() == 1;
  if (!started_by_mpirun() || alone) return body(*make_serial_communicator());
  const std::unique_ptr<Communicator> ranks = make_mpi_communicator();
  return ranks->size() == 1 ? body(*ranks) : run_or_end_job(*ranks, body);
}

}  // namespace fcp
