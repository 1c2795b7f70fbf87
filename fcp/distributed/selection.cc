#include "fcp/distributed/selection.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fcp/base/error.h"
#include "fcp/conformal/rank.h"
#include "fcp/distributed/refinement.h"

namespace fcp {
namespace {

std::vector<uint64_t> checked_keys(const Communicator& ranks, std::span<const double> scores,
                                   size_t first_row) {
  check_scores(ranks, scores, first_row);
  std::vector<uint64_t> keys(scores.size());
  std::transform(scores.begin(), scores.end(), keys.begin(), ordered_key);
  return keys;
}

uint64_t total_rows(Communicator& ranks, size_t mine) {
  uint64_t total = mine;
  ranks.all_reduce(std::span(&total, 1), Reduce::kSum);
  return total;
}

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

void check_scores(const Communicator& ranks, std::span<const double> scores, size_t first_row) {
  for (size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) {
      fail("score of row ", first_row + i, " on rank ", ranks.rank(), " is NaN; expected a number");
    }
  }
}

std::vector<double> distributed_select(Communicator& ranks, std::span<const double> scores,
                                       std::span<const uint64_t> ks,
                                       const RankSelectionOptions& options) {
  return distributed_select_keys(ranks, checked_keys(ranks, scores, options.first_row), ks,
                                 options);
}

std::vector<double> distributed_select_keys(Communicator& ranks, std::vector<uint64_t> keys,
                                            std::span<const uint64_t> ks,
                                            const RankSelectionOptions& options) {
  const uint64_t total = total_rows(ranks, keys.size());
  for (const uint64_t k : ks) {
    if (k < 1 || k > total) fail("there is no ", k, "-th smallest of ", total, " scores");
  }
  if (ks.empty()) return {};
  return select_keys(ranks, std::move(keys), ks, options.bits);
}

std::vector<double> distributed_quantiles(Communicator& ranks, std::span<const double> scores,
                                          std::span<const Level> levels,
                                          const RankSelectionOptions& options) {
  std::vector<uint64_t> keys = checked_keys(ranks, scores, options.first_row);
  const uint64_t total = total_rows(ranks, scores.size());
  std::vector<double> quantiles(levels.size(), std::numeric_limits<double>::infinity());
  std::vector<uint64_t> ks;
  std::vector<size_t> places;
  for (size_t i = 0; i < levels.size(); ++i) {
    const uint64_t k = conformal_rank(levels[i], total);
    if (k > total) continue;
    ks.push_back(k);
    places.push_back(i);
  }
  if (ks.empty()) return quantiles;
  const std::vector<double> found = select_keys(ranks, std::move(keys), ks, options.bits);
  for (size_t i = 0; i < places.size(); ++i) quantiles[places[i]] = found[i];
  return quantiles;
}

}  // namespace fcp
