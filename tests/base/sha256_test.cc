#include "fcp/base/sha256.h"

#include <vector>

#include <gtest/gtest.h>

#include "fcp/base/random.h"
#include "fcp/base/sha256_blocks.h"

namespace fcp {
namespace {

std::string hash_of(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.hex();
}

TEST(Sha256, MatchesThePublishedExamples) {  // FIPS 180-4, examples of the NIST
  EXPECT_EQ(hash_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hash_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hash_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hash_of(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, InstructionsOfTheProcessorGiveTheSame) {
  if (!has_sha_instructions()) GTEST_SKIP() << "this processor has no instructions for SHA-256";
  Random random(1);
  std::vector<unsigned char> bytes(64 * 20);
  Sha256State plain = {}, fast = {};
  for (int repeat = 0; repeat < 200; ++repeat) {
    for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random.below(256));
    const size_t count = random.below(21);
    compress_plain(plain, bytes.data(), count);
    compress_fast(fast, bytes.data(), count);
    ASSERT_EQ(fast, plain);
  }
}

TEST(Sha256, DoesNotDependOnHowTheBytesArrive) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) bytes += static_cast<char>(i * 7);
  for (size_t size = 1; size < 200; size += 13) {
    Sha256 hash;
    for (size_t at = 0; at < bytes.size(); at += size) {
      hash.add(std::string_view(bytes).substr(at, size));
    }
    EXPECT_EQ(hash.hex(), hash_of(bytes)) << size;
  }
}

}  // namespace
}  // namespace fcp
