#include "fcp/scores/cqr.h"

#include <cmath>
#include <limits>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/network/batch_free.h"
#include "fcp/scores/head_outputs.h"
#include "fcp/scores/outputs.h"

namespace fcp {
namespace {

class Cqr : public Score {
 public:
  Cqr(const ScoreOptions& options, std::shared_ptr<const Network> head)
      : head_(std::move(head)),
        outputs_(quantile_outputs(*head_, options)),
        asymmetric_(options.asymmetric) {}

  int64_t sides() const override { return asymmetric_ ? 2 : 1; }

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    const Quantiles quantiles = predict(features);
    const torch::Tensor y = truth_matrix(truth, quantiles.low);
    const torch::Tensor below = (quantiles.low - y).amax(1);   // [N]
    const torch::Tensor above = (y - quantiles.high).amax(1);  // [N]
    return plain_scores(asymmetric_ ? torch::stack({below, above}, 1)
                                    : torch::maximum(below, above));
  }

  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    const Quantiles quantiles = predict(features);
    check_radii(radius, features.size(0), sides());
    const torch::Tensor radii = radius.to(quantiles.low.device(), torch::kDouble);
    return {(quantiles.low + quantiles.high) / 2,
            reach(quantiles.low, radii.narrow(1, 0, 1), -1),
            reach(quantiles.high, radii.narrow(1, sides() - 1, 1), +1),
            {}};
  }

 private:
  Quantiles predict(const torch::Tensor& features) const {
    const auto [low, high] = quantiles_of(run_apart(*head_, {features}), outputs_);
    return {torch::minimum(low, high), torch::maximum(low, high)};
  }

  // quantile + sign · radius, rounded outwards by a little more than the sum and the score were
  // rounded, so that a row whose score is the radius itself lies in its own interval.
  static torch::Tensor reach(const torch::Tensor& quantile, const torch::Tensor& radius,
                             double sign) {
    const torch::Tensor end = quantile + sign * radius;
    const torch::Tensor slack = (quantile.abs() + radius.abs()) * 0x1p-51;
    return torch::where(radius.isinf(), end, end + sign * slack);
  }

  std::shared_ptr<const Network> head_;
  QuantileOutputs outputs_;
  bool asymmetric_;
};

}  // namespace

QuantileOutputs quantile_outputs(const Network& head, const ScoreOptions& options) {
  if (!options.low.empty() || !options.high.empty()) {
    if (options.low.empty() || options.high.empty() || options.low == options.high) {
      fail("quantiles need two outputs of the network, low and high; found '", options.low,
           "' and '", options.high, "'");
    }
    return {output_index(head, options.low), output_index(head, options.high)};
  }
  std::vector<size_t> own;  // not of heads on features
  for (size_t i = 0; i < head.outputs().size(); ++i) {
    if (!is_head_output(head.outputs()[i].name)) own.push_back(i);
  }
  if (own.size() != 2) {
    fail(
        "quantiles need a network with two outputs, low and high, as `fcp train --loss quantile` "
        "makes; this one has ",
        own.size(), ": name two as low and high");
  }
  return {own[0], own[1]};
}

Quantiles quantiles_of(const Tensors& outputs, const QuantileOutputs& which) {
  const Quantiles quantiles{output_matrix(outputs[which.low]), output_matrix(outputs[which.high])};
  if (quantiles.low.size(1) != quantiles.high.size(1)) {
    fail("the low quantile answers ", quantiles.low.size(1), " numbers per row, the high one ",
         quantiles.high.size(1), "; expected as many");
  }
  return quantiles;
}

std::unique_ptr<Score> make_cqr(const ScoreOptions& options, std::shared_ptr<const Network> head) {
  return std::make_unique<Cqr>(options, std::move(head));
}

}  // namespace fcp
