// How long distributed selection takes, under mpirun:
//
//   for n in 1 2 4; do mpirun -n $n selection_ranks [ROWS]; done
//
// ROWS absolute normals in all (default 10^7), the same whatever the number of ranks. The best of
// five repeats; time on the wall, from a barrier to the end of the slowest rank. Prints a row of a
// Markdown table and a hash of the answers, which must not depend on the ranks.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "fcp/base/hash.h"
#include "fcp/base/random.h"
#include "fcp/conformal/quantile.h"
#include "fcp/distributed/communicator.h"
#include "fcp/distributed/selection.h"

namespace fcp {
namespace {

constexpr size_t kBlock = 1000;  // rows with a seed of their own, so that any rank can make them

std::vector<double> make_scores(size_t first, size_t last) {
  std::vector<double> scores;
  for (size_t block = first; block < last; ++block) {
    Random random(block);
    for (size_t i = 0; i < kBlock; ++i) scores.push_back(std::abs(random.normal()));
  }
  return scores;
}

double best_seconds(Communicator& ranks, const std::function<void()>& work) {
  double best = std::numeric_limits<double>::infinity();
  for (int repeat = 0; repeat < 5; ++repeat) {
    ranks.barrier();
    const auto start = std::chrono::steady_clock::now();
    work();
    double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    ranks.all_reduce(std::span(&seconds, 1), Reduce::kMax);
    best = std::min(best, seconds);
  }
  return best;
}

int measure(Communicator& ranks, size_t rows) {
  const size_t blocks = rows / kBlock, rank = static_cast<size_t>(ranks.rank()),
               size = static_cast<size_t>(ranks.size());
  const auto scores = make_scores(blocks * rank / size, blocks * (rank + 1) / size);
  std::vector<uint64_t> keys, ks;
  for (const double score : scores) keys.push_back(ordered_key(score));
  for (const double alpha : {0.01, 0.05, 0.1, 0.2})
    ks.push_back(conformal_rank(Level(alpha), rows));
  std::vector<double> answers;
  const double select_seconds =
      best_seconds(ranks, [&] { answers = distributed_select(ranks, keys, ks); });
  if (ranks.rank() != 0) return 0;
  Sha256 hash;
  hash.add({reinterpret_cast<const char*>(answers.data()), answers.size() * sizeof(double)});
  std::printf("| %d | %.3f | %.8s |\n", ranks.size(), select_seconds, hash.hex().c_str());
  return 0;
}

}  // namespace
}  // namespace fcp

int main(int argc, char** argv) {
  const size_t rows = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10'000'000;
  return fcp::run_ranks([&](fcp::Communicator& ranks) { return fcp::measure(ranks, rows); });
}
