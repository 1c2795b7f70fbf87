// A job for test_mpirun.py. Exit code 0: done; a wrong result is an Error, and so ends the job.
//
//   ranks_program check        communicator and selection against serial references
//   ranks_program throw R      rank R throws; the others wait for it in vain
//   ranks_program throw_all    every rank throws the same
//   ranks_program usage R      rank R throws a UsageError
//   ranks_program kill R       rank R is ended by a signal while rank 0 has an output file open
//   ranks_program mpi          exit code 0 if this build has MPI, 3 if not
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <string>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/output_file.h"
#include "fcp/distributed/communicator.h"
#include "fcp/distributed/selection.h"

#include "tests/distributed/spread_scores.h"

namespace fcp {
namespace {

void expect(bool holds, const std::string& what) {
  if (!holds) fail("wrong: ", what);
}

void check_reductions(Communicator& ranks) {
  const auto rank = static_cast<uint64_t>(ranks.rank());
  const auto size = static_cast<uint64_t>(ranks.size());
  for (const Reduce how : {Reduce::kSum, Reduce::kMin, Reduce::kMax}) {
    uint64_t counts[] = {rank, 1, size - rank};
    double numbers[] = {-0.5 * static_cast<double>(rank), 2};
    ranks.all_reduce(counts, how);
    ranks.all_reduce(numbers, how);
    const uint64_t ranks_sum = size * (size - 1) / 2;
    const bool sum = how == Reduce::kSum;
    const bool min = how == Reduce::kMin;
    expect(counts[0] == (sum ? ranks_sum : min ? 0 : size - 1), "first count");
    expect(counts[1] == (sum ? size : 1), "second count");
    expect(counts[2] == (sum ? size * size - ranks_sum : min ? 1 : size), "third count");
    expect(numbers[0] == -0.5 * static_cast<double>(sum   ? ranks_sum
                                                    : min ? size - 1
                                                          : 0),
           "number");
    expect(numbers[1] == (sum ? 2.0 * static_cast<double>(size) : 2), "second number");
  }
}

void check_messages(Communicator& ranks) {
  const auto own = [](int rank) { return std::string(static_cast<size_t>(1000 * rank), 'x'); };
  for (int root = 0; root < ranks.size(); ++root) {
    std::string bytes = own(ranks.rank());
    ranks.broadcast(bytes, root);
    expect(bytes == own(root), "broadcast");
  }
  const std::vector<std::string> all = ranks.gather(own(ranks.rank()));
  expect(all.size() == (ranks.rank() == 0 ? static_cast<size_t>(ranks.size()) : 0), "gather");
  for (size_t rank = 0; rank < all.size(); ++rank) {
    expect(all[rank] == own(static_cast<int>(rank)), "gathered");
  }
  ranks.barrier();
}

void check_scores_over_ranks(Communicator& ranks) {
  Random random(static_cast<uint64_t>(ranks.size()));  // the same on every rank
  for (int repeat = 0; repeat < 200; ++repeat) {
    const SpreadScores spread = spread_scores(random, ranks.size(), 3000);
    const auto& mine = spread.by_rank[static_cast<size_t>(ranks.rank())];
    const uint64_t ks[] = {1, 1 + random.below(spread.all.size()), spread.all.size()};
    const std::vector<double> found = distributed_select(ranks, keys_of(mine), ks);
    for (size_t i = 0; i < found.size(); ++i) {
      const double expected = kth_smallest(spread.all, ks[i]);
      expect(std::memcmp(&found[i], &expected, 8) == 0, concat("selection ", repeat));
    }
  }
}

int check_all(Communicator& ranks) {
  check_reductions(ranks);
  check_messages(ranks);
  check_scores_over_ranks(ranks);
  if (ranks.rank() == 0) std::cout << "checked on " << ranks.size() << " ranks\n";
  return 0;
}

int die_of_signal(Communicator& ranks, int which) {
  std::string bytes;
  ranks.barrier();
  if (ranks.rank() == which) std::raise(SIGKILL);
  if (ranks.rank() != 0) ranks.barrier();
  OutputFile artifact("artifact");
  artifact.write("half of it");
  ranks.receive(bytes, which);
  artifact.commit();
  return 0;
}

int run_program(const std::string& what, int which) {
  if (what == "mpi") return built_with_mpi() ? 0 : 3;
  return run_ranks([&](Communicator& ranks) {
    if (what == "check") return check_all(ranks);
    if (what == "kill") return die_of_signal(ranks, which);
    ranks.barrier();
    if (what == "throw_all") fail("scores.npy is\nmissing");
    if (ranks.rank() == which && what == "throw") fail("row 17 of scores.npy is NaN");
    if (ranks.rank() == which && what == "usage") throw UsageError("no such option");
    ranks.barrier();
    return 0;
  });
}

}  // namespace
}  // namespace fcp

int main(int argc, char** argv) try {
  fcp::catch_interrupts();
  return fcp::run_program(argc > 1 ? argv[1] : "", argc > 2 ? std::stoi(argv[2]) : -1);
} catch (const std::exception& error) {
  std::fprintf(stderr, "fcp: %s\n", error.what());
  return 1;
}
