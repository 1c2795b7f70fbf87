#include "fcp/distributed/selection.h"

#include <algorithm>

#include "fcp/base/error.h"

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

Refinement::Refinement(uint64_t lowest, uint64_t highest, std::span<const uint64_t> ks, int bits)
    : starts_{lowest}, bits_(bits), width_(std::bit_width(highest - lowest)) {
  if (bits < 1 || bits > 16) fail("selection by ", bits, " bits a round; expected 1 to 16");
  for (const uint64_t k : ks) queries_.push_back({k, queries_.size(), 0});
  std::stable_sort(queries_.begin(), queries_.end(),
                   [](const Query& a, const Query& b) { return a.k < b.k; });
}

void Refinement::count(std::vector<uint64_t>& keys, std::span<uint64_t> counts) const {
  const int shift = bucket_width();
  size_t kept = 0;
  for (const uint64_t key : keys) {
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), key);
    if (after == starts_.begin()) continue;
    const uint64_t offset = key - *(after - 1);
    if (width_ < 64 && offset >> width_ != 0) continue;
    const auto interval = static_cast<size_t>(after - starts_.begin()) - 1;
    ++counts[interval * buckets() + (offset >> shift)];
    keys[kept++] = key;
  }
  keys.resize(kept);
}

void Refinement::narrow(std::span<const uint64_t> counts) {
  const size_t per_interval = buckets();
  const int next_width = bucket_width();
  std::vector<uint64_t> starts;
  for (Query& query : queries_) {
    const uint64_t* const bucket_counts = counts.data() + query.interval * per_interval;
    uint64_t bucket = 0;
    while (bucket + 1 < per_interval && bucket_counts[bucket] < query.k) {
      query.k -= bucket_counts[bucket++];
    }
    const uint64_t start = starts_[query.interval] + (bucket << next_width);
    // Ascending k means ascending intervals, so a new one goes to the end.
    if (starts.empty() || starts.back() != start) starts.push_back(start);
    query.interval = starts.size() - 1;
  }
  starts_ = std::move(starts);
  width_ = next_width;
}

std::vector<uint64_t> Refinement::found() const {
  std::vector<uint64_t> keys(queries_.size());
  for (const Query& query : queries_) keys[query.place] = starts_[query.interval];
  return keys;
}

}  // namespace fcp
