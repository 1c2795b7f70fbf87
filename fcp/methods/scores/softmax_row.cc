#include "fcp/methods/scores/softmax_row.h"

#include <cmath>
#include <cstddef>
#include <limits>

#include "fcp/base/lane_functions.h"

namespace fcp {
namespace {

constexpr float kNoLogit = -std::numeric_limits<float>::infinity();

template <typename Doubles>
constexpr size_t kDoublesIn = sizeof(typename Doubles::Type) / sizeof(double);

// The largest of all logits but NaN; −∞ where there are none.
template <typename Doubles>
FCP_KERNEL float largest_logit(const float* logits, size_t count) {
  typedef typename Doubles::Floats Floats;
  constexpr size_t kStep = kDoublesIn<Doubles>;
  Floats largest = Floats{} + kNoLogit;
  size_t k = 0;
  for (; k + kStep <= count; k += kStep) {
    const Floats some = *reinterpret_cast<const Floats*>(logits + k);
    largest = some > largest ? some : largest;
  }
  float most = kNoLogit;
  for (size_t i = 0; i < kStep; ++i) most = largest[i] > most ? largest[i] : most;
  for (; k < count; ++k) most = logits[k] > most ? logits[k] : most;
  return most;
}

// Exponentials of `count` logits from `logits` on, at most a vector of them; what is beyond is 0.
template <typename Doubles>
FCP_KERNEL void exp_some(const float* logits, size_t count, double temperature, double largest,
                         typename Doubles::Type& out) {
  typedef typename Doubles::Floats Floats;
  typedef typename Doubles::Type Vector;
  Floats some;
  if (count >= kDoublesIn<Doubles>) {
    some = *reinterpret_cast<const Floats*>(logits);
  } else {
    some = Floats{} + kNoLogit;
    for (size_t i = 0; i < count; ++i) some[i] = logits[i];
  }
  out = __builtin_convertvector(some, Vector);
  if (temperature != 1) out /= temperature;
  out -= largest;
  exp_below_zero<Doubles>(out);
}

template <typename Doubles>
FCP_KERNEL double softmax(std::span<const float> logits, double temperature, double* shares) {
  typedef typename Doubles::Type Vector;
  constexpr size_t kStep = kDoublesIn<Doubles>;
  const double largest =
      static_cast<double>(largest_logit<Doubles>(logits.data(), logits.size())) / temperature;
  Vector sums = {}, some;
  size_t k = 0;
  for (; k + kStep <= logits.size(); k += kStep) {
    exp_some<Doubles>(logits.data() + k, kStep, temperature, largest, some);
    sums += some;
    *reinterpret_cast<Vector*>(shares + k) = some;
  }
  if (k < logits.size()) {
    exp_some<Doubles>(logits.data() + k, logits.size() - k, temperature, largest, some);
    sums += some;
    for (size_t i = 0; k + i < logits.size(); ++i) shares[k + i] = some[i];
  }
  double sum = 0;
  for (size_t i = 0; i < kStep; ++i) sum += sums[i];
  for (k = 0; k + kStep <= logits.size(); k += kStep) {
    *reinterpret_cast<Vector*>(shares + k) /= sum;
  }
  for (; k < logits.size(); ++k) shares[k] /= sum;
  return sum;
}

FCP_AVX512 double softmax_avx512(std::span<const float> z, double temperature, double* shares) {
  return softmax<Doubles8>(z, temperature, shares);
}
FCP_AVX2 double softmax_avx2(std::span<const float> z, double temperature, double* shares) {
  return softmax<Doubles4>(z, temperature, shares);
}
double softmax_plain(std::span<const float> z, double temperature, double* shares) {
  return softmax<Doubles2>(z, temperature, shares);
}

FCP_AVX2 float largest_avx2(std::span<const float> z) {
  return largest_logit<Doubles8>(z.data(), z.size());
}
float largest_plain(std::span<const float> z) {
  return largest_logit<Doubles4>(z.data(), z.size());
}

}  // namespace

bool softmax_row(std::span<const float> logits, double temperature, double* shares) {
  static const auto run = simd_width() == 512   ? softmax_avx512
                          : simd_width() == 256 ? softmax_avx2
                                                : softmax_plain;
  return !std::isnan(run(logits, temperature, shares));
}

int64_t first_largest(std::span<const float> logits) {
  static const auto run = simd_width() >= 256 ? largest_avx2 : largest_plain;
  const float largest = run(logits);
  size_t place = 0;
  while (place < logits.size() && logits[place] != largest) ++place;
  return place < logits.size() ? static_cast<int64_t>(place) : 0;
}

}  // namespace fcp
