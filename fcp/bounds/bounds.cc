#include "fcp/bounds/bounds.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <utility>

#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/memory.h"
#include "fcp/bounds/alpha_crown.h"
#include "fcp/bounds/cost.h"
#include "fcp/bounds/crown.h"
#include "fcp/bounds/relu_range.h"
#include "fcp/bounds/walk.h"
#include "fcp/nn/graph/rows_first.h"
#include "fcp/nn/kernels/cpu/row_product.h"
#include "fcp/nn/runtime/element_types.h"

namespace fcp {
namespace {

constexpr std::array<std::pair<BoundMethod, const char*>, 4> kMethods = {{
    {BoundMethod::kIbp, "ibp"},
    {BoundMethod::kCrownIbp, "crown-ibp"},
    {BoundMethod::kCrown, "crown"},
    {BoundMethod::kAlphaCrown, "alpha-crown"},
}};

constexpr size_t kFallbackMemory = size_t{2} << 30;  // where the system says nothing

// Rows that are walked at once.
struct RowChunk {
  Ball ball;  // without its radius
  int64_t first = 0;
  int64_t present = 0;   // then padding, the last row again
  FirstOutputs outputs;  // empty: to be computed at every question
};

class WalkedBounds : public HeadBounds {
 public:
  WalkedBounds(PreparedHead head, const BoundOptions& options)
      : head_(std::move(head)),
        options_(options),
        memory_(allowed_memory(options)),
        has_planes_(has_planes(head_)) {}

  bool monotone() const override { return !linear(); }

  RangesAt around(const Ball& given) const override {
    const torch::NoGradGuard no_gradients;
    const Ball ball = prepare_ball(head_, {given.center, {}, given.norm, given.scale});
    if (ball.center.size(0) == 0) fail("bounds need at least one row");
    const WalkCost cost = cost_of(ball);
    auto chunks = std::make_shared<const std::vector<RowChunk>>(chunks_of(ball, cost));
    return [this, ball, cost, chunks](const torch::Tensor& radius) {
      return ranges_of(ball, *chunks, cost, radius);
    };
  }

 private:
  size_t outputs() const { return head_.network->output_slots().size(); }
  bool linear() const { return options_.method != BoundMethod::kIbp; }

  // Asked once: equal chunks, hence equal bits, for all questions.
  static size_t allowed_memory(const BoundOptions& options) {
    if (options.memory > 0) return options.memory;
    const size_t available = available_memory();
    return available > 0 ? available / 2 : kFallbackMemory;
  }

  // This thread's part; or all of it, for one thread after the other, where a row needs more.
  size_t memory_for(const WalkCost& cost) const {
    const size_t part = memory_ / memory_sharers();
    return cost.least(linear()) > static_cast<double>(part) ? memory_ : part;
  }

  // Counted once for each shape of feature.
  WalkCost cost_of(const Ball& ball) const {
    const std::vector<int64_t> shape = ball.center.sizes().slice(1).vec();
    const std::lock_guard lock(mutex_);
    const auto found = costs_.find(shape);
    if (found != costs_.end()) return found->second;
    const int64_t batch = std::max<int64_t>(1, head_.network->fixed_batch());
    const torch::Tensor rows = select_rows(ball.center, 0, 1, batch);
    return costs_[shape] = walk_cost(head_, options_.method, rows);
  }

  // Rows [first, first + present), and the last one again up to `count`.
  static torch::Tensor select_rows(const torch::Tensor& rows, int64_t first, int64_t present,
                                   int64_t count) {
    if (count == present) return rows.narrow(0, first, count);
    const torch::Tensor index = torch::arange(first, first + count, rows.device());
    return rows.index_select(0, index.clamp_max(first + present - 1));
  }

  // First outputs are kept as long as they take no more than a quarter of the memory.
  std::vector<RowChunk> chunks_of(const Ball& ball, const WalkCost& cost) const {
    const int64_t rows = ball.center.size(0);
    const int64_t fixed = head_.network->fixed_batch();
    const int64_t affordable = affordable_rows(cost, linear(), memory_for(cost));
    const int64_t size = fixed != kDynamic ? fixed : std::min(affordable, rows);
    std::vector<RowChunk> chunks;
    const double most_kept = static_cast<double>(memory_ / memory_sharers()) / 4;
    double kept = 0;
    for (int64_t first = 0; first < rows; first += size) {
      RowChunk chunk;
      chunk.first = first;
      chunk.present = std::min(size, rows - first);
      chunk.ball = ball;
      const int64_t count = fixed != kDynamic ? fixed : chunk.present;
      chunk.ball.center = select_rows(ball.center, first, chunk.present, count);
      if (kept <= most_kept) {
        chunk.outputs = first_outputs(head_, chunk.ball);
        for (const Op::BallOutput& output : chunk.outputs) {
          if (!output.center.defined()) continue;
          kept += static_cast<double>(output.center.nbytes() + output.reach.nbytes());
        }
        if (kept > most_kept) chunk.outputs.clear();
      }
      chunks.push_back(std::move(chunk));
    }
    return chunks;
  }

