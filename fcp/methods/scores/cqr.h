// Conformalized quantile regression: the two quantiles that a network predicts, moved outwards (or
// inwards, where they were too wide) by the radius.
//
//   symmetric:    s = max(low − y, y − high),          region [low − r, high + r]
//   asymmetric:   s = (low − y, y − high),             region [low − r₁, high + r₂], α/2 a side
//
// Quantiles that cross are taken in their order: low is the smaller and high the larger of the two.
// A negative radius may leave nothing between the ends; such an empty region is legal. With K
// outputs the score is the largest of theirs. The prediction is the middle between the quantiles.
// Differences are rounded up and ends inwards (outputs.h), so that the law is exact.
//
// Reference: Romano, Patterson, Candès, Conformalized Quantile Regression, NeurIPS 2019.
// Tested by tests/methods/scores/law_test.cc and cqr_test.cc.
#pragma once

#include <memory>

#include "fcp/methods/scores/score.h"

namespace fcp {

struct CqrOptions {
  static constexpr char kName[] = "cqr";

  std::string low{};        // the output that is the low quantile,
  std::string high{};       // and the high one; both empty: the only two outputs
  bool asymmetric = false;  // a radius for each side, each at α/2
  bool operator==(const CqrOptions&) const = default;
};

std::unique_ptr<Score> make_score(const CqrOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head);

// The indices of the head's outputs that are the low and the high quantile: as named, or the only
// two there are, in their order.
struct QuantileOutputs {
  size_t low = 0;
  size_t high = 0;
};
QuantileOutputs quantile_outputs(const Network& head, const std::string& low,
                                 const std::string& high);

// The two quantiles, as the network answers them; an Error where their shapes differ.
struct Quantiles {
  torch::Tensor low, high;  // [N, K] doubles
};
Quantiles quantiles_of(const Tensors& outputs, const QuantileOutputs& which);

}  // namespace fcp
