#include "fcp/bounds/relu_range.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/lanes.h"
#include "fcp/base/parallel.h"

namespace fcp {
namespace {

constexpr double kNoRadius = std::numeric_limits<double>::infinity();
constexpr int32_t kInfinityKey = 0x7f800000;  // the bit pattern of the float32 +∞
constexpr int kNewtonSteps = 8;

// One output around the sixteen rows of a block.
struct RangeBlock {
  const float* hidden;
  const float* moves;
  const float* weights;
  float shift;
  size_t units;
  double widening;
};

// Adds what unit i contributes to E, in the lanes from `at` on.
template <typename Floats>
FCP_KERNEL void add_unit(const RangeBlock& block, size_t i, size_t at,
                         const typename Floats::Type* t, typename Floats::Type* sum) {
  using Vector = typename Floats::Type;
  const Vector unit = *floats<Floats>(block.hidden + i * kLanes + at) + *t * block.moves[i];
  *sum += block.weights[i] * (unit <= 0 ? Vector{} : unit);
}

// E of each lane at its own t. Four sums take turns, because each has to wait for its last
// addition.
template <typename Floats>
FCP_KERNEL void sum_ends(const RangeBlock& block, const float* t, float* ends) {
  using Vector = typename Floats::Type;
  for (size_t at = 0; at < kLanes; at += kFloatsIn<Floats>) {
    const Vector own = *floats<Floats>(t + at);
    Vector a{}, b{}, c{}, d{};
    size_t i = 0;
    for (; i + 4 <= block.units; i += 4) {
      add_unit<Floats>(block, i, at, &own, &a);
      add_unit<Floats>(block, i + 1, at, &own, &b);
      add_unit<Floats>(block, i + 2, at, &own, &c);
      add_unit<Floats>(block, i + 3, at, &own, &d);
    }
    for (; i < block.units; ++i) add_unit<Floats>(block, i, at, &own, &a);
    *floats<Floats>(ends + at) = ((a + b) + (c + d)) + block.shift;
  }
}

// Adds what unit i contributes to the straight piece of E around t: shift + slope · t.
template <typename Floats>
FCP_KERNEL void add_line(const RangeBlock& block, size_t i, size_t at,
                         const typename Floats::Type* t, typename Floats::Type* shift,
                         typename Floats::Type* slope) {
  using Vector = typename Floats::Type;
  const Vector unit = *floats<Floats>(block.hidden + i * kLanes + at);
  const Vector steep = Vector{} + block.weights[i] * block.moves[i];
  const auto on = unit + *t * block.moves[i] > 0;
  *shift += on ? block.weights[i] * unit : Vector{};
  *slope += on ? steep : Vector{};
}

// E, up to rounding, and its slope.
template <typename Floats>
FCP_KERNEL void sum_tangents(const RangeBlock& block, const float* t, float* ends, float* slopes) {
  using Vector = typename Floats::Type;
  for (size_t at = 0; at < kLanes; at += kFloatsIn<Floats>) {
    const Vector own = *floats<Floats>(t + at);
    Vector shift{}, slope{}, more_shift{}, more_slope{};
    size_t i = 0;
    for (; i + 2 <= block.units; i += 2) {
      add_line<Floats>(block, i, at, &own, &shift, &slope);
      add_line<Floats>(block, i + 1, at, &own, &more_shift, &more_slope);
    }
    for (; i < block.units; ++i) add_line<Floats>(block, i, at, &own, &shift, &slope);
    slope += more_slope;
    *floats<Floats>(ends + at) = shift + more_shift + slope * own + block.shift;
    *floats<Floats>(slopes + at) = slope;
  }
}

template <typename Floats>
FCP_KERNEL void widened_ends(const RangeBlock& block, const float* t, double* ends) {
  alignas(64) float sums[kLanes];
  sum_ends<Floats>(block, t, sums);
  for (size_t i = 0; i < kLanes; ++i) {
    ends[i] = static_cast<double>(sums[i]) + static_cast<double>(t[i]) * block.widening;
  }
}

// Never inlined: one and the same code must give the end wherever it is asked for.
using EndsFunction = void (*)(const RangeBlock& block, const float* t, double* ends);
FCP_AVX512 [[gnu::noinline]] void ends_avx512(const RangeBlock& block, const float* t, double* to) {
  widened_ends<Floats16>(block, t, to);
}
FCP_AVX2 [[gnu::noinline]] void ends_avx2(const RangeBlock& block, const float* t, double* to) {
  widened_ends<Floats8>(block, t, to);
}
[[gnu::noinline]] void ends_plain(const RangeBlock& block, const float* t, double* to) {
  widened_ends<Floats4>(block, t, to);
}

// The search for the radii of a block.
struct BlockSearch {
  alignas(64) double wanted[kLanes];
  alignas(64) float target[kLanes];  // the same, rounded
  alignas(64) double ends[kLanes];
  alignas(64) float sign[kLanes];  // ±1: which end has to reach it
  alignas(64) float t[kLanes];
  alignas(64) float radius[kLanes];
  alignas(64) int32_t below[kLanes];  // keys, the bits of float32 radii: not there yet,
  alignas(64) int32_t above[kLanes];  // and there
};

// Radii near the ones wanted. A step is exact on a straight piece, so that a short one is the last.
// Loops over lanes are without branches, for the compiler to make vectors of.
template <typename Floats>
FCP_KERNEL void guess_radii(const RangeBlock& block, BlockSearch& search) {
  alignas(64) float ends[kLanes], slopes[kLanes];
  alignas(64) int32_t going[kLanes];
  const auto widening = static_cast<float>(block.widening);
  for (size_t i = 0; i < kLanes; ++i) {
    search.radius[i] = 0;
    going[i] = 1;
  }
  for (int step = 0, any = 1; step < kNewtonSteps && any != 0; ++step) {
    for (size_t i = 0; i < kLanes; ++i) search.t[i] = search.sign[i] * search.radius[i];
    sum_tangents<Floats>(block, search.t, ends, slopes);
    any = 0;
    for (size_t i = 0; i < kLanes; ++i) {
      const float r = search.radius[i], slope = slopes[i] + widening;
      const float missing = search.sign[i] * (search.target[i] - ends[i]) - r * widening;
      const float next = r + (slope > 0 ? missing / slope : r);
      const float kept = next > 0 ? next : 0.0f;  // 0 where it is not a number
      const float change = std::abs(kept - r);
      search.radius[i] = going[i] != 0 ? kept : r;
      going[i] &= static_cast<int32_t>(slope > 0) & static_cast<int32_t>(change > 1e-4f * r);
      any |= going[i];
    }
  }
}

// Whether each lane's end has arrived at a key. What is not a number is unbounded and has.
FCP_KERNEL void probe(const RangeBlock& block, EndsFunction ends, BlockSearch& search,
                      const int32_t* keys, int32_t* arrived) {
  for (size_t i = 0; i < kLanes; ++i) search.t[i] = search.sign[i] * std::bit_cast<float>(keys[i]);
  ends(block, search.t, search.ends);
  for (size_t i = 0; i < kLanes; ++i) {
    const double missing =
        (search.wanted[i] - search.ends[i]) * static_cast<double>(search.sign[i]);
    arrived[i] = missing > 0 ? 0 : 1;
  }
}

// The smallest key at which each lane has arrived: looks around the guess, ever farther, until the
// answer is enclosed, and bisects.
FCP_KERNEL void smallest_keys(const RangeBlock& block, EndsFunction ends, BlockSearch& search) {
  alignas(64) int32_t keys[kLanes], there[kLanes], first[kLanes], outward[kLanes];
  for (size_t i = 0; i < kLanes; ++i) {
    keys[i] = std::bit_cast<int32_t>(search.radius[i] < 3e38f ? search.radius[i] : 3e38f);
    search.below[i] = -1;
    search.above[i] = kInfinityKey;
  }
  probe(block, ends, search, keys, first);
  for (size_t i = 0; i < kLanes; ++i) {
    search.below[i] = first[i] != 0 ? search.below[i] : keys[i];
    search.above[i] = first[i] != 0 ? keys[i] : search.above[i];
    outward[i] = 1;
  }
  int32_t reach = 2;
  for (int32_t widest = 2; widest > 1;) {
    for (size_t i = 0; i < kLanes; ++i) {
      const int32_t width = search.above[i] - search.below[i];
      outward[i] = reach < width ? outward[i] : 0;
      const int32_t away = reach < width ? reach : 1;  // no farther than there are keys
      const int32_t far = first[i] != 0 ? search.above[i] - away : search.below[i] + away;
      const int32_t middle = search.below[i] + width / 2;
      keys[i] = outward[i] != 0 ? far : middle;
      keys[i] = width > 1 ? keys[i] : search.above[i];  // done: the answer is probed again
    }
    probe(block, ends, search, keys, there);
    widest = 0;
    for (size_t i = 0; i < kLanes; ++i) {
      search.above[i] = there[i] != 0 ? keys[i] : search.above[i];
      search.below[i] = there[i] != 0 ? search.below[i] : keys[i];
      outward[i] = there[i] == first[i] ? outward[i] : 0;
      const int32_t width = search.above[i] - search.below[i];
      widest = width > widest ? width : widest;
    }
    reach = reach < (1 << 28) ? 4 * reach : reach;
  }
}

template <typename Floats>
FCP_KERNEL void search_block(const RangeBlock& block, EndsFunction ends, BlockSearch& search) {
  guess_radii<Floats>(block, search);
  smallest_keys(block, ends, search);
}

using SearchFunction = void (*)(const RangeBlock& block, BlockSearch& search);
FCP_AVX512 void search_avx512(const RangeBlock& block, BlockSearch& search) {
  search_block<Floats16>(block, ends_avx512, search);
}
FCP_AVX2 void search_avx2(const RangeBlock& block, BlockSearch& search) {
  search_block<Floats8>(block, ends_avx2, search);
}
void search_plain(const RangeBlock& block, BlockSearch& search) {
  search_block<Floats4>(block, ends_plain, search);
}

const EndsFunction ends_at = simd_width() == 512   ? ends_avx512
                             : simd_width() == 256 ? ends_avx2
                                                   : ends_plain;
const SearchFunction search_for = simd_width() == 512   ? search_avx512
                                  : simd_width() == 256 ? search_avx2
                                                        : search_plain;

RangeBlock block_of(const RangeRows& rows, size_t first, size_t output) {
  const ReluRows& head = rows.head;
  return {rows.hidden.block(rows.first + first),
          rows.moves.data() + output * head.hidden,
          head.w2.data() + output * head.hidden_width,
          head.b2[output],
          head.hidden,
          rows.widening};
}

// The radii of up to sixteen rows for one output.
void block_radii(const RangeBlock& block, const double* truth, size_t stride, size_t count,
                 double* radii) {
  BlockSearch search;
  std::fill_n(search.t, kLanes, 0.0f);
  double answers[kLanes];
  ends_at(block, search.t, answers);
  for (size_t i = 0; i < kLanes; ++i) {
    search.wanted[i] = i < count ? truth[i * stride] : answers[i];
    search.target[i] = static_cast<float>(search.wanted[i]);
    search.sign[i] = search.wanted[i] > answers[i] ? 1.0f : -1.0f;
  }
  search_for(block, search);
  for (size_t i = 0; i < count; ++i) {
    const bool unknown = std::isnan(search.wanted[i]) || std::isnan(answers[i]);
    radii[i] = unknown ? std::nan("")
               : search.above[i] == kInfinityKey
                   ? kNoRadius
                   : static_cast<double>(std::bit_cast<float>(search.above[i]));
  }
}

}  // namespace

std::vector<float> unit_moves(const ReluRows& head, Norm norm, const float* scale) {
  std::vector<float> moves(head.outputs * head.hidden);
  for (size_t i = 0; i < head.hidden; ++i) {
    double sum = 0, largest = 0;
    for (size_t d = 0; d < head.features; ++d) {
      const double weight = std::abs(static_cast<double>(head.w1[i * head.feature_width + d]) *
                                     (scale == nullptr ? 1.0 : static_cast<double>(scale[d])));
      sum += norm == Norm::kTwo ? weight * weight : weight;
      largest = std::max(largest, weight);
    }
    const double reach = norm == Norm::kOne ? largest : norm == Norm::kTwo ? std::sqrt(sum) : sum;
    for (size_t k = 0; k < head.outputs; ++k) {
      moves[k * head.hidden + i] =
          std::copysign(static_cast<float>(reach), head.w2[k * head.hidden_width + i]);
    }
  }
  return moves;
}

void ranges_at(const RangeRows& rows, const float* radius, double* lower, double* upper) {
  const size_t outputs = rows.head.outputs;
  alignas(64) float t[kLanes] = {};
  double low[kLanes], high[kLanes];
  for (size_t first = 0; first < rows.rows; first += kLanes) {
    const size_t count = std::min(kLanes, rows.rows - first);
    for (size_t k = 0; k < outputs; ++k) {
      const RangeBlock block = block_of(rows, first, k);
      for (size_t i = 0; i < count; ++i) t[i] = -radius[first + i];
      ends_at(block, t, low);
      for (size_t i = 0; i < count; ++i) t[i] = radius[first + i];
      ends_at(block, t, high);
      for (size_t i = 0; i < count; ++i) {
        const size_t at = (first + i) * outputs + k;
        lower[at] = std::isnan(low[i]) ? -kNoRadius : low[i];
        upper[at] = std::isnan(high[i]) ? kNoRadius : high[i];
      }
    }
  }
}

void radii_reaching(const RangeRows& rows, const double* truth, double* radius) {
  const size_t outputs = rows.head.outputs;
  double own[kLanes];
  for (size_t first = 0; first < rows.rows; first += kLanes) {
    const size_t count = std::min(kLanes, rows.rows - first);
    std::fill_n(radius + first, count, 0.0);
    for (size_t k = 0; k < outputs; ++k) {
      block_radii(block_of(rows, first, k), truth + first * outputs + k, outputs, count, own);
      for (size_t i = 0; i < count; ++i) {
        double& largest = radius[first + i];
        if (std::isnan(own[i]) || own[i] > largest)
          largest = std::isnan(largest) ? largest : own[i];
      }
    }
  }
}

namespace {

constexpr size_t kRangeRows = 4096;  // below, a second thread costs more than it does

struct ReluOutput {
  ReluHead head;
  ReluRows rows;
};

// What does not depend on the radius.
struct OutputRows {
  HiddenBlocks hidden;
  std::vector<float> moves;
};

class ReluBounds : public HeadBounds {
 public:
  ReluBounds(const PreparedHead& head, const BoundOptions& options, std::vector<ReluOutput> outputs,
             std::unique_ptr<HeadBounds> general)
      : head_(head),
        memory_(options.memory),
        outputs_(std::move(outputs)),
        general_(std::move(general)) {}

