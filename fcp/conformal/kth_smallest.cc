#include "fcp/conformal/kth_smallest.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "fcp/base/lanes.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace fcp {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kLargestSample = 1 << 14;
constexpr size_t kUsualSample = 1 << 11;
constexpr size_t kFewNumbers = 1 << 12;  // below, selection at once is as fast
constexpr size_t kLooked = 1 << 12;      // at a time

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
  // Of few numbers every sixteenth, of many every 64th.
  const size_t usual = std::max(numbers.size() / 64, std::min(numbers.size() / 16, kUsualSample));
  std::vector<double> sample(std::min(kLargestSample, usual));
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
  size_t kept = 0;  // of `inside`, which is longer
  std::vector<double> inside{};
};

// Every number is written, and stays where it is inside: a branch for each could not be foretold.
void look_plain(std::span<const double> numbers, KthPass& pass) {
  const double low = pass.bracket.low, high = pass.bracket.high;
  double* const to = pass.inside.data();
  size_t up = 0, down = 0, kept = pass.kept;
  for (const double number : numbers) {
    const bool is_up = number >= low, is_down = number <= high;
    to[kept] = number;
    up += is_up ? 1 : 0;
    down += is_down ? 1 : 0;
    kept += static_cast<size_t>(is_up) & static_cast<size_t>(is_down);
  }
  pass.up += up;
  pass.down += down;
  pass.kept = kept;
}

#if defined(__x86_64__)
// Which halves of four doubles go where, so that those of the mask come first.
struct PackingOrders {
  alignas(32) int32_t halves[16][8] = {};
  uint8_t counts[16] = {};
};

constexpr PackingOrders packing_orders() {
  PackingOrders orders;
  for (int32_t mask = 0; mask < 16; ++mask) {
    size_t next = 0;
    for (int32_t place = 0; place < 4; ++place) {
      if ((mask >> place & 1) == 0) continue;
      orders.halves[mask][next++] = 2 * place;
      orders.halves[mask][next++] = 2 * place + 1;
    }
    orders.counts[mask] = static_cast<uint8_t>(next / 2);
  }
  return orders;
}

// The same, four numbers at a time.
FCP_AVX2 void look_avx2(std::span<const double> numbers, KthPass& pass) {
  static constexpr PackingOrders kOrders = packing_orders();
  const __m256d low = _mm256_set1_pd(pass.bracket.low), high = _mm256_set1_pd(pass.bracket.high);
  double* const to = pass.inside.data();
  __m256i up = _mm256_setzero_si256(), down = up;  // less 1 for each
  size_t kept = pass.kept, i = 0;
  for (; i + 4 <= numbers.size(); i += 4) {
    const __m256d some = _mm256_loadu_pd(numbers.data() + i);
    const __m256d is_up = _mm256_cmp_pd(some, low, _CMP_GE_OQ);
    const __m256d is_down = _mm256_cmp_pd(some, high, _CMP_LE_OQ);
    up = _mm256_add_epi64(up, _mm256_castpd_si256(is_up));
    down = _mm256_add_epi64(down, _mm256_castpd_si256(is_down));
    const int mask = _mm256_movemask_pd(_mm256_and_pd(is_up, is_down));
    const __m256i order = _mm256_load_si256(reinterpret_cast<const __m256i*>(kOrders.halves[mask]));
    const __m256i packed = _mm256_permutevar8x32_epi32(_mm256_castpd_si256(some), order);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + kept), packed);
    kept += kOrders.counts[mask];
  }
  int64_t ups[4], downs[4];
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(ups), up);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(downs), down);
  pass.up -= static_cast<size_t>(ups[0] + ups[1] + ups[2] + ups[3]);
  pass.down -= static_cast<size_t>(downs[0] + downs[1] + downs[2] + downs[3]);
  pass.kept = kept;
  look_plain(numbers.subspan(i), pass);
}
#else
void look_avx2(std::span<const double> numbers, KthPass& pass) { look_plain(numbers, pass); }
#endif

// Room for what is inside is made as it is needed, and for the numbers written behind it.
void look_at_all(std::span<const double> numbers, KthPass& pass) {
  const bool four = simd_width() >= 256;
  for (size_t first = 0; first < numbers.size(); first += kLooked) {
    const size_t room = pass.kept + kLooked + 4;
    if (pass.inside.size() < room) pass.inside.resize(std::max(room, 2 * pass.inside.size()));
    const auto some = numbers.subspan(first, std::min(kLooked, numbers.size() - first));
    four ? look_avx2(some, pass) : look_plain(some, pass);
  }
  pass.inside.resize(pass.kept);
}

}  // namespace

double kth_smallest(std::span<const double> numbers, size_t rank) {
  const bool few = numbers.size() < kFewNumbers;
  KthPass pass{few ? KthBracket{-kInfinite, kInfinite} : bracket_of(numbers, rank)};
  look_at_all(numbers, pass);
  std::vector<double>& inside = pass.inside;
  if (pass.up + pass.down - inside.size() < numbers.size()) return kNotANumber;
  const size_t below = numbers.size() - pass.up;
  if (rank > below && rank - below <= inside.size()) return select_in(inside, rank - below);
  std::vector<double> all(numbers.begin(), numbers.end());
  return select_in(all, rank);
}

}  // namespace fcp
