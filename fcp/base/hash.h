// SHA-256, by libcrypto: it tells in an artifact which rows it was calibrated on.
// Tested by tests/base/hash_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace fcp {

class Sha256 {
 public:
  Sha256();
  ~Sha256();

  void add(std::string_view bytes);
  std::string hex();  // 64 hexadecimal digits; ends the message

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

// Of one piece.
std::string sha256_hex(std::string_view bytes);

// A number that a row of features determines: FNV-1a over its bytes, started from a seed. It makes
// random choices that belong to a row (the share of aps) the same wherever and whenever the row
// is seen, while different rows get unrelated ones.

template <typename Number>
uint64_t row_hash(const Number* values, size_t count, uint64_t seed) {
  uint64_t hash = 14695981039346656037ull ^ (seed * 0x9e3779b97f4a7c15ull);
  const auto* bytes = reinterpret_cast<const unsigned char*>(values);
  for (size_t i = 0; i < count * sizeof(Number); ++i) hash = (hash ^ bytes[i]) * 1099511628211ull;
  return hash;
}

// The same of each row of a matrix. Four rows at a time: a hash waits for the product before it,
// and four of them do not wait for each other.
template <typename Number>
void row_hashes(const Number* values, size_t rows, size_t width, uint64_t seed, uint64_t* hashes) {
  constexpr size_t kAtOnce = 4;
  const size_t size = width * sizeof(Number);
  const auto* bytes = reinterpret_cast<const unsigned char*>(values);
  size_t row = 0;
  for (; row + kAtOnce <= rows; row += kAtOnce, bytes += kAtOnce * size) {
    uint64_t hash[kAtOnce];
    for (uint64_t& one : hash) one = row_hash(values, 0, seed);
    for (size_t i = 0; i < size; ++i) {
      for (size_t k = 0; k < kAtOnce; ++k) {
        hash[k] = (hash[k] ^ bytes[k * size + i]) * 1099511628211ull;
      }
    }
    for (size_t k = 0; k < kAtOnce; ++k) hashes[row + k] = hash[k];
  }
  for (; row < rows; ++row) hashes[row] = row_hash(values + row * width, width, seed);
}

}  // namespace fcp
