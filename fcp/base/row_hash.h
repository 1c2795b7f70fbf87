// A number that a row of features determines: FNV-1a over its bytes, started from a seed. It makes
// random choices that belong to a row (the share of aps) the same wherever and whenever the row
// is seen, while different rows get unrelated ones.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fcp {

template <typename Number>
uint64_t row_hash(const Number* values, size_t count, uint64_t seed) {
  uint64_t hash = 14695981039346656037ull ^ (seed * 0x9e3779b97f4a7c15ull);
  const auto* bytes = reinterpret_cast<const unsigned char*>(values);
  for (size_t i = 0; i < count * sizeof(Number); ++i) hash = (hash ^ bytes[i]) * 1099511628211ull;
  return hash;
}

}  // namespace fcp
