#include "fcp/scores/relu_nested_cuda.h"

#include <utility>
#include <vector>

#include <torch/utils.h>

#include "fcp/bounds/relu_range.h"
#include "fcp/bounds/relu_range_cuda.h"
#include "fcp/scores/outputs.h"

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

std::unique_ptr<Score> with_relu_nested_cuda(const ScoreOptions& options, const ReluHead& head,
                                             std::unique_ptr<Score> general) {
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

}  // namespace fcp
