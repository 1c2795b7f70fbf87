// The predictive distributions of a Predictor: quantiles of y, and how probable an event is.
//
//   const fcp::Distribution d(fcp::Predictor::load("promise.onnx"));
//   const fcp::Batch rows = d.predictor().schema().encode(x);
//   use(d.quantiles(rows, {fcp::Level(0.05), fcp::Level(0.5)}));   // [rows × 2]
//   use(d.above(rows, 30)[0].lower, d.above(rows, 30)[0].upper);   // a band, 1 / (n + 1) wide
//
// They are read from the scores of one end: of a predictor calibrated with `side` upper or lower,
// or of residual, spread, quantiles and cqr with `asymmetric`; by split, grouped or weighted
// calibration; of one output. An Error says what another predictor lacks. F(y) at the truth is
// uniform over calibrations, whatever the network is. A value, as Predictor is, and as safe.
//
// Tested by tests/api/api_test.cc and tests/predictor/distribution_test.cc.
#pragma once

#include <memory>
#include <vector>

#include "fcp/interval.h"
#include "fcp/level.h"
#include "fcp/predictor.h"

namespace fcp {

class PredictiveDistribution;  // not installed

class Distribution {
 public:
  explicit Distribution(Predictor predictor);

  const Predictor& predictor() const { return predictor_; }

  // The quantiles of each row at probabilities in (0, 1), [rows × probabilities], row by row.
  // Beyond n / (n + 1) they are +∞, or the end of the support.
  std::vector<double> quantiles(const Batch& batch, const std::vector<Level>& probabilities) const;

  // Of each row the probability that y > threshold, y ≤ threshold, and from < y ≤ to: at least
  // `lower` and at most `upper`.
  std::vector<Interval> above(const Batch& batch, double threshold) const;
  std::vector<Interval> below(const Batch& batch, double threshold) const;
  std::vector<Interval> between(const Batch& batch, double from, double to) const;

 private:
  Predictor predictor_;
  std::shared_ptr<const PredictiveDistribution> distribution_;
};

}  // namespace fcp
