// The communicator over MPI, written for Debian's OpenMPI; the only file that knows mpi.h.
//
// MPI counts with int: longer spans and messages go in pieces of 2^27 elements. A message is its
// length, then its bytes. Errors of MPI come back as codes and leave here as fcp::Error.
// Tested by tests/distributed/test_mpirun.py.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <mpi.h>

#include "fcp/base/error.h"
#include "fcp/distributed/communicator.h"

namespace fcp {
namespace {

constexpr size_t kLongestPiece = size_t{1} << 27;

void check_mpi(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail("MPI: ", what, " failed: ", std::string(text, static_cast<size_t>(length)));
}

MPI_Op mpi_op(Reduce how) {
  switch (how) {
    case Reduce::kSum:
      return MPI_SUM;
    case Reduce::kMin:
      return MPI_MIN;
    case Reduce::kMax:
      return MPI_MAX;
  }
  std::abort();
}

// Calls act(pointer, count) for consecutive pieces that MPI can count.
template <typename T, typename Act>
void in_pieces(T* data, size_t size, const Act& act) {
  for (size_t begin = 0; begin < size; begin += kLongestPiece) {
    act(data + begin, static_cast<int>(std::min(kLongestPiece, size - begin)));
  }
}

class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator() {
    int provided = 0;
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "start");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "rank");
    check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size_), "size");
  }
  ~MpiCommunicator() override { MPI_Finalize(); }
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void all_reduce(std::span<uint64_t> values, Reduce how) override {
    reduce_pieces(values, MPI_UINT64_T, how);
  }
  void all_reduce(std::span<double> values, Reduce how) override {
    reduce_pieces(values, MPI_DOUBLE, how);
  }

  void broadcast(std::string& bytes, int root) override {
    uint64_t length = bytes.size();
    check_mpi(MPI_Bcast(&length, 1, MPI_UINT64_T, root, MPI_COMM_WORLD), "broadcast");
    bytes.resize(length);
    in_pieces(bytes.data(), bytes.size(), [&](char* data, int count) {
      check_mpi(MPI_Bcast(data, count, MPI_BYTE, root, MPI_COMM_WORLD), "broadcast");
    });
  }

  std::vector<std::string> gather(std::string_view bytes) override {
    if (rank_ != 0) {
      send(bytes, 0);
      return {};
    }
    std::vector<std::string> all(static_cast<size_t>(size_));
    all[0] = bytes;
    for (int from = 1; from < size_; ++from) receive(all[static_cast<size_t>(from)], from);
    return all;
  }

  void send(std::string_view bytes, int to) override {
    const uint64_t length = bytes.size();
    check_mpi(MPI_Send(&length, 1, MPI_UINT64_T, to, 0, MPI_COMM_WORLD), "send");
    in_pieces(bytes.data(), bytes.size(), [&](const char* data, int count) {
      check_mpi(MPI_Send(data, count, MPI_BYTE, to, 0, MPI_COMM_WORLD), "send");
    });
  }

  void receive(std::string& bytes, int from) override {
    uint64_t length = 0;
    check_mpi(MPI_Recv(&length, 1, MPI_UINT64_T, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
              "receive");
    bytes.resize(length);
    in_pieces(bytes.data(), bytes.size(), [&](char* data, int count) {
      check_mpi(MPI_Recv(data, count, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                "receive");
    });
  }

  void barrier() override { check_mpi(MPI_Barrier(MPI_COMM_WORLD), "barrier"); }

  void abort(const std::string& message, int exit_code) override {
    if (!message.empty()) {
      // One write, so that lines of several ranks do not mix.
      const std::string line = concat("fcp: rank ", rank_, " of ", size_, ": ", message, "\n");
      std::fwrite(line.data(), 1, line.size(), stderr);
      std::fflush(stderr);
    }
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    std::_Exit(exit_code);
  }

 private:
  template <typename T>
  void reduce_pieces(std::span<T> values, MPI_Datatype type, Reduce how) {
    in_pieces(values.data(), values.size(), [&](T* data, int count) {
      check_mpi(MPI_Allreduce(MPI_IN_PLACE, data, count, type, mpi_op(how), MPI_COMM_WORLD),
                "reduce");
    });
  }

  int rank_ = 0;
  int size_ = 1;
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator() {
  return std::make_unique<MpiCommunicator>();
}

bool built_with_mpi() { return true; }

std::string mpi_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  check_mpi(MPI_Get_library_version(text, &length), "version");
  const std::string whole(text, static_cast<size_t>(length));
  return whole.substr(0, whole.find_first_of(",\n"));  // who built it, and where, follows
}

}  // namespace fcp
