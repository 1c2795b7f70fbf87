#include "fcp/distributed/selection.h"

#include <algorithm>

#include "fcp/base/error.h"
#include "fcp/distributed/refinement.h"

namespace fcp {
namespace {

// Of keys, at least one of them on some rank.
std::vector<double> select_keys(Communicator& ranks, std::vector<uint64_t> keys,
                                std::span<const uint64_t> ks, int bits) {
  // The smallest key and the complement of the largest, both as minima.
  uint64_t ends[2] = {~uint64_t{0}, ~uint64_t{0}};
  for (const uint64_t key : keys) {
    ends[0] = std::min(ends[0], key);
    ends[1] = std::min(ends[1], ~key);
  }
  ranks.all_reduce(ends, Reduce::kMin);
  Refinement refinement(ends[0], ~ends[1], ks, bits);
  std::vector<uint64_t> counts;
  while (!refinement.done()) {
    counts.assign(refinement.intervals() * refinement.buckets(), 0);
    refinement.count(keys, counts);
    ranks.all_reduce(counts, Reduce::kSum);
    refinement.narrow(counts);
  }
  std::vector<double> found;
  for (const uint64_t key : refinement.found()) found.push_back(from_ordered_key(key));
  return found;
}

}  // namespace

std::vector<double> distributed_select(Communicator& ranks, std::vector<uint64_t> keys,
                                       std::span<const uint64_t> ks, int bits) {
  uint64_t total = keys.size();
  ranks.all_reduce(std::span(&total, 1), Reduce::kSum);
  for (const uint64_t k : ks) {
    if (k < 1 || k > total) fail("there is no ", k, "-th smallest of ", total, " scores");
  }
  if (ks.empty()) return {};
  return select_keys(ranks, std::move(keys), ks, bits);
}

}  // namespace fcp
