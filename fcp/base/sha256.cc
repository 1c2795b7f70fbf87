#include "fcp/base/sha256.h"

#include <algorithm>

#include "fcp/base/sha256_blocks.h"

namespace fcp {
namespace {

void compress(Sha256State& state, const unsigned char* blocks, size_t count) {
  static const bool fast = has_sha_instructions();
  (fast ? compress_fast : compress_plain)(state, blocks, count);
}

}  // namespace

void Sha256::add(std::string_view bytes) {
  length_ += bytes.size();
  for (size_t i = 0; i < bytes.size();) {
    if (filled_ == 0 && bytes.size() - i >= block_.size()) {
      const size_t whole = (bytes.size() - i) / block_.size();
      compress(state_, reinterpret_cast<const unsigned char*>(bytes.data()) + i, whole);
      i += whole * block_.size();
      continue;
    }
    const size_t count = std::min(block_.size() - filled_, bytes.size() - i);
    std::copy_n(bytes.data() + i, count, block_.data() + filled_);
    filled_ += count;
    i += count;
    if (filled_ == block_.size()) {
      compress(state_, block_.data(), 1);
      filled_ = 0;
    }
  }
}

std::string Sha256::hex() {
  const uint64_t bits = length_ * 8;
  std::string padding(1, '\x80');
  padding.resize(1 + (119 - filled_) % 64, '\0');
  for (int shift = 56; shift >= 0; shift -= 8) padding += static_cast<char>(bits >> shift & 0xff);
  add(padding);
  std::string text;
  for (const uint32_t word : state_) {
    for (int shift = 28; shift >= 0; shift -= 4) text += "0123456789abcdef"[word >> shift & 0xf];
  }
  return text;
}

}  // namespace fcp
