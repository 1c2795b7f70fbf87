// SHA-256 (FIPS 180-4), to say in a calibrated predictor which data it was calibrated on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fcp {

class Sha256 {
 public:
  void add(std::string_view bytes);
  std::string hex();  // 64 hexadecimal digits; ends the message

 private:
  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> block_{};
  size_t filled_ = 0;
  uint64_t length_ = 0;
};

}  // namespace fcp
