#include "fcp/conformal/sort_scores.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "fcp/base/parallel.h"

namespace fcp {
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
