#include "fcp/search/relu_walk.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "fcp/base/lanes.h"

namespace fcp {
namespace {

constexpr float kFar = std::numeric_limits<float>::infinity();

// What one row needs beside its own numbers; used again for the next.
struct WalkScratch {
  explicit WalkScratch(const ReluWalk& walk, int steps)
      : q(walk.head.hidden_width),
        z(walk.head.feature_width),
        active(walk.head.hidden_width),
        units(walk.head.hidden_width),
        weights(walk.head.hidden_width),
        stops(static_cast<size_t>(steps)) {}

  std::vector<float> q, z;
  std::vector<int32_t> active;  // −1 where p > 0
  std::vector<uint32_t> units;  // that flipped, and what they add to Dw₂
  std::vector<float> weights;
  std::vector<double> stops;  // T after each step of a stretch
};

struct WalkWork {
  const ReluWalk& walk;
  const ReluWalkers& walkers;
  int steps;
  const DistanceTrace& trace;
  WalkScratch scratch;
};

// Brings D up to date with p, and q and z with D.
FCP_KERNEL void flip(const ReluWalk& walk, const float* p, WalkScratch& scratch) {
  const ReluRows& head = walk.head;
  LaneMask flipped{};
  for (size_t j = 0; j < head.hidden_width; j += kLanes) {
    const LaneMask now = lanes(p + j) > 0;
    flipped |= now ^ *reinterpret_cast<const LaneMask*>(&scratch.active[j]);
  }
  int32_t any = 0;
  for (size_t lane = 0; lane < kLanes; ++lane) any |= flipped[lane];
  if (any == 0) return;
  size_t count = 0;
  for (size_t i = 0; i < head.hidden; ++i) {
    const int32_t now = p[i] > 0 ? -1 : 0;
    scratch.units[count] = static_cast<uint32_t>(i);
    scratch.weights[count] = now != 0 ? head.w2[i] : -head.w2[i];
    count += now != scratch.active[i] ? 1 : 0;
    scratch.active[i] = now;
  }
  const WeightedRows some{scratch.units.data(), scratch.weights.data(), count};
  add_rows(scratch.q.data(), walk.kernel.data(), head.hidden_width, some);
  add_rows(scratch.z.data(), head.w1.data(), head.feature_width, some);
}

// w₂·max(0, p) + b₂; not a number where some p is not.
FCP_KERNEL float answer(const ReluRows& head, const float* p) {
  Lanes sum{};
  for (size_t j = 0; j < head.hidden_width; j += kLanes) {
    const Lanes& unit = lanes(p + j);
    sum += lanes(&head.w2[j]) * (unit <= 0 ? Lanes{} : unit);
  }
  return sum_of(sum) + head.b2[0];
}

struct Stretch {
  float low, high;
};

// No p − T q changes its sign for low < T < high.
FCP_KERNEL Stretch straight_stretch(const float* p, const float* q, size_t width) {
  Lanes high = Lanes{} + kFar, back = Lanes{} + kFar;  // back: −low
  for (size_t j = 0; j < width; j += kLanes) {
    const Lanes at = lanes(p + j) / lanes(q + j);  // not a number for padding: 0 / 0
    const Lanes behind = -at;
    const Lanes ahead = at >= 0 ? at : Lanes{} + kFar;
    const Lanes past = at < 0 ? behind : Lanes{} + kFar;
    high = ahead < high ? ahead : high;
    back = past < back ? past : back;
  }
  return {largest_of(-back), -largest_of(-high)};
}

FCP_KERNEL float squared(const float* z, size_t width) {
  Lanes sum{};
  for (size_t j = 0; j < width; j += kLanes) sum += lanes(z + j) * lanes(z + j);
  return sum_of(sum);
}

// ‖moved − T z‖
FCP_KERNEL float distance(const float* moved, const float* z, float t, size_t width,
                          DistanceOrder order) {
  Lanes result{};
  for (size_t j = 0; j < width; j += kLanes) {
    const Lanes at = lanes(moved + j) - t * lanes(z + j);
    if (order == DistanceOrder::kEuclidean) {
      result += at * at;
      continue;
    }
    const Lanes size = at < 0 ? -at : at;
    if (order == DistanceOrder::kSum) {
      result += size;
    } else {
      result = result > size ? result : size;  // size where it is not a number
    }
  }
  if (order == DistanceOrder::kLargest) return largest_of(result);
  return order == DistanceOrder::kSum ? sum_of(result) : std::sqrt(sum_of(result));
}

FCP_KERNEL void advance(float* from, const float* direction, float t, size_t width) {
  for (size_t j = 0; j < width; j += kLanes) lanes(from + j) -= t * lanes(direction + j);
}

FCP_KERNEL void walk_row(WalkWork& work, size_t row) {
  const ReluWalk& walk = work.walk;
  const ReluRows& head = walk.head;
  WalkScratch& scratch = work.scratch;
  float* p = work.walkers.hidden + row * head.hidden_width;
  float* moved = work.walkers.moved + row * head.feature_width;
  const float *q = scratch.q.data(), *z = scratch.z.data();
  std::fill(scratch.q.begin(), scratch.q.end(), 0.0f);
  std::fill(scratch.z.begin(), scratch.z.end(), 0.0f);
  std::fill(scratch.active.begin(), scratch.active.end(), 0);
  for (int done = 0; done < work.steps;) {
    flip(walk, p, scratch);
    const double residual = static_cast<double>(answer(head, p)) - work.walkers.truth[row];
    const double shrink = 1 - walk.rate * static_cast<double>(squared(z, head.feature_width));
    const Stretch stretch = straight_stretch(p, q, head.hidden_width);
    double t = 0, step = walk.rate * residual;
    int count = 0;
    do {
      t += step;
      step *= shrink;
      scratch.stops[static_cast<size_t>(count++)] = t;
    } while (done + count < work.steps && t > stretch.low && t < stretch.high);
    if (work.trace.distances != nullptr && !work.trace.last_only) {
      for (int i = 0; i < count; ++i) {
        const auto at = static_cast<float>(scratch.stops[static_cast<size_t>(i)]);
        work.trace.distances[static_cast<size_t>(done + i) * work.trace.stride + row] =
            distance(moved, z, at, head.feature_width, work.trace.order);
      }
    }
    advance(p, q, static_cast<float>(t), head.hidden_width);
    advance(moved, z, static_cast<float>(t), head.feature_width);
    done += count;
  }
  if (work.trace.distances != nullptr && work.trace.last_only) {
    work.trace.distances[row] = distance(moved, z, 0, head.feature_width, work.trace.order);
  }
}

FCP_KERNEL void walk_all(WalkWork& work) {
  for (size_t row = 0; row < work.walkers.rows; ++row) walk_row(work, row);
}

FCP_AVX512 void walk_all_avx512(WalkWork& work) { walk_all(work); }
FCP_AVX2 void walk_all_avx2(WalkWork& work) { walk_all(work); }
void walk_all_plain(WalkWork& work) { walk_all(work); }

}  // namespace

ReluWalk make_relu_walk(const ReluHead& head, double rate) {
  ReluWalk walk;
  walk.head = make_relu_rows(head);
  const torch::Tensor w1 = head.w1.to(torch::kCPU, torch::kDouble);
  walk.kernel = padded_rows(w1.matmul(w1.t()), walk.head.hidden_width);
  walk.rate = 2 * rate;
  return walk;
}

void walk_rows(const ReluWalk& walk, const ReluWalkers& walkers, int steps,
               const DistanceTrace& trace) {
  WalkWork work{walk, walkers, steps, trace, WalkScratch(walk, steps)};
  const int width = simd_width();
  if (width == 512) return walk_all_avx512(work);
  if (width == 256) return walk_all_avx2(work);
  walk_all_plain(work);
}

}  // namespace fcp
