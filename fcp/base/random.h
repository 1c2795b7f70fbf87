// Random numbers that are the same on every machine and compiler for the same seed.
//
// The generator is xoshiro256** seeded by splitmix64; the distributions are written out here
// because the standard library leaves theirs to the implementation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fcp {

class Random {
 public:
  explicit Random(uint64_t seed);

  uint64_t bits();                            // uniform over all 64-bit numbers
  double uniform();                           // uniform in [0, 1), 53 bits
  double normal();                            // standard normal, by Box and Muller
  uint64_t below(uint64_t limit);             // uniform in [0, limit), without bias; limit > 0
  std::vector<size_t> permutation(size_t n);  // of 0 … n - 1, by Fisher and Yates

 private:
  std::array<uint64_t, 4> state_;
  double spare_normal_ = 0;
  bool has_spare_ = false;
};

}  // namespace fcp
