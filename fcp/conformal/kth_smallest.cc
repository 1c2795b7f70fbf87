#include "fcp/conformal/kth_smallest.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "fcp/base/lanes.h"

namespace fcp {
namespace {

typedef double Eight __attribute__((vector_size(64), aligned(8), may_alias));
typedef int64_t EightMarks __attribute__((vector_size(64)));  // 0 or −1 each
typedef int8_t EightBytes __attribute__((vector_size(8)));

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kLargestSample = 1 << 14;
constexpr size_t kSampled = 16;                             // of fewer, every so manyth number
constexpr size_t kFewNumbers = 1 << 12;                     // below, selection at once is as fast
constexpr size_t kManyNumbers = kSampled * kLargestSample;  // above, few are inside

double select_in(std::vector<double>& numbers, size_t rank) {
  const auto kth = numbers.begin() + static_cast<std::ptrdiff_t>(rank - 1);
  std::nth_element(numbers.begin(), kth, numbers.end());
  return *kth;
}

struct KthBracket {
  double low, high;
};

// Five deviations of the sample's own rank to either side.
KthBracket bracket_of(std::span<const double> numbers, size_t rank) {
  std::vector<double> sample(std::min(kLargestSample, numbers.size() / kSampled));
  const size_t stride = numbers.size() / sample.size();
  for (size_t i = 0; i < sample.size(); ++i) {
    const double number = numbers[i * stride];
    sample[i] = std::isnan(number) ? 0 : number;
  }
  const double share = static_cast<double>(rank) / static_cast<double>(numbers.size());
  const auto count = static_cast<double>(sample.size());
  const double middle = share * count;
  const double margin = 5 * std::sqrt(count * share * (1 - share)) + 1;
  KthBracket bracket = {-kInfinite, kInfinite};
  if (middle - margin >= 1) bracket.low = select_in(sample, static_cast<size_t>(middle - margin));
  if (middle + margin <= count) {
    bracket.high = select_in(sample, static_cast<size_t>(middle + margin));
  }
  return bracket;
}

struct KthPass {
  KthBracket bracket;
  size_t up = 0;    // numbers ≥ low
  size_t down = 0;  // numbers ≤ high; a NaN is neither
  std::vector<double> inside{};
};

// Eight numbers are compared at once; those inside, hardly ever one, are told by the bytes of a
// word that are not 0.
FCP_KERNEL void look_at(std::span<const double> numbers, KthPass& pass) {
  const double low = pass.bracket.low, high = pass.bracket.high;
  EightMarks up = {}, down = {};  // less 1 for each
  size_t i = 0;
  for (; i + 8 <= numbers.size(); i += 8) {
    const Eight& some = *reinterpret_cast<const Eight*>(numbers.data() + i);
    const EightMarks is_up = some >= low, is_down = some <= high;
    up += is_up;
    down += is_down;
    const EightBytes inside = __builtin_convertvector(is_up & is_down, EightBytes);
    uint64_t found = std::bit_cast<uint64_t>(inside) & 0x0101010101010101;
    for (; found != 0; found &= found - 1) {
      pass.inside.push_back(numbers[i + static_cast<size_t>(std::countr_zero(found)) / 8]);
    }
  }
  for (size_t lane = 0; lane < 8; ++lane) {
    pass.up -= static_cast<size_t>(up[lane]);
    pass.down -= static_cast<size_t>(down[lane]);
  }
  for (; i < numbers.size(); ++i) {
    const bool is_up = numbers[i] >= low, is_down = numbers[i] <= high;
    pass.up += is_up ? 1 : 0;
    pass.down += is_down ? 1 : 0;
    if (is_up && is_down) pass.inside.push_back(numbers[i]);
  }
}

// The same of numbers of which so many are inside that a branch for each could not be foretold:
// every number is written, and stays where it is inside.
void look_without_branches(std::span<const double> numbers, KthPass& pass) {
  const double low = pass.bracket.low, high = pass.bracket.high;
  pass.inside.resize(numbers.size());
  double* to = pass.inside.data();
  size_t up = 0, down = 0, kept = 0;
  for (const double number : numbers) {
    const bool is_up = number >= low, is_down = number <= high;
    to[kept] = number;
    up += is_up ? 1 : 0;
    down += is_down ? 1 : 0;
    kept += static_cast<size_t>(is_up) & static_cast<size_t>(is_down);
  }
  pass.up = up;
  pass.down = down;
  pass.inside.resize(kept);
}

FCP_AVX512 void look_avx512(std::span<const double> numbers, KthPass& pass) {
  look_at(numbers, pass);
}
FCP_AVX2 void look_avx2(std::span<const double> numbers, KthPass& pass) { look_at(numbers, pass); }
void look_plain(std::span<const double> numbers, KthPass& pass) { look_at(numbers, pass); }

}  // namespace

double kth_smallest(std::span<const double> numbers, size_t rank) {
  const bool few = numbers.size() < kFewNumbers, many = numbers.size() >= kManyNumbers;
  KthPass pass{few ? KthBracket{-kInfinite, kInfinite} : bracket_of(numbers, rank)};
  std::vector<double>& inside = pass.inside;
  if (many) inside.reserve(numbers.size() / 16);
  const int width = simd_width();
  (!many          ? look_without_branches
   : width == 512 ? look_avx512
   : width == 256 ? look_avx2
                  : look_plain)(numbers, pass);
  if (pass.up + pass.down - inside.size() < numbers.size()) return kNotANumber;
  const size_t below = numbers.size() - pass.up;
  if (rank > below && rank - below <= inside.size()) return select_in(inside, rank - below);
  std::vector<double> all(numbers.begin(), numbers.end());
  return select_in(all, rank);
}

}  // namespace fcp
