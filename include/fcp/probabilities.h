// The probabilities of the classes, of a Predictor of labels.
//
//   const fcp::Probabilities p(fcp::Predictor::load("birds.onnx"));
//   const fcp::Batch rows = p.predictor().schema().encode(x);
//   use(p.of(rows).merged, p.of(rows).p0);   // [rows × classes], row by row
//
// Calibrated with `probabilities` venn-abers each class has a pair, one of which is calibrated
// whatever the network is: with Y whether the row is of the class, E(Y | p_Y) = p_Y. `merged` is
// p1 / (1 − p0 + p1), for more than two classes divided by the sum of all. Otherwise `merged` is
// the softmax of the network, and there is no pair. A value, as Predictor is, and as safe.
//
// Tested by tests/api/api_test.cc and tests/predictor/distribution_test.cc.
#pragma once

#include <memory>
#include <vector>

#include "fcp/predictor.h"

namespace fcp {

class ClassProbabilities;  // not installed

// [rows × classes], row by row; p0 and p1 are empty where the predictor has no pair.
struct RowProbabilities {
  std::vector<double> merged, p0, p1;
};

class Probabilities {
 public:
  // An Error where the predictor gives intervals, or sets for pixels.
  explicit Probabilities(Predictor predictor);

  const Predictor& predictor() const { return predictor_; }
  bool calibrated() const;

  RowProbabilities of(const Batch& batch) const;

 private:
  Predictor predictor_;
  std::shared_ptr<const ClassProbabilities> probabilities_;
};

}  // namespace fcp
