#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <torch/utils.h>

#include "fcp/base/lanes.h"
#include "fcp/base/parallel.h"
#include "fcp/bounds/relu_range.h"
#include "fcp/methods/scores/nested.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/nn/kernels/cuda/cuda_kernels.h"
#include "fcp/nn/kernels/relu_mlp/relu_range_cuda.h"

namespace fcp {
namespace {

class ReluNestedCuda : public Score {
 public:
  ReluNestedCuda(const ReluHead& head, ReluRangeCuda range, std::unique_ptr<Score> general)
      : head_(head), range_(std::move(range)), general_(std::move(general)) {}

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    if (!takes_rows(head_, features, truth)) return general_->score(features, truth);
    const torch::Tensor y = truth.to(head_.w1.device(), torch::kDouble);
    return plain_scores(range_.radii_reaching(rows_of(features), y));
  }

  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    if (!takes(features)) return general_->region(features, radius);
    check_radii(radius, features.size(0), 1);
    const torch::Tensor radii = radius.to(head_.w1.device(), torch::kDouble);
    const torch::Tensor ends = range_.ranges_at(rows_of(features), radii);
    return {ends[0], ends[1], ends[2], {}};
  }

 private:
  bool takes(const torch::Tensor& features) const {
    return takes_features(head_, features) && features.size(0) > 0;
  }

  torch::Tensor rows_of(const torch::Tensor& features) const {
    return features.detach().to(head_.w1.device(), torch::kFloat).flatten(1);
  }

  ReluHead head_;
  ReluRangeCuda range_;
  std::unique_ptr<Score> general_;
};

}  // namespace

std::unique_ptr<Score> with_relu_nested_cuda(const NestedOptions& options, const ReluHead& head,
                                             std::unique_ptr<Score> general) {
  if constexpr (kCudaKernels) {
    if (!takes_relu_range_cuda(head)) return general;
    const ReluRows rows = make_relu_rows(head);
    const std::vector<float> scale(options.scale.begin(), options.scale.end());
    if (!scale.empty() && scale.size() != rows.features) return general;  // which says so
    const std::vector<float> moves =
        unit_moves(rows, options.norm, scale.empty() ? nullptr : scale.data());
    const double widening = options.floor * options.slope / 2;
    return std::make_unique<ReluNestedCuda>(head, ReluRangeCuda(head, moves, widening),
                                            std::move(general));
  }
  return general;
}

