#include "fcp/bounds/bounds.h"

#include <algorithm>
#include <array>
#include <utility>

#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/memory.h"
#include "fcp/bounds/alpha_crown.h"
#include "fcp/bounds/crown.h"
#include "fcp/bounds/walk.h"

namespace fcp {
namespace {

constexpr std::array<std::pair<BoundMethod, const char*>, 4> kMethods = {{
    {BoundMethod::kIbp, "ibp"},
    {BoundMethod::kCrownIbp, "crown-ibp"},
    {BoundMethod::kCrown, "crown"},
    {BoundMethod::kAlphaCrown, "alpha-crown"},
}};

constexpr size_t kFallbackMemory = size_t{2} << 30;  // where the system says nothing

class WalkedBounds : public HeadBounds {
 public:
  WalkedBounds(PreparedHead head, const BoundOptions& options)
      : head_(std::move(head)), options_(options), memory_(allowed_memory(options)) {}

  bool monotone() const override { return options_.method == BoundMethod::kIbp; }

  std::vector<Range> ranges(const Ball& given) const override {
    const torch::NoGradGuard no_gradients;
    const Ball ball = prepare_ball(head_, given);
    const int64_t rows = ball.center.size(0);
    const int64_t batch = head_.network->fixed_batch();
    const int64_t chunk = batch != kDynamic ? batch : rows_at_once(ball);
    std::vector<Tensors> lower(outputs()), upper(outputs());
    for (int64_t first = 0; first < rows; first += chunk) {
      const int64_t present = std::min(chunk, rows - first);
      const int64_t padding = batch != kDynamic ? batch - present : 0;
      const std::vector<Range> part = ranges_of(rows_of(ball, first, present, padding));
      for (size_t i = 0; i < part.size(); ++i) {
        lower[i].push_back(part[i].lower.narrow(0, 0, present));
        upper[i].push_back(part[i].upper.narrow(0, 0, present));
      }
    }
    std::vector<Range> result;
    for (size_t i = 0; i < outputs(); ++i) {
      if (lower[i].empty()) fail("bounds need at least one row");
      result.push_back({torch::cat(lower[i]), torch::cat(upper[i])});
    }
    return result;
  }

 private:
  size_t outputs() const { return head_.network->output_slots().size(); }

  // Asked once: equal chunks, hence equal bits, for all questions.
  static size_t allowed_memory(const BoundOptions& options) {
    if (options.memory > 0) return options.memory;
    const size_t available = available_memory();
    return available > 0 ? available / 2 : kFallbackMemory;
  }

  // Rows [first, first + count); the last one again for each row of padding.
  static Ball rows_of(const Ball& ball, int64_t first, int64_t count, int64_t padding) {
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < count + padding; ++i) rows.push_back(first + std::min(i, count - 1));
    Ball part = ball;
    if (padding == 0) {
      part.center = ball.center.narrow(0, first, count);
      part.radius = ball.radius.narrow(0, first, count);
    } else {
      const torch::Tensor index = torch::tensor(rows, torch::kLong).to(ball.center.device());
      part.center = ball.center.index_select(0, index);
      part.radius = ball.radius.index_select(0, index);
    }
    return part;
  }

  // The numbers of one row in all tensors together decide; a few temporaries of each live at once.
  int64_t rows_at_once(const Ball& ball) const {
    const int64_t rows = ball.center.size(0);
    if (rows <= 1) return 1;
    double numbers = static_cast<double>(ball.center.numel() / rows);
    const torch::Tensor row = ball.center.narrow(0, 0, 1).to(head_.output_type);
    head_.network->run({row}, [&](const Step&, const Tensors&, const Tensors& results) {
      for (const torch::Tensor& result : results) {
        if (result.defined()) numbers += static_cast<double>(result.numel());
      }
    });
    const double each = numbers * 24 * static_cast<double>(torch::elementSize(head_.type));
    return std::clamp<int64_t>(static_cast<int64_t>(static_cast<double>(memory_) / each), 1, rows);
  }

  std::vector<Range> ranges_of(const Ball& ball) const {
    std::vector<Range> results;
    if (options_.method == BoundMethod::kIbp) {
      const Ranges ranges = walk_forwards(head_, ball, /*keep=*/false);
      for (const int slot : head_.network->output_slots()) {
        results.push_back(finished(head_, ranges[static_cast<size_t>(slot)]));
      }
      return results;
    }
    const LinearHead linear =
        make_linear_head(head_, ball, options_.method != BoundMethod::kCrownIbp, memory_);
    for (const int slot : head_.network->output_slots()) {
      const Range& interval = linear.ranges[static_cast<size_t>(slot)];
      const Range range =
          is_constant(interval) ? interval
          : options_.method == BoundMethod::kAlphaCrown
              ? bound_slot_optimized(linear, slot, options_.iterations, options_.rate)
              : bound_slot(linear, slot);
      results.push_back(finished(head_, range));
    }
    return results;
  }

  PreparedHead head_;
  BoundOptions options_;
  size_t memory_;
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
  return std::make_unique<WalkedBounds>(prepare_head(std::move(head), options), options);
}

}  // namespace fcp