  bool monotone() const override { return true; }

  RangesAt around(const Ball& given) const override {
    if (!takes(given.center)) return general_->around(given);
    const Ball ball = prepare_ball(head_, {given.center, {}, given.norm, given.scale});
    auto known = std::make_shared<const std::vector<OutputRows>>(rows_around(ball));
    return [this, ball, known](const torch::Tensor& radius) {
      return ranges_of(ball, *known, prepare_radius(head_, ball, radius).contiguous());
    };
  }

 private:
  bool takes(const torch::Tensor& center) const {
    size_t bytes = 0;
    for (const ReluOutput& output : outputs_) {
      if (!takes_features(output.head, center) || center.size(0) == 0) return false;
      bytes += HiddenBlocks::bytes(output.rows, static_cast<size_t>(center.size(0)));
    }
    return memory_ == 0 || bytes <= memory_ / 4;
  }

  std::vector<OutputRows> rows_around(const Ball& ball) const {
    const torch::Tensor center = ball.center.flatten(1).contiguous();
    const torch::Tensor scale = ball.scale.defined() ? ball.scale.contiguous() : torch::Tensor();
    std::vector<OutputRows> known;
    for (const ReluOutput& output : outputs_) {
      const ReluRows& head = output.rows;
      OutputRows rows{
          HiddenBlocks(head, static_cast<size_t>(center.size(0))),
          unit_moves(head, ball.norm, scale.defined() ? scale.data_ptr<float>() : nullptr)};
      in_parallel(center.size(0), [&](size_t first, size_t last) {
        rows.hidden.fill(head, center.data_ptr<float>() + first * head.features, first,
                         last - first);
      });
      known.push_back(std::move(rows));
    }
    return known;
  }

