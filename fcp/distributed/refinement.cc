#include "fcp/distributed/refinement.h"

#include <algorithm>

#include "fcp/base/error.h"

namespace fcp {

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
