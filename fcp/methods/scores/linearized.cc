#include "fcp/methods/scores/linearized.h"

#include <utility>

#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/methods/scores/monotone_rows.h"
#include "fcp/methods/scores/one_sided.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/nn/runtime/batch_free.h"
#include "fcp/search/surrogate_search.h"

namespace fcp {
namespace {

class Linearized : public Score {
 public:
  Linearized(const LinearizedOptions& options, std::shared_ptr<const Network> head, size_t output)
      : head_(std::move(head)),
        output_(output),
        norm_(options.norm),
        floor_(options.floor * options.slope / 2) {
    check_differentiable(*head_);
  }

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    const Tangent tangent = tangent_at(features);
    const torch::Tensor y = truth_matrix(truth, tangent.value);
    return plain_scores(spread_scores(distances_up(y, tangent.value), tangent.slope).amax(1));
  }

  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    const Tangent tangent = tangent_at(features);
    const torch::Tensor column = radius_column(radius, tangent.value);
    const torch::Tensor margin = spread_margins(tangent.slope, column);
    return inward_regions(tangent.value, tangent.value, tangent.value, margin, margin);
  }

  EndPairs ends(const torch::Tensor& features) const {
    const Tangent tangent = tangent_at(features);
    const torch::Tensor value = plain_matrix(tangent.value);
    return {value, value, value, plain_matrix(tangent.slope)};
  }

 private:
  struct Tangent {
    torch::Tensor value;  // μ [N, K]
    torch::Tensor slope;  // L [N, K]
  };

  Tangent tangent_at(const torch::Tensor& features) const {
    torch::AutoGradMode with_gradients(true);
    const torch::Tensor v = features.to(head_->device()).detach().requires_grad_();
    const torch::Tensor output = run_apart(*head_, {v})[output_];
    const torch::Tensor flat = output.reshape({output.size(0), -1});
    Tensors slopes;
    for (int64_t k = 0; k < flat.size(1); ++k) {
      const torch::Tensor gradient = torch::autograd::grad({flat.select(1, k).sum()}, {v}, {},
                                                           /*retain_graph=*/true)[0];
      slopes.push_back(dual_norm(gradient.to(torch::kDouble), norm_) + floor_);
    }
    return {output_matrix(output.detach()), torch::stack(slopes, 1)};
  }

  std::shared_ptr<const Network> head_;
  size_t output_;
  Norm norm_;
  double floor_;
};

}  // namespace

std::unique_ptr<Score> make_score(const LinearizedOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head) {
  const size_t output = output_index(*head, shared.output);
  if (shared.side != BoundSide::kBoth) {
    const auto tangents = std::make_shared<const Linearized>(options, std::move(head), output);
    const auto read = [tangents](const torch::Tensor& features) {
      return tangents->ends(features);
    };
    return make_end_score(read, shared.side);
  }
  std::unique_ptr<Score> general = std::make_unique<Linearized>(options, head, output);
  return with_relu_linearized(options, *head, output, std::move(general));
}

}  // namespace fcp
