#include "fcp/conformal/kth_smallest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace fcp {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kSample = 1 << 14;
constexpr size_t kFewNumbers = 16 * kSample;  // below, selection at once is as fast

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
  std::vector<double> sample(kSample);
  const size_t stride = numbers.size() / kSample;
  for (size_t i = 0; i < kSample; ++i) {
    const double number = numbers[i * stride];
    sample[i] = std::isnan(number) ? 0 : number;
  }
  const double share = static_cast<double>(rank) / static_cast<double>(numbers.size());
  const double middle = share * kSample;
  const double margin = 5 * std::sqrt(kSample * share * (1 - share)) + 1;
  KthBracket bracket = {-kInfinite, kInfinite};
  if (middle - margin >= 1) bracket.low = select_in(sample, static_cast<size_t>(middle - margin));
  if (middle + margin <= kSample) {
    bracket.high = select_in(sample, static_cast<size_t>(middle + margin));
  }
  return bracket;
}

}  // namespace

double kth_smallest(std::span<const double> numbers, size_t rank) {
  const KthBracket bracket =
      numbers.size() < kFewNumbers ? KthBracket{-kInfinite, kInfinite} : bracket_of(numbers, rank);
  std::vector<double> inside;
  inside.reserve(numbers.size() < kFewNumbers ? numbers.size() : numbers.size() / 16);
  size_t below = 0, above = 0;  // a NaN is counted in both
  for (const double number : numbers) {
    const auto up = static_cast<size_t>(number >= bracket.low);
    const auto down = static_cast<size_t>(number <= bracket.high);
    below += 1 - up;
    above += 1 - down;
    if ((up & down) != 0) inside.push_back(number);  // one branch, hardly ever taken
  }
  if (below + above + inside.size() > numbers.size()) return kNotANumber;
  if (rank > below && rank - below <= inside.size()) return select_in(inside, rank - below);
  std::vector<double> all(numbers.begin(), numbers.end());
  return select_in(all, rank);
}

}  // namespace fcp