  std::vector<Range> ranges_of(const Ball& ball, const std::vector<OutputRows>& known,
                               const torch::Tensor& radius) const {
    std::vector<Range> ranges;
    const auto options = torch::TensorOptions().dtype(torch::kDouble);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const ReluRows& head = outputs_[i].rows;
      const auto outputs = static_cast<int64_t>(head.outputs);
      const Range ends = {torch::empty({ball.center.size(0), outputs}, options),
                          torch::empty({ball.center.size(0), outputs}, options)};
      in_parallel(ball.center.size(0), [&](size_t first, size_t last) {
        ranges_at({head, known[i].moves, known[i].hidden, first, last - first},
                  radius.data_ptr<float>() + first,
                  ends.lower.data_ptr<double>() + first * head.outputs,
                  ends.upper.data_ptr<double>() + first * head.outputs);
      });
      ranges.push_back({ends.lower.to(torch::kFloat), ends.upper.to(torch::kFloat)});  // exact
    }
    return ranges;
  }

  // Shares of whole blocks.
  template <typename Work>
  static void in_parallel(int64_t count, const Work& work) {
    const auto rows = static_cast<size_t>(count);
    parallel_rows(
        padded(rows) / kLanes, kRangeRows / kLanes, static_cast<size_t>(at::get_num_threads()),
        [&](size_t begin, size_t end) { work(begin * kLanes, std::min(rows, end * kLanes)); });
  }

  PreparedHead head_;
  size_t memory_;
  std::vector<ReluOutput> outputs_;
  std::unique_ptr<HeadBounds> general_;
};

}  // namespace

std::unique_ptr<HeadBounds> with_relu_bounds(const PreparedHead& head, const BoundOptions& options,
                                             std::unique_ptr<HeadBounds> general) {
  const Network& network = *head.network;
  if (options.method != BoundMethod::kIbp || options.outward || !network.device().is_cpu() ||
      head.output_type != torch::kFloat) {
    return general;
  }
  std::vector<ReluOutput> outputs;
  for (size_t i = 0; i < network.outputs().size(); ++i) {
    const std::optional<ReluHead> matched = match_relu_head(network, i);
    if (!matched) return general;
    outputs.push_back({*matched, make_relu_rows(*matched)});
  }
  return std::make_unique<ReluBounds>(head, options, std::move(outputs), std::move(general));
}

}  // namespace fcp
