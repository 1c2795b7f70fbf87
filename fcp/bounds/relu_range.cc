#include "fcp/bounds/relu_range.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "fcp/base/lanes.h"

namespace fcp {
namespace {

constexpr float kUnbounded = std::numeric_limits<float>::infinity();
constexpr int64_t kInfinityKey = 0x7f800000;  // the bit pattern of the float32 +∞
constexpr int kNewtonSteps = 8;

// One end of one output around one row: Σ on_high · high + on_low · low + shift.
struct RangeEnd {
  const float* hidden;
  const float* reach;
  const float* on_high;
  const float* on_low;
  float shift;
  size_t width;
};

// Neither ever inlined: one and the same code must give the end wherever it is asked for.
FCP_KERNEL float end_body(const RangeEnd& end, float radius) {
  Lanes sum{};
  for (size_t j = 0; j < end.width; j += kLanes) {
    const Lanes move = radius * lanes(end.reach + j);
    const Lanes high = lanes(end.hidden + j) + move, low = lanes(end.hidden + j) - move;
    sum += lanes(end.on_high + j) * (high <= 0 ? Lanes{} : high);
    sum += lanes(end.on_low + j) * (low <= 0 ? Lanes{} : low);
  }
  return sum_of(sum) + end.shift;
}

// The slope of the end in the radius.
FCP_KERNEL float slope_body(const RangeEnd& end, float radius) {
  Lanes sum{};
  for (size_t j = 0; j < end.width; j += kLanes) {
    const Lanes move = radius * lanes(end.reach + j);
    const Lanes high = lanes(end.hidden + j) + move, low = lanes(end.hidden + j) - move;
    const Lanes by_high = lanes(end.on_high + j) * lanes(end.reach + j);
    const Lanes by_low = lanes(end.on_low + j) * lanes(end.reach + j);
    sum += (high > 0 ? by_high : Lanes{}) - (low > 0 ? by_low : Lanes{});
  }
  return sum_of(sum);
}

using EndFunction = float (*)(const RangeEnd& end, float radius);
FCP_AVX512 [[gnu::noinline]] float end_avx512(const RangeEnd& e, float r) { return end_body(e, r); }
FCP_AVX2 [[gnu::noinline]] float end_avx2(const RangeEnd& e, float r) { return end_body(e, r); }
[[gnu::noinline]] float end_plain(const RangeEnd& e, float r) { return end_body(e, r); }
FCP_AVX512 float slope_avx512(const RangeEnd& e, float r) { return slope_body(e, r); }
FCP_AVX2 float slope_avx2(const RangeEnd& e, float r) { return slope_body(e, r); }
float slope_plain(const RangeEnd& e, float r) { return slope_body(e, r); }

const EndFunction end_at = simd_width() == 512   ? end_avx512
                           : simd_width() == 256 ? end_avx2
                                                 : end_plain;
const EndFunction slope_at = simd_width() == 512   ? slope_avx512
                             : simd_width() == 256 ? slope_avx2
                                                   : slope_plain;

RangeEnd upper_end(const ReluRange& range, const HiddenRows& rows, size_t row, size_t output) {
  const size_t width = range.head.hidden_width;
  return {rows.hidden + row * width,     rows.reach,
          &range.rising[output * width], &range.falling[output * width],
          range.head.b2[output],         width};
}

RangeEnd lower_end(const ReluRange& range, const HiddenRows& rows, size_t row, size_t output) {
  RangeEnd end = upper_end(range, rows, row, output);
  std::swap(end.on_high, end.on_low);
  return end;
}

// An end on its way to a number `wanted` that lies `sign` (±1) of it at radius 0.
struct Approach {
  RangeEnd end;
  double wanted;
  double sign;
  double widening;

