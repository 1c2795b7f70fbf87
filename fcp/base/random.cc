#include "fcp/base/random.h"

#include <bit>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

namespace fcp {

Random::Random(uint64_t seed) {
  for (uint64_t& word : state_) {  // splitmix64
    seed += 0x9e3779b97f4a7c15;
    uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    word = z ^ (z >> 31);
  }
}

uint64_t Random::bits() {  // xoshiro256**
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double Random::uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

double Random::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_normal_;
  }
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  const double angle = 2 * std::numbers::pi * uniform();
  spare_normal_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

uint64_t Random::below(uint64_t limit) {
  const uint64_t rejected = (0 - limit) % limit;  // 2^64 mod limit values would be drawn too often
  uint64_t draw = bits();
  while (draw < rejected) draw = bits();
  return draw % limit;
}

std::vector<size_t> Random::permutation(size_t n) {
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = n; i > 1; --i) std::swap(order[i - 1], order[below(i)]);
  return order;
}

}  // namespace fcp
