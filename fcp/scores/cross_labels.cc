#include "fcp/scores/cross_labels.h"

#include <limits>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/network/batch_free.h"
#include "fcp/scores/head_outputs.h"
#include "fcp/scores/labels.h"
#include "fcp/scores/outputs.h"

namespace fcp {
namespace {

class CrossLabels : public LabelScore {
 public:
  CrossLabels(const ScoreOptions& options, const std::shared_ptr<const Network>& head)
      : LabelScore(options, head),
        whole_(head),
        margins_(output_index(*head, kCrossMarginsOutput)) {}

  using LabelScore::label_scores;
  torch::Tensor label_scores(const torch::Tensor& features,
                             const torch::Tensor& logits) const override {
    const torch::Tensor margins = run_apart(*whole_, {features})[margins_].to(torch::kCPU);
    if (margins.dim() != 2 || margins.size(1) % classes() != 0) {
      fail("cross_labels: found margins ", margins.sizes(), ", expected a multiple of ", classes(),
           " in each row");
    }
    const torch::Tensor each = margins.reshape({margins.size(0), -1, classes()});  // [N, n, C]
    const torch::Tensor ranks = 1 + (each > 0).sum(1).to(torch::kDouble);
    const torch::Tensor unknown =
        logits.isnan().any(1, /*keepdim=*/true) | margins.isnan().any(1, /*keepdim=*/true);
    return ranks.masked_fill(unknown, std::numeric_limits<double>::quiet_NaN());
  }

 private:
  std::shared_ptr<const Network> whole_;
  size_t margins_;
};

}  // namespace

std::unique_ptr<Score> make_cross_labels(const ScoreOptions& options,
                                         std::shared_ptr<const Network> head) {
  return std::make_unique<CrossLabels>(options, std::move(head));
}

}  // namespace fcp