  std::vector<Range> ranges_of(const Ball& ball, const std::vector<RowChunk>& chunks,
                               const WalkCost& cost, const torch::Tensor& given) const {
    const torch::NoGradGuard no_gradients;
    std::unique_lock<std::mutex> alone(whole_, std::defer_lock);
    if (memory_for(cost) > memory_ / memory_sharers()) alone.lock();
    const torch::Tensor radius = prepare_radius(head_, ball, given);
    std::vector<Tensors> lower(outputs()), upper(outputs());
    for (const RowChunk& chunk : chunks) {
      Ball part = chunk.ball;
      part.radius = select_rows(radius, chunk.first, chunk.present, part.center.size(0));
      const std::vector<Range> ranges =
          walk(part, chunk.outputs.empty() ? first_outputs(head_, part) : chunk.outputs, cost);
      for (size_t i = 0; i < ranges.size(); ++i) {
        lower[i].push_back(ranges[i].lower.narrow(0, 0, chunk.present));
        upper[i].push_back(ranges[i].upper.narrow(0, 0, chunk.present));
      }
    }
    std::vector<Range> result;
    for (size_t i = 0; i < outputs(); ++i) {
      const bool one = chunks.size() == 1;
      result.push_back(
          {one ? lower[i][0] : torch::cat(lower[i]), one ? upper[i][0] : torch::cat(upper[i])});
    }
    return result;
  }

  std::vector<Range> walk(const Ball& ball, const FirstOutputs& first, const WalkCost& cost) const {
    std::vector<Range> results;
    if (!linear()) {
      const Ranges ranges = walk_forwards(head_, ball, first, /*keep=*/false);
      for (const int slot : head_.network->output_slots()) {
        results.push_back(finished(head_, ranges[static_cast<size_t>(slot)]));
      }
      return results;
    }
    HiddenRanges hidden;
    hidden.refine = options_.method != BoundMethod::kCrownIbp;
    results = linear_ranges(ball, first, cost, hidden);
    if (options_.method == BoundMethod::kAlphaCrown) {
      // Other ranges inside make other lines, which need not be better for every output.
      hidden.improve = [this](const LinearHead& linear, int slot, const torch::Tensor& numbers) {
        return bound_numbers_optimized(linear, slot, numbers, options_.iterations, options_.rate);
      };
      hidden.most = kMostHidden;
      const std::vector<Range> improved = linear_ranges(ball, first, cost, hidden);
      for (size_t i = 0; i < results.size(); ++i) results[i] = tighter(results[i], improved[i]);
    }
    for (Range& range : results) range = finished(head_, range);
    return results;
  }

  std::vector<Range> linear_ranges(const Ball& ball, const FirstOutputs& first,
                                   const WalkCost& cost, const HiddenRanges& hidden) const {
    const int64_t rows = ball.center.size(0);
    int64_t numbers = affordable_numbers(cost, rows, memory_for(cost));
    // An optimisation, with its many small steps, is best done for all numbers at once.
    if (ball.center.is_cpu() && !hidden.improve) {
      numbers = std::min(numbers, cached_numbers(cost, rows));
    }
    const LinearHead linear = make_linear_head(head_, ball, first, hidden, numbers);
    std::vector<Range> results;
    for (const int slot : head_.network->output_slots()) {
      const Range& interval = linear.ranges[static_cast<size_t>(slot)];
      Range range = interval;
      if (!is_constant(interval)) range = bound_slot(linear, slot, hidden.improve);
      results.push_back(has_planes_ ? tighter(range, interval) : range);
    }
    return results;
  }

  static Range tighter(const Range& a, const Range& b) {
    return {torch::fmax(a.lower, b.lower), torch::fmin(a.upper, b.upper)};
  }

  // Products of two tensors, softmax and the like are far from any plane over a large ball, where
  // intervals may be the better bounds.
  static bool has_planes(const PreparedHead& head) {
    return std::any_of(head.plans.begin(), head.plans.end(), [](const BoundPlan& plan) {
      return plan.rule == BoundRule::kInterval || plan.rule == BoundRule::kSmooth ||
             plan.rule == BoundRule::kBilinear;
    });
  }

