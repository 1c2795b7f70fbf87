#include "fcp/bounds/relu_bounds.h"

#include <utility>
#include <vector>

#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/parallel.h"
#include "fcp/bounds/relu_range.h"

namespace fcp {
namespace {

constexpr size_t kRangeRows = 4096;  // below, a second thread costs more than it does

struct ReluOutput {
  ReluHead head;
  ReluRange range;
};

// What does not depend on the radius.
struct OutputRows {
  std::vector<float> hidden;
  std::vector<float> reach;
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
      bytes += static_cast<size_t>(center.size(0)) * output.range.head.hidden_width * sizeof(float);
    }
    return memory_ == 0 || bytes <= memory_ / 4;
  }

  std::vector<OutputRows> rows_around(const Ball& ball) const {
    const torch::Tensor center = ball.center.flatten(1).contiguous();
    const torch::Tensor scale = ball.scale.defined() ? ball.scale.contiguous() : torch::Tensor();
    std::vector<OutputRows> known;
    for (const ReluOutput& output : outputs_) {
      const ReluRows& head = output.range.head;
      OutputRows rows;
      rows.reach = unit_reach(head, ball.norm, scale.defined() ? scale.data_ptr<float>() : nullptr);
      rows.hidden.resize(static_cast<size_t>(center.size(0)) * head.hidden_width);
      in_parallel(center.size(0), [&](size_t first, size_t last) {
        hidden_rows(head, center.data_ptr<float>() + first * head.features, last - first,
                    rows.hidden.data() + first * head.hidden_width);
      });
      known.push_back(std::move(rows));
    }
    return known;
  }

  std::vector<Range> ranges_of(const Ball& ball, const std::vector<OutputRows>& known,
                               const torch::Tensor& radius) const {
    std::vector<Range> ranges;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const ReluRange& range = outputs_[i].range;
      const size_t outputs = range.head.outputs, width = range.head.hidden_width;
      const auto options = torch::TensorOptions().dtype(torch::kFloat);
      Range ends = {torch::empty({ball.center.size(0), static_cast<int64_t>(outputs)}, options),
                    torch::empty({ball.center.size(0), static_cast<int64_t>(outputs)}, options)};
      in_parallel(ball.center.size(0), [&](size_t first, size_t last) {
        ranges_at(range,
                  {last - first, known[i].hidden.data() + first * width, known[i].reach.data()},
                  radius.data_ptr<float>() + first, ends.lower.data_ptr<float>() + first * outputs,
                  ends.upper.data_ptr<float>() + first * outputs);
      });
      ranges.push_back(std::move(ends));
    }
    return ranges;
  }

  template <typename Work>
  static void in_parallel(int64_t rows, const Work& work) {
    parallel_rows(static_cast<size_t>(rows), kRangeRows, static_cast<size_t>(at::get_num_threads()),
                  work);
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
    outputs.push_back({*matched, make_relu_range(*matched)});
  }
  return std::make_unique<ReluBounds>(head, options, std::move(outputs), std::move(general));
}

}  // namespace fcp
