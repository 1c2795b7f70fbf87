#include "fcp/search/relu_walk.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include <torch/utils.h>

#include "fcp/base/lanes.h"
#include "fcp/base/parallel.h"
#include "fcp/search/surrogate_search.h"

namespace fcp {
namespace {

constexpr float kFar = std::numeric_limits<float>::infinity();

// What one row needs beside its own numbers; used again for the next.
struct WalkScratch {
  explicit WalkScratch(const ReluWalk& walk, int steps)
      : q(walk.head.hidden_width),
        z(walk.head.feature_width),
        active(walk.head.hidden_width),
        units(walk.head.hidden_width + 1),
        weights(walk.head.hidden_width + 1),
        stops(static_cast<size_t>(steps)) {}

  FloatRows q, z;
  std::vector<int32_t> active;  // −1 where p > 0
  std::vector<uint32_t>
      units;  // that flipped, and what they add to Dw₂; one place more to write to
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

// Brings D up to date with p, and q and z with D. Without branches on single units: about half of
// them are active, in no order a processor could guess.
FCP_KERNEL void flip(const ReluWalk& walk, const float* p, WalkScratch& scratch) {
  const ReluRows& head = walk.head;
  size_t count = 0;
  for (size_t j = 0; j < head.hidden_width; j += kLanes) {
    LaneMask& active = *reinterpret_cast<LaneMask*>(&scratch.active[j]);
    const LaneMask now = *lanes(p + j) > 0;
    const LaneMask flipped = now ^ active;
    if (!any_of(&flipped)) continue;
    active = now;
    const Lanes weights = now ? *lanes(&head.w2[j]) : -*lanes(&head.w2[j]);
    for (size_t lane = 0; lane < kLanes; ++lane) {
      scratch.units[count] = static_cast<uint32_t>(j + lane);
      scratch.weights[count] = weights[lane];
      count -= static_cast<size_t>(static_cast<int64_t>(flipped[lane]));  // less −1 where it did
    }
  }
  if (count == 0) return;
  const WeightedRows some{scratch.units.data(), scratch.weights.data(), count};
  add_rows(scratch.q.data(), walk.kernel.data(), head.hidden_width, some);
  add_rows(scratch.z.data(), head.w1.data(), head.feature_width, some);
}

// w₂·max(0, p) + b₂; not a number where some p is not.
FCP_KERNEL float answer(const ReluRows& head, const float* p) {
  Lanes sum{};
  for (size_t j = 0; j < head.hidden_width; j += kLanes) {
    const Lanes unit = *lanes(p + j);
    sum += *lanes(&head.w2[j]) * (unit <= 0 ? Lanes{} : unit);
  }
  return sum_of(&sum) + head.b2[0];
}

struct Stretch {
  float low, high;
};

// No p − T q changes its sign for low < T < high.
FCP_KERNEL Stretch straight_stretch(const float* p, const float* q, size_t width) {
  Lanes high = Lanes{} + kFar, back = Lanes{} + kFar;  // back: −low
  for (size_t j = 0; j < width; j += kLanes) {
    const Lanes at = *lanes(p + j) / *lanes(q + j);  // not a number for padding: 0 / 0
    const Lanes behind = -at;
    const Lanes ahead = at >= 0 ? at : Lanes{} + kFar;
    const Lanes past = at < 0 ? behind : Lanes{} + kFar;
    high = ahead < high ? ahead : high;
    back = past < back ? past : back;
  }
  back = -back;
  high = -high;
  return {largest_of(&back), -largest_of(&high)};
}

FCP_KERNEL float squared(const float* z, size_t width) {
  Lanes sum{};
  for (size_t j = 0; j < width; j += kLanes) sum += *lanes(z + j) * *lanes(z + j);
  return sum_of(&sum);
}

// ‖moved − T z‖
FCP_KERNEL float distance(const float* moved, const float* z, float t, size_t width,
                          DistanceOrder order) {
  Lanes result{};
  for (size_t j = 0; j < width; j += kLanes) {
    const Lanes at = *lanes(moved + j) - t * *lanes(z + j);
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
  if (order == DistanceOrder::kLargest) return largest_of(&result);
  return order == DistanceOrder::kSum ? sum_of(&result) : std::sqrt(sum_of(&result));
}

constexpr Lanes kLaneNumbers = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

// The feature of moved − T z that is the largest, and whether it is negative.
struct Peak {
  size_t feature;  // the width where it is not a number
  bool negative;
};

FCP_KERNEL Peak peak_at(const float* moved, const float* z, float t, size_t width) {
  const float size = distance(moved, z, t, width, DistanceOrder::kLargest);
  Lanes place = Lanes{} - 1;
  for (size_t j = 0; j < width; j += kLanes) {
    const Lanes at = *lanes(moved + j) - t * *lanes(z + j);
    const Lanes here = kLaneNumbers + static_cast<float>(j);
    place = (at < 0 ? -at : at) == size ? here : place;
  }
  const float found = largest_of(&place);
  if (!(found >= 0)) return {width, false};
  const auto feature = static_cast<size_t>(found);
  return {feature, moved[feature] - t * z[feature] < 0};
}

// The largest norm of moved − T z at each of `count` stops, which go one way. It is convex in T:
// where the same feature is the largest at two of them, on the same side, it is so between.
FCP_KERNEL void largest_distances(const float* moved, const float* z, const double* stops,
                                  size_t count, size_t width, float* to, size_t stride) {
  for (size_t done = 0; done < count;) {
    const Peak peak = peak_at(moved, z, static_cast<float>(stops[done]), width);
    size_t last = count - 1;
    for (; last > done; last = done + (last - done) / 2) {
      const Peak other = peak_at(moved, z, static_cast<float>(stops[last]), width);
      if (other.feature == peak.feature && other.negative == peak.negative) break;
    }
    for (; done <= last; ++done) {
      const auto t = static_cast<float>(stops[done]);
      to[done * stride] = peak.feature < width ? std::abs(moved[peak.feature] - t * z[peak.feature])
                                               : std::numeric_limits<float>::quiet_NaN();
    }
  }
}

FCP_KERNEL void advance(float* from, const float* direction, float t, size_t width) {
  for (size_t j = 0; j < width; j += kLanes) *lanes(from + j) -= t * *lanes(direction + j);
}

// The distances after the steps of a stretch, the first of which has the number `done`. Steps that
// are too long go to and fro.
FCP_KERNEL void trace_stretch(const WalkWork& work, size_t row, int done, size_t count,
                              bool one_way) {
  const DistanceTrace& trace = work.trace;
  const size_t width = work.walk.head.feature_width;
  const float* moved = work.walkers.moved + row * width;
  const float* z = work.scratch.z.data();
  float* to = trace.distances + static_cast<size_t>(done) * trace.stride + row;
  if (trace.order == DistanceOrder::kLargest && one_way) {
    largest_distances(moved, z, work.scratch.stops.data(), count, width, to, trace.stride);
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    const auto t = static_cast<float>(work.scratch.stops[i]);
    to[i * trace.stride] = distance(moved, z, t, width, trace.order);
  }
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
      trace_stretch(work, row, done, static_cast<size_t>(count), shrink >= 0);
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

namespace {

constexpr size_t kBlockRows = 64;    // hidden and moved rows of a block stay in the first cache
constexpr size_t kThreadRows = 512;  // below, a thread costs more than it does
constexpr int kTracedSteps = 32;     // at once, and then twice as many

// Rows [N, D] float32 on the CPU.
torch::Tensor plain_rows(const torch::Tensor& rows) {
  return rows.detach().to(torch::kCPU, torch::kFloat).flatten(1).contiguous();
}

size_t search_threads() { return static_cast<size_t>(at::get_num_threads()); }

// Hands the rows, ready to be walked, to `work`, block by block.
template <typename Work>
void for_blocks(const ReluWalk& walk, const torch::Tensor& v, const torch::Tensor& y,
                const Work& work) {
  const ReluRows& head = walk.head;
  const float* features = v.data_ptr<float>();
  const float* truth = y.data_ptr<float>();
  parallel_rows(static_cast<size_t>(v.size(0)), kThreadRows, search_threads(),
                [&](size_t begin, size_t end) {
                  FloatRows hidden(kBlockRows * head.hidden_width);
                  FloatRows moved(kBlockRows * head.feature_width);
                  for (size_t first = begin; first < end; first += kBlockRows) {
                    const size_t rows = std::min(kBlockRows, end - first);
                    hidden_rows(head, features + first * head.features, rows, hidden.data());
                    std::fill(moved.begin(), moved.end(), 0.0f);
                    work(first, ReluWalkers{rows, truth + first, hidden.data(), moved.data()});
                  }
                });
}

}  // namespace

ReluSearch::ReluSearch(const ReluHead& head, double rate)
    : head_(head), walk_(make_relu_walk(head, rate)) {}

bool ReluSearch::takes(const torch::Tensor& features, const torch::Tensor& truth) const {
  return takes_rows(head_, features, truth);
}

torch::Tensor ReluSearch::walk(const torch::Tensor& features, const torch::Tensor& truth,
                               int steps) const {
  const torch::Tensor v = plain_rows(features), y = plain_rows(truth.reshape({-1, 1}));
  torch::Tensor found = torch::empty_like(v);
  const float* from = v.data_ptr<float>();
  float* to = found.data_ptr<float>();
  const ReluRows& head = walk_.head;
  for_blocks(walk_, v, y, [&](size_t first, const ReluWalkers& walkers) {
    walk_rows(walk_, walkers, steps);
    for (size_t row = 0; row < walkers.rows; ++row) {
      const size_t at = (first + row) * head.features;
      const float* moved = walkers.moved + row * head.feature_width;
      for (size_t d = 0; d < head.features; ++d) to[at + d] = from[at + d] + moved[d];
    }
  });
  return found.view(features.sizes());
}

torch::Tensor ReluSearch::distances(const torch::Tensor& features, const torch::Tensor& truth,
                                    int steps, DistanceOrder order) const {
  const torch::Tensor v = plain_rows(features), y = plain_rows(truth.reshape({-1, 1}));
  torch::Tensor distances = torch::zeros({v.size(0)});
  float* to = distances.data_ptr<float>();
  for_blocks(walk_, v, y, [&](size_t first, const ReluWalkers& walkers) {
    walk_rows(walk_, walkers, steps, {to + first, 0, true, order});
  });
  return distances;
}

torch::Tensor ReluSearch::distances(const torch::Tensor& features, const torch::Tensor& truth,
                                    int steps, DistanceOrder order,
                                    const DistanceObserver& observe) const {
  const torch::Tensor v = plain_rows(features), y = plain_rows(truth.reshape({-1, 1}));
  const ReluRows& head = walk_.head;
  const auto rows = static_cast<size_t>(v.size(0));
  FloatRows hidden(rows * head.hidden_width), moved(rows * head.feature_width);
  torch::Tensor last = torch::zeros({v.size(0)});
  for (int done = 0, count = 0; done < steps; done += count) {
    count = std::min(done == 0 ? kTracedSteps : 2 * kTracedSteps, steps - done);
    torch::Tensor trace = torch::empty({count, v.size(0)});
    parallel_rows(rows, kThreadRows, search_threads(), [&](size_t begin, size_t end) {
      float* p = hidden.data() + begin * head.hidden_width;
      if (done == 0) hidden_rows(head, v.data_ptr<float>() + begin * head.features, end - begin, p);
      walk_rows(
          walk_,
          {end - begin, y.data_ptr<float>() + begin, p, moved.data() + begin * head.feature_width},
          count, {trace.data_ptr<float>() + begin, rows, false, order});
    });
    for (int step = 0; step < count; ++step) {
      last = trace[step].clone();
      if (!observe(done + step + 1, last)) return last;
    }
  }
  return last;
}

std::shared_ptr<const ReluSearch> make_relu_search(const Network& head, size_t output,
                                                   const SearchOptions& options) {
  if (options.adam || options.loss != SearchLoss::kSquaredError) return nullptr;
  if (!head.device().is_cpu() || options.weights.size() > 1) return nullptr;
  const std::optional<ReluHead> matched = match_relu_head(head, output);
  if (!matched || matched->w2.size(0) != 1) return nullptr;
  const double weight = options.weights.empty() ? 1 : options.weights[0];
  return std::make_shared<const ReluSearch>(*matched, options.rate * weight);
}

}  // namespace fcp
