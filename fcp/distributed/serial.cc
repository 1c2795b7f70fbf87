#include "fcp/base/error.h"
#include "fcp/distributed/communicator.h"

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

}  // namespace fcp
