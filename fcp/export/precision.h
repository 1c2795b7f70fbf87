// What another runtime's rounding may do to the numbers of an exported network.
//
// Calibration measures how far the network's answers are from those in double precision
// (fcp/predictor/rounding.h). fcp and another runtime, each with an error of that size, may
// differ by twice the largest one that was seen, and rows that were not measured by more: regions
// allow for kRoundingSafety times it, and for rows whose numbers x are larger than all that were
// measured in proportion. Where that is not small beside the radius, the export is refused.
//
// A file whose rounding was not measured, as those of earlier versions, is looked at in one place:
//
// fcp and another runtime compute the ends of an exported interval in the network's precision, each
// with roundings of its own. Where a ball is so small beside the feature that v ± r keeps few
// digits of r, or where a head makes much of a roundoff, they disagree by more than the slack of an
// export pays for (export.h), inwards too. The loss is measured on an example feature, where the
// ends are computed in both precisions:
//
//   loss = max |e₃₂ − e₆₄| / max |e₆₄|        over the numbers of an output and both ends
//
// Ends that overflow single precision are infinite in every runtime, which only widens an interval,
// and are left out. Assumes that the example is like other features in size. 0 for networks in
// double precision. Cost: two walks of one row.
// Tested by tests/export/precision_test.cc.
#pragma once

#include <string>

#include <torch/types.h>

#include "fcp/bounds/walk.h"
#include "fcp/export/graph_builder.h"
#include "fcp/export/ranges.h"
#include "fcp/predictor/artifact.h"

namespace fcp {

constexpr double kRoundingSafety = 8;

// The most that rounding may add to a radius, as a share of it; beyond, an export is refused.
constexpr double kMostRounding = 0.25;

// What rounding may do, as numbers and as nodes.
class RoundingNodes {
 public:
  // Both must outlive it.
  RoundingNodes(GraphBuilder& builder, const Rounding& rounding)
      : builder_(builder), rounding_(rounding) {}

  bool measured() const { return rounding_.measured(); }
  // kRoundingSafety times the differences of an output, of logits, of scores.
  double of_output(const std::string& name) const;
  double of_logits() const { return kRoundingSafety * rounding_.logits.difference; }
  double of_scores() const { return kRoundingSafety * rounding_.score.difference; }

  // The difference at each row, [N, 1, …] of so many dimensions; "" where it is 0.
  std::string node(double difference, size_t rank, torch::ScalarType type);

  // The tensor and the difference of its row.
  std::string added(const std::string& tensor, double difference, size_t rank,
                    torch::ScalarType type);

  // An Error where rounding is not small beside a radius, nor beside the slack of any export.
  void check_radius(double radius) const;
  // The same of a radius around an output.
  void check_center(double radius, const std::string& output) const;

 private:
  GraphBuilder& builder_;
  const Rounding& rounding_;
  std::string growth_;  // [N, 1] doubles: how much larger than all measured rows, at least 1
};

// Beyond it an export is refused. The slack is 2^-17, and rounding loses about 2^-20.
constexpr double kMostLoss = 0x1p-13;

// Of output number `output` at one radius. The ball [1, …] is one that prepare_ball gave.
double precision_loss(const PreparedHead& head, const Ball& ball, double radius, size_t output);

// The ends of a normalisation, a softmax and a sine over a box [l, u], written as ONNX nodes: the
// formulas of the operators' own intervals (fcp/nn/ops/normalization.h, softmax.cc,
// activations.cc); the first two in double precision.
//
//   LayerNormalization  c_i = x_i − mean(x) lies in [c⁻, c⁺]; c / √((c² + Σ_{j≠i} c_j²) / n + ε)
//                       rises with c, and its size falls with the sum over the others, which lies
//                       between Σ least c_j² and Σ largest c_j²
//   Softmax             e^{l_i} / (e^{l_i} + Σ_{j≠i} e^{u_j}), and l and u exchanged
//
//   Sin, Cos            ±1 where the next place of that value after l is not behind u, otherwise
//                       the larger or smaller of both ends' values
//
// Cost: some thirty nodes each. Tested by tests/export/export_test.cc.

// Along the last axis, of n = scale.numel() numbers; bias: undefined for none.
Ends layer_norm_ends(GraphBuilder& builder, const Ends& x, const torch::Tensor& scale,
                     const torch::Tensor& bias, double epsilon);

Ends softmax_ends(GraphBuilder& builder, const Ends& x, int64_t axis);

// Of a sine, or of a cosine.
Ends sine_ends(GraphBuilder& builder, const Node& node, const Ends& x, bool cosine);

}  // namespace fcp
