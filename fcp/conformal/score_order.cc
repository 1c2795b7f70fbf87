#include "fcp/conformal/score_order.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "fcp/base/lanes.h"
#include "fcp/base/parallel.h"
#include "fcp/conformal/quantile.h"

namespace fcp {
namespace {

constexpr size_t kSelections = 3;  // take about as long as sorting does

}  // namespace

ScoreOrder::ScoreOrder(std::vector<double> scores)
    : scores_(std::move(scores)), is_sorted_(std::is_sorted(scores_.begin(), scores_.end())) {
  check_scores(scores_);
}

double ScoreOrder::at(size_t place) const {
  if (is_sorted_.load(std::memory_order_acquire)) return scores_[place];
  const std::lock_guard lock(mutex_);
  for (const auto& [known, score] : found_) {
    if (known == place) return score;
  }
  if (found_.size() == kSelections) sort_held();
  const double score = is_sorted_ ? scores_[place] : kth_smallest(scores_, place + 1);
  if (!is_sorted_) found_.emplace_back(place, score);
  return score;
}

std::span<const double> ScoreOrder::sorted() const {
  if (is_sorted_.load(std::memory_order_acquire)) return scores_;
  const std::lock_guard lock(mutex_);
  sort_held();
  return scores_;
}

void ScoreOrder::sort_held() const {
  if (is_sorted_) return;
  sort_scores(scores_);
  is_sorted_.store(true, std::memory_order_release);
}

namespace {

constexpr size_t kDigitBits = 11;
constexpr size_t kDigits = 3;
constexpr size_t kLowBits = 64 - kDigits * kDigitBits;  // in which keys of one run differ
constexpr size_t kValues = size_t{1} << kDigitBits;
constexpr size_t kFewest = 512;      // below, the counters cost more than they save
constexpr size_t kMost = 1 << 22;    // above, twice the memory is not to be had for nothing
constexpr size_t kShared = 1 << 16;  // below, a thread costs more than it does
constexpr size_t kSample = 1023;     // of which the median parts what threads share

constexpr uint64_t kSign = uint64_t{1} << 63;

// Bits whose order as integers is that of the numbers: a negative number has all of them flipped.
uint64_t ordered_bits(double number) {
  const auto bits = std::bit_cast<uint64_t>(number);
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

double number_of(uint64_t ordered) {
  return std::bit_cast<double>((ordered & kSign) != 0 ? ordered & ~kSign : ~ordered);
}

size_t digit_of(uint64_t key, size_t digit) {
  return static_cast<size_t>(key >> (kLowBits + digit * kDigitBits)) & (kValues - 1);
}

using Counts = std::array<std::array<uint32_t, kValues>, kDigits>;

Counts count_digits(std::span<const double> scores) {
  Counts counts{};
  for (const double score : scores) {
    const uint64_t key = ordered_bits(score);
    for (size_t digit = 0; digit < kDigits; ++digit) ++counts[digit][digit_of(key, digit)];
  }
  return counts;
}

// One pass: what `key_at` gives goes to its place by this digit, through `put`.
template <typename KeyAt, typename Put>
void place_by_digit(Counts& counts, size_t digit, size_t size, const KeyAt& key_at,
                    const Put& put) {
  auto& places = counts[digit];
  uint32_t place = 0;
  for (uint32_t& count : places) place += std::exchange(count, place);
  for (size_t i = 0; i < size; ++i) {
    const uint64_t key = key_at(i);
    put(places[digit_of(key, digit)]++, key);
  }
}

// Of keys in the order of their digits: sorts the runs of equal digits that are not sorted.
void sort_runs(std::vector<uint64_t>& keys) {
  for (size_t i = 1; i < keys.size(); ++i) {
    if (keys[i - 1] <= keys[i]) continue;
    const uint64_t digits = keys[i] >> kLowBits;
    size_t first = i - 1, last = i + 1;
    while (first > 0 && keys[first - 1] >> kLowBits == digits) --first;
    while (last < keys.size() && keys[last] >> kLowBits == digits) ++last;
    std::sort(keys.begin() + static_cast<std::ptrdiff_t>(first),
              keys.begin() + static_cast<std::ptrdiff_t>(last));
    i = last;
  }
}

void sort_by_digits(std::span<double> scores) {
  // There and back and there again: the scores themselves hold the keys between.
  Counts counts = count_digits(scores);
  std::vector<uint64_t> keys(scores.size());
  const auto put_key = [&](size_t place, uint64_t key) { keys[place] = key; };
  const auto score_key = [&](size_t i) { return ordered_bits(scores[i]); };
  static_assert(kDigits == 3);
  place_by_digit(counts, 0, scores.size(), score_key, put_key);
  place_by_digit(
      counts, 1, scores.size(), [&](size_t i) { return keys[i]; },
      [&](size_t place, uint64_t key) { scores[place] = number_of(key); });
  place_by_digit(counts, 2, scores.size(), score_key, put_key);
  sort_runs(keys);
  std::transform(keys.begin(), keys.end(), scores.begin(), number_of);
}

double sample_median(std::span<const double> scores) {
  std::array<double, kSample> sample;
  for (size_t i = 0; i < kSample; ++i) sample[i] = scores[scores.size() / kSample * i];
  const auto middle = sample.begin() + kSample / 2;
  std::nth_element(sample.begin(), middle, sample.end());
  return *middle;
}

void sort_shared(std::span<double> scores, size_t threads, bool by_digits) {
  if (threads < 2 || scores.size() < kShared) {
    if (by_digits && scores.size() >= kFewest) return sort_by_digits(scores);
    return std::sort(scores.begin(), scores.end());
  }
  const double median = sample_median(scores);
  const auto middle =
      std::partition(scores.begin(), scores.end(), [=](double score) { return score < median; });
  const auto small = static_cast<size_t>(middle - scores.begin());
  parallel_rows(2, 1, 2, [&](size_t first, size_t last) {
    for (size_t half = first; half < last; ++half) {
      sort_shared(half == 0 ? scores.first(small) : scores.subspan(small),
                  half == 0 ? threads / 2 : threads - threads / 2, by_digits);
    }
  });
}

}  // namespace

void sort_scores(std::vector<double>& scores, size_t threads) {
  if (std::is_sorted(scores.begin(), scores.end())) return;
  sort_shared(scores, threads, /*by_digits=*/scores.size() <= kMost);
}

}  // namespace fcp

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