  PreparedHead head_;
  BoundOptions options_;
  size_t memory_;
  bool has_planes_;
  mutable std::mutex whole_;  // held by the thread that takes all of the memory
  mutable std::mutex mutex_;
  mutable std::map<std::vector<int64_t>, WalkCost> costs_;
};

// Linear bounds of a head that moves its rows away from the first axis: those of the same head
// written with rows first, once for each shape of feature.
class RowsFirstBounds : public HeadBounds {
 public:
  RowsFirstBounds(std::shared_ptr<const Network> head, const BoundOptions& options)
      : head_(std::move(head)), options_(options) {}

  bool monotone() const override { return false; }

  RangesAt around(const Ball& ball) const override { return bounds_for(ball).around(ball); }

 private:
  const HeadBounds& bounds_for(const Ball& ball) const {
    if (ball.center.dim() < 1 || ball.center.size(0) == 0) fail("bounds need at least one row");
    const std::vector<int64_t> shape = ball.center.sizes().slice(1).vec();
    const std::lock_guard lock(mutex_);
    std::unique_ptr<HeadBounds>& known = known_[shape];
    if (known) return *known;
    NetworkOptions options;
    options.device = head_->device();
    const torch::Tensor row =
        ball.center.narrow(0, 0, 1).to(head_->device(), scalar_type(head_->inputs()[0].type));
    const auto network = std::make_shared<const Network>(rows_first(*head_, row), options);
    known = std::make_unique<WalkedBounds>(prepare_head(network, options_), options_);
    return *known;
  }

  std::shared_ptr<const Network> head_;
  BoundOptions options_;
  mutable std::mutex mutex_;
  mutable std::map<std::vector<int64_t>, std::unique_ptr<HeadBounds>> known_;
};

}  // namespace

std::string bound_name(BoundMethod method) {
  for (const auto& [known, name] : kMethods) {
    if (known == method) return name;
  }
  return "";
}

BoundMethod parse_bound(const std::string& name) {
  for (const auto& [method, known] : kMethods) {
    if (name == known) return method;
  }
  fail("bound '", name, "' is not known, expected ibp, crown-ibp, crown or alpha-crown");
}

std::unique_ptr<HeadBounds> make_bounds(std::shared_ptr<const Network> head,
                                        const BoundOptions& options) {
  constexpr int kMostIterations = 10000;
  if (options.method == BoundMethod::kAlphaCrown && options.iterations > kMostIterations) {
    fail("alpha-crown takes at most ", kMostIterations, " iterations; found ", options.iterations);
  }
  const PreparedHead prepared = prepare_head(std::move(head), options);
  const bool linear = options.method != BoundMethod::kIbp;
  if (linear && !prepared.carried.defined() && moves_rows(*prepared.network)) {
    return std::make_unique<RowsFirstBounds>(prepared.network, options);
  }
  return with_relu_bounds(prepared, options, std::make_unique<WalkedBounds>(prepared, options));
}

std::string norm_name(Norm norm) {
  return norm == Norm::kInf ? "inf" : norm == Norm::kTwo ? "2" : "1";
}

Norm parse_norm(const std::string& name) {
  for (const Norm norm : {Norm::kInf, Norm::kTwo, Norm::kOne}) {
    if (name == norm_name(norm)) return norm;
  }
  fail("norm '", name, "' is not known, expected inf, 2 or 1");
}

torch::Tensor dual_norm(const torch::Tensor& rows, Norm norm) {
  const torch::Tensor flat = rows.flatten(1).abs();
  if (norm == Norm::kInf) return sum_rows(flat);
  if (norm == Norm::kOne) return flat.amax(1);
  // Scaled by the largest, so that no square overflows or vanishes.
  const torch::Tensor largest = flat.amax(1, /*keepdim=*/true);
  const torch::Tensor scale = largest.masked_fill(largest == 0, 1);
  return sum_rows((flat / scale).square()).sqrt() * largest.squeeze(1);
}

torch::Tensor row_scale(const Ball& ball) {
  if (!ball.scale.defined())
    return torch::ones({1}, ball.center.options()).expand_as(ball.center.narrow(0, 0, 1));
  return ball.scale.to(ball.center.options()).expand_as(ball.center.narrow(0, 0, 1));
}

torch::Tensor rowwise(const torch::Tensor& per_row, const torch::Tensor& like) {
  std::vector<int64_t> shape(static_cast<size_t>(like.dim()), 1);
  shape[0] = per_row.size(0);
  return per_row.view(shape);
}

}  // namespace fcp
