// What SHA-256 does with its blocks of 64 bytes, in two forms: plain, and by the instructions that
// x86-64 processors have for it since 2017, which is several times as fast: the rows of a
// calibration are all hashed. Both give the same state. Tested by tests/base/sha256_test.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace fcp {

using Sha256State = std::array<uint32_t, 8>;

void compress_plain(Sha256State& state, const unsigned char* blocks, size_t count);

bool has_sha_instructions();
// Only where the processor has them.
void compress_fast(Sha256State& state, const unsigned char* blocks, size_t count);

}  // namespace fcp
