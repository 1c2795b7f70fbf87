#include "fcp/conformal/sort_scores.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace fcp {
namespace {

constexpr int kDigitBits = 11;
constexpr int kDigits = 6;  // 66 bits, of which 64 are there
constexpr size_t kValues = size_t{1} << kDigitBits;
constexpr size_t kFewest = 512;    // below, the counters cost more than they save
constexpr size_t kMost = 1 << 22;  // above, twice the memory is not to be had for nothing

constexpr uint64_t kSign = uint64_t{1} << 63;

// Bits whose order as integers is that of the numbers: a negative number has all of them flipped.
uint64_t ordered_bits(double number) {
  const auto bits = std::bit_cast<uint64_t>(number);
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

double number_of(uint64_t ordered) {
  return std::bit_cast<double>((ordered & kSign) != 0 ? ordered & ~kSign : ~ordered);
}

size_t digit_of(uint64_t key, int digit) {
  return static_cast<size_t>(key >> (digit * kDigitBits)) & (kValues - 1);
}

using Counts = std::array<std::array<size_t, kValues>, kDigits>;

Counts count_digits(const std::vector<uint64_t>& keys) {
  Counts counts{};
  for (const uint64_t key : keys) {
    for (int digit = 0; digit < kDigits; ++digit) ++counts[digit][digit_of(key, digit)];
  }
  return counts;
}

}  // namespace

void sort_scores(std::vector<double>& scores) {
  if (std::is_sorted(scores.begin(), scores.end())) return;
  if (scores.size() < kFewest || scores.size() > kMost) {
    return std::sort(scores.begin(), scores.end());
  }
  std::vector<uint64_t> keys(scores.size()), next(scores.size());
  std::transform(scores.begin(), scores.end(), keys.begin(), ordered_bits);
  Counts counts = count_digits(keys);
  for (int digit = 0; digit < kDigits; ++digit) {
    auto& places = counts[digit];
    if (places[digit_of(keys[0], digit)] == keys.size()) continue;  // the same in all
    size_t place = 0;
    for (size_t& count : places) place += std::exchange(count, place);
    for (const uint64_t key : keys) next[places[digit_of(key, digit)]++] = key;
    keys.swap(next);
  }
  std::transform(keys.begin(), keys.end(), scores.begin(), number_of);
}

}  // namespace fcp