  // How much is still missing at the radius; what is not a number is unbounded and misses nothing.
  double missing(float radius) const {
    const double reached =
        static_cast<double>(end_at(end, radius)) + sign * static_cast<double>(radius) * widening;
    return sign * (wanted - reached);
  }
  bool arrived(int64_t key) const {
    return !(missing(std::bit_cast<float>(static_cast<int32_t>(key))) > 0);
  }
};

// A radius near the one wanted: Newton's steps from 0, the first of which is the linearised score.
double guess_radius(const Approach& approach) {
  double radius = 0;
  for (int step = 0; step < kNewtonSteps; ++step) {
    const auto at = static_cast<float>(radius);
    const double slope =
        approach.sign * static_cast<double>(slope_at(approach.end, at)) + approach.widening;
    if (!(slope > 0)) return 2 * radius;
    const double next = std::max(0.0, radius + approach.missing(at) / slope);
    if (std::abs(next - radius) <= 1e-7 * radius) return next;
    radius = next;
  }
  return radius;
}

// The smallest key at which the end has arrived. Looks around the guess, ever farther, until the
// answer is enclosed, and bisects.
int64_t smallest_key(const Approach& approach, double guess) {
  const auto nearest = static_cast<float>(guess < 3e38 ? guess : 3e38);
  const int64_t first = std::bit_cast<int32_t>(nearest);
  int64_t below = -1, above = kInfinityKey;
  const bool arrived = approach.arrived(first);
  (arrived ? above : below) = first;
  for (int64_t reach = 2; above - below > 1; reach *= 4) {
    const int64_t probe = arrived ? above - reach : below + reach;
    if (probe <= below || probe >= above) break;
    const bool there = approach.arrived(probe);
    (there ? above : below) = probe;
    if (there != arrived) break;
  }
  while (above - below > 1) {
    const int64_t middle = below + (above - below) / 2;
    (approach.arrived(middle) ? above : below) = middle;
  }
  return above;
}

double radius_reaching(const ReluRange& range, const HiddenRows& rows, size_t row, size_t output,
                       double y, double widening) {
  const RangeEnd upper = upper_end(range, rows, row, output);
  const double answer = static_cast<double>(end_at(upper, 0));
  if (std::isnan(y) || std::isnan(answer)) return std::numeric_limits<double>::quiet_NaN();
  if (y == answer) return 0;
  const Approach approach = {y > answer ? upper : lower_end(range, rows, row, output), y,
                             y > answer ? 1.0 : -1.0, widening};
  const int64_t key = smallest_key(approach, guess_radius(approach));
  if (key == kInfinityKey) return std::numeric_limits<double>::infinity();
  return static_cast<double>(std::bit_cast<float>(static_cast<int32_t>(key)));
}

}  // namespace

ReluRange make_relu_range(const ReluHead& head) {
  ReluRange range;
  range.head = make_relu_rows(head);
  range.rising = padded_rows(head.w2.clamp_min(0), range.head.hidden_width);
  range.falling = padded_rows(head.w2.clamp_max(0), range.head.hidden_width);
  return range;
}

std::vector<float> unit_reach(const ReluRows& head, Norm norm, const float* scale) {
  std::vector<float> reach(head.hidden_width);
  for (size_t i = 0; i < head.hidden; ++i) {
    double sum = 0, largest = 0;
    for (size_t d = 0; d < head.features; ++d) {
      const double weight = std::abs(static_cast<double>(head.w1[i * head.feature_width + d]) *
                                     (scale == nullptr ? 1.0 : static_cast<double>(scale[d])));
      sum += norm == Norm::kTwo ? weight * weight : weight;
      largest = std::max(largest, weight);
    }
    reach[i] = static_cast<float>(norm == Norm::kOne   ? largest
                                  : norm == Norm::kTwo ? std::sqrt(sum)
                                                       : sum);
  }
  return reach;
}

void ranges_at(const ReluRange& range, const HiddenRows& rows, const float* radius, float* lower,
               float* upper) {
  const size_t outputs = range.head.outputs;
  for (size_t row = 0; row < rows.rows; ++row) {
    for (size_t k = 0; k < outputs; ++k) {
      const float low = end_at(lower_end(range, rows, row, k), radius[row]);
      const float high = end_at(upper_end(range, rows, row, k), radius[row]);
      lower[row * outputs + k] = std::isnan(low) ? -kUnbounded : low;
      upper[row * outputs + k] = std::isnan(high) ? kUnbounded : high;
    }
  }
}

void radii_reaching(const ReluRange& range, const HiddenRows& rows, const double* truth,
                    double widening, double* radius) {
  const size_t outputs = range.head.outputs;
  for (size_t row = 0; row < rows.rows; ++row) {
    double largest = 0;
    for (size_t k = 0; k < outputs; ++k) {
      const double own = radius_reaching(range, rows, row, k, truth[row * outputs + k], widening);
      largest = own > largest || std::isnan(own) ? own : largest;
      if (std::isnan(own)) break;
    }
    radius[row] = largest;
  }
}

}  // namespace fcp
