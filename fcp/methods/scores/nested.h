// Feature conformal prediction whose printed interval is the one that is covered.
//
//   band(v, r)   = [lower(v, r) − c r s / 2, upper(v, r) + c r s / 2]
//   score(v, y)  = the smallest r with y ∈ band(v, r)        +∞ where no finite radius reaches y
//   region(v, r) = band(v, r)
//
// lower and upper are the bound-propagation range of the head over the ball of radius r around v
// (fcp/bounds). Whatever the bound's looseness, the score measures y with the very ruler that makes
// the interval, so the law is exact and needs neither a number of steps nor a step size. The floor
// c widens every band by the share c of the mean band (s: mean width of a band of radius 1,
// measured on other rows than those of calibration), which helps where single bands collapse.
//
// The radius is found by bisection over float32 radii (radius_search.h), at any scale and without a
// bracket. CROWN's range may shrink when the radius grows; score and region then follow the same
// bisection, and the law is exact for every bound.
//
// Where a share of an image's pixels is asked for (outputs.h), the score is the smallest radius
// whose band holds that many, found by the same bisection at the same cost.
//
// Cost: 31 bands per row for the score (31 K where bands are not nested), 1 (31) for the region.
// Tested by tests/methods/scores/law_test.cc and nested_test.cc.
#pragma once

#include <memory>

#include "fcp/methods/scores/radius_search.h"
#include "fcp/methods/scores/score.h"

namespace fcp {

struct NestedOptions {
  static constexpr char kName[] = "nested";

  Norm norm = Norm::kInf;  // of feature space
  // In plain arithmetic: bands have to grow with the radius, which plain ones do, and not to hold
  // every rounding, which would give the radius 0 a width.
  BoundOptions bound = {.outward = false};
  // How far each number of a feature moves at radius 1; empty: 1 for all.
  std::vector<double> scale{};
  double floor = 0;  // c
  double slope = 0;  // s; set where floor > 0
  bool operator==(const NestedOptions&) const = default;
};

std::unique_ptr<Score> make_score(const NestedOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head);

// The score that `nested` and the nested form of `feature_cqr` share: y is measured by the radius
// of the ball of features at whose bound-propagation band it enters.
//
// Two outputs of the head, `low` and `high` (one and the same for nested), have the ranges
// [l, u] over the ball of radius |r| around v. The band is
//
//   r ≥ 0:   [min(l_low, l_high) − m, max(u_low, u_high) + m]      wider with r
//   r < 0:   [min(u_low, u_high) − m, max(l_low, l_high) + m]      narrower with |r|, then empty
//
// with m = c r s / 2, the floor. At r = 0 it is the prediction: the two quantiles in their order.
// nested.h and feature_cqr.h say what each is for; radius_search.h how the radius is found, and
// what a band is where the bound does not grow with the ball: each end is then put together along
// the bisection's path. Bands that may be empty have no point in common, so that there each side
// must search alone; bands from zero on all hold the prediction, and each output may.
struct BandOutputs {
  size_t low = 0;  // indices of the head's outputs
  size_t high = 0;
  RadiusRange range = RadiusRange::kFromZero;
  int64_t sides = 1;
};

std::unique_ptr<Score> make_band_score(const NestedOptions& options, double pixel_share,
                                       std::shared_ptr<const Network> head,
                                       const BandOutputs& outputs);

// The fast path of `nested` for heads Linear–ReLU–Linear: score and band of a row in one pass over
// its hidden units (fcp/bounds/relu_range.h). The radius is the smallest float32 one, as in the
// general score, and both halves ask the same function for the ends, so that the law is exact here
// too. Scores differ from the general ones by rounding only.
//
// The rule: ibp without outward rounding, a float32 head of that shape on the CPU, and memory for
// the hidden units of a block of rows. On a CUDA device the kernels of
// fcp/nn/kernels/relu_mlp/relu_range_cuda.h take over, one launch for the scores of a batch and one
// for its regions: as exact, in bits that differ from the CPU's. Features or targets of other
// shapes go to the general score, which says what is wrong.
// Tested by tests/methods/scores/law_test.cc, nested_test.cc and cuda_test.cc.
//
// The fast path before `general`, or `general` itself where the rule does not hold. `output` is the
// index of the head's output that predicts.
std::unique_ptr<Score> with_relu_nested(const NestedOptions& options, const Network& head,
                                        size_t output, std::unique_ptr<Score> general);

}  // namespace fcp
