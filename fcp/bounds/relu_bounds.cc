#include "fcp/bounds/relu_bounds.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/lanes.h"
#include "fcp/base/parallel.h"
#include "fcp/bounds/relu_range.h"

namespace fcp {
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