namespace {

constexpr double kBoundless = std::numeric_limits<double>::infinity();
constexpr size_t kNestedBlock = 48;     // rows whose hidden units stay in the first cache
constexpr size_t kNestedThread = 1024;  // below, a thread costs more than it does

// The largest finite float32 that is at most the radius, which is not negative.
float radius_at_most(double radius) {
  constexpr float kMost = std::numeric_limits<float>::max();
  if (!(radius < static_cast<double>(kMost))) return kMost;
  const auto nearest = static_cast<float>(radius);
  return static_cast<double>(nearest) > radius ? std::nextafter(nearest, 0.0f) : nearest;
}

class ReluNested : public Score {
 public:
  ReluNested(const NestedOptions& options, const ReluHead& head, std::unique_ptr<Score> general)
      : head_(head),
        rows_(make_relu_rows(head)),
        widening_(options.floor * options.slope / 2),
        general_(std::move(general)) {
    const std::vector<float> scale(options.scale.begin(), options.scale.end());
    if (!scale.empty() && scale.size() != rows_.features) return;  // general_ says so
    moves_ = unit_moves(rows_, options.norm, scale.empty() ? nullptr : scale.data());
  }

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    if (moves_.empty() || !takes_rows(head_, features, truth)) {
      return general_->score(features, truth);
    }
    const torch::Tensor y = truth.to(torch::kCPU, torch::kDouble).contiguous();
    const double* wanted = y.data_ptr<double>();
    std::vector<double> scores(static_cast<size_t>(features.size(0)));
    for_blocks(features, [&](size_t first, const RangeRows& rows) {
      radii_reaching(rows, wanted + first * rows_.outputs, scores.data() + first);
    });
    return scores;
  }

  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    if (!takes(features)) return general_->region(features, radius);
    check_radii(radius, features.size(0), 1);
    const torch::Tensor radii = radius.to(torch::kCPU, torch::kDouble).contiguous();
    const auto outputs = static_cast<int64_t>(rows_.outputs);
    const torch::Tensor ends = torch::empty({3, features.size(0), outputs}, torch::kDouble);
    Regions regions{ends[0], ends[1], ends[2], {}};
    for_blocks(features, [&](size_t first, const RangeRows& rows) {
      const size_t at = first * rows_.outputs;
      fill_bands(rows, radii.data_ptr<double>() + first, regions.prediction.data_ptr<double>() + at,
                 regions.lower.data_ptr<double>() + at, regions.upper.data_ptr<double>() + at);
    });
    return regions;
  }

 private:
  bool takes(const torch::Tensor& features) const {
    return !moves_.empty() && takes_features(head_, features) && features.size(0) > 0;
  }

  // Shows the hidden units of the rows, block by block, to `work`.
  template <typename Work>
  void for_blocks(const torch::Tensor& features, const Work& work) const {
    const torch::Tensor v =
        features.detach().to(torch::kCPU, torch::kFloat).flatten(1).contiguous();
    const float* from = v.data_ptr<float>();
    parallel_rows(static_cast<size_t>(v.size(0)), kNestedThread,
                  static_cast<size_t>(at::get_num_threads()), [&](size_t begin, size_t end) {
                    HiddenBlocks hidden(rows_, std::min(kNestedBlock, end - begin));
                    for (size_t first = begin; first < end; first += kNestedBlock) {
                      const size_t rows = std::min(kNestedBlock, end - first);
                      hidden.fill(rows_, from + first * rows_.features, 0, rows);
                      work(first, RangeRows{rows_, moves_, hidden, 0, rows, widening_});
                    }
                  });
  }

  // Everything at an infinite radius, nothing at a negative one.
  void fill_bands(const RangeRows& rows, const double* radius, double* prediction, double* lower,
                  double* upper) const {
    std::vector<float> at(rows.rows, 0.0f);
    ranges_at(rows, at.data(), lower, upper);
    const size_t outputs = rows_.outputs, ends = rows.rows * outputs;
    for (size_t i = 0; i < ends; ++i) {  // both ends are one number, or there is none
      prediction[i] = lower[i] == upper[i] ? lower[i] : std::nan("");
    }
    for (size_t i = 0; i < rows.rows; ++i) at[i] = radius_at_most(std::max(0.0, radius[i]));
    ranges_at(rows, at.data(), lower, upper);
    for (size_t i = 0; i < ends; ++i) {
      const double asked = radius[i / outputs];
      if (asked >= 0 && asked < kBoundless) continue;
      lower[i] = asked < 0 ? kBoundless : -kBoundless;
      upper[i] = -lower[i];
    }
  }

  ReluHead head_;
  ReluRows rows_;
  std::vector<float> moves_;
  double widening_;  // of each side, at radius 1
  std::unique_ptr<Score> general_;
};

}  // namespace

std::unique_ptr<Score> with_relu_nested(const NestedOptions& options, const Network& head,
                                        size_t output, std::unique_ptr<Score> general) {
  if (options.bound.method != BoundMethod::kIbp || options.bound.outward) return general;
  const std::optional<ReluHead> matched = match_relu_head(head, output);
  if (!matched) return general;
  if (head.device().is_cuda()) return with_relu_nested_cuda(options, *matched, std::move(general));
  if (!head.device().is_cpu()) return general;
  const size_t block = kNestedBlock * padded(static_cast<size_t>(matched->w1.size(0)));
  const size_t memory = options.bound.memory;
  if (memory > 0 && block * sizeof(float) > memory) return general;
  return std::make_unique<ReluNested>(options, *matched, std::move(general));
}

}  // namespace fcp
