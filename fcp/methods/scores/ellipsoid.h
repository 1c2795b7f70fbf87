// One region for all outputs together: an ellipsoid whose shape a head on the features learned from
// how the errors of the outputs go together there.
//
//   score(v, y)  = ‖L(v)⁻¹ (y − μ)‖₂
//   region(v, r) = {y : ‖L(v)⁻¹ (y − μ)‖₂ ≤ r}
//   volume       = V_K r^K Π_k L_kk(v),   V_K that of the unit ball
//   box          = [μ_k − r ‖L_k(v)‖₂, μ_k + r ‖L_k(v)‖₂],   L_k the k-th row of L: the smallest
//
// L is lower triangular with a positive diagonal, an output of K · K numbers, row by row, whose
// upper triangle is not read: the Cholesky factor of a covariance per row (outputs.h).
// Whatever the head learned, coverage is exact: a diagonal that is not positive counts as 1e-150.
// Region and score are the same function of y, so that the law is exact to the last bit; the box is
// widened by more than forward substitution can round (its backward error is at most K ε |L| |z|),
// so that it holds the region as computed.
// Cost: one forward and O(K²) per row. Reference: Braun, Berta, Jordan and Bach, Multivariate
// Standardized Residuals for Conformal Prediction, 2025; here a head on features learns it.
// Tested by tests/methods/scores/law_test.cc, ellipsoid_test.cc and coverage_test.cc.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fcp/methods/scores/score.h"

namespace fcp {

inline constexpr int64_t kMostEllipsoidOutputs = 64;  // L has K² numbers

struct EllipsoidOptions {
  static constexpr char kName[] = "ellipsoid";

  std::string cholesky{};  // the output that is L; empty: the reserved one

  static std::vector<Option> rows();
  std::vector<std::string> learned_outputs() const;
  bool operator==(const EllipsoidOptions&) const = default;
};

std::unique_ptr<Score> make_score(const EllipsoidOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head);

// Of regions that have a factor: whether each truth [N, K] is within the radius, [N] bool, and the
// volume of each to the power 1/K, [N].
torch::Tensor in_ellipsoids(const Regions& regions, const torch::Tensor& truth);
torch::Tensor ellipsoid_volumes(const Regions& regions);

}  // namespace fcp
