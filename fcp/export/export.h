// A calibrated network as a plain ONNX network whose extra outputs are its regions at fixed levels:
// `lower` and `upper` in the shape of the output, or `in_set` [N, classes], true for the labels in
// the set. Standard operators in the network's own operator set; nothing of fcp is needed to run
// it.
//
//   score            region as nodes
//   residual         μ ∓ r, or μ ∓ r σ
//   cqr              low − r, high + r'
//   nested           interval bound propagation at the fixed radius (export_ranges.h)
//   feature_cqr      the same of two quantiles; a negative radius takes the inner ends
//   linearized       μ ∓ r (‖∇g‖ + c s / 2), the gradient of the head (gradients.h)
//   spread           μ ∓ r σ(v)
//   quantiles        μ + q ∓ r (distance of the quantiles) (quantile_nodes.h)
//   density          the gaps that are taken, by a comparison of all pairs (quantile_nodes.h); no
//                    unions
//   cross            the ends of the rank among those of all calibration rows, sorted
//   lac              1 − softmax(z / T) ≤ r
//   aps, raps        the running sum of sorted probabilities (+ rank term) ≤ r; not randomized
//   saps             the largest probability + rank term ≤ r; not randomized
//   feature_margin   max_j (z_j − z_k) / ‖W_j − W_k‖ (+ rank term) ≤ r; head of one linear layer
//   labels           unless sets may be empty, the scores of labels whose logit is within 2d of the
//                    largest (below) are 0
//
// A rectified score has r ρ(v) or r + ρ(v) for its radius; all of the above but feature_cqr and
// the scores of labels. Assumes split or cross calibration; label scores may also be grouped by
// predicted label or by class. Everything else depends on more than the row itself or on a
// search, and is refused with the reason. Intervals are computed in the network's precision,
// radii rounded up; label scores in double precision, as 1 − p of a sure network needs. An
// infinite radius gives infinite ends, or all labels.
//
// Another runtime adds in another order, and where rows are equal a last bit decides whether all of
// them are in. Regions are therefore wider than fcp's own by a slack that pays for a relative
// difference of ε = 2^-17 (128 roundoffs) in what the runtime computes:
//
//   intervals        each end moves outwards by ε (|end| + |prediction|); linearized also by
//                    the roundoff of its derivatives (gradients.h)
//   lac, aps, raps   logits that differ by d = ε max|z| change a probability by a factor of at most
//                    exp(2d/T): p, or the sum of those after the label, is taken exp(3d/T) times
//   saps             the largest probability is taken exp(−3d/T) times
//   feature_margin   every difference z_j − z_k is taken 2d smaller
//
// Outputs that are small differences of much larger numbers differ by more than that. Calibration
// measures by how much (fcp/predictor/rounding.h), and regions are wider by 8 times the largest
// difference δ, in proportion more for rows with larger numbers (precision.h):
//
//   intervals        each end by δ of the prediction, and what δ of a spread, of quantiles or of a
//                    rectifier adds; nested, feature_cqr, linearized: the radius by δ of scores
//   density          every gap that may be taken before another is taken (quantile_nodes.h)
//   labels           d grows by δ of the logits
//
// An export whose δ is not small beside the radius is refused. Ranks of labels (raps, saps) and
// predicted labels (of groups) whose logits are equal but for rounding may still change.
// Tested by tests/export/export_test.cc and, in ONNX Runtime, tests/cli/test_export.py.
#pragma once

#include <string>
#include <vector>

#include "fcp/export.h"
#include "fcp/predictor/artifact.h"

namespace fcp {

// An Error says why where the calibration cannot be exported.
Graph export_artifact(const CalibrationArtifact& artifact, const ExportOptions& options = {});

// The names of the new outputs of one of the levels: lower and upper, or in_set.
std::vector<std::string> export_names(const CalibrationArtifact& artifact,
                                      const ExportOptions& options, const Level& level);
// Those of calibrated probabilities: merged, p0 and p1; none where there are none.
std::vector<std::string> chance_names(const CalibrationArtifact& artifact,
                                      const ExportOptions& options);

}  // namespace fcp
