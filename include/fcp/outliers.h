// Which rows are unlike rows that are known to be usual, without any answers: p-values by distances
// between the features of the network.
//
//   const fcp::Predictor p = fcp::Predictor::load("calibrated.onnx");
//   const fcp::OutlierDetector detector(p, p.schema().encode(usual));
//   const std::vector<double> p_values = detector.p_values(p.schema().encode(fresh));
//   use(fcp::discoveries(p_values, fcp::Level(0.1), detector.dependence()));
//
// The usual rows are parted at random. One part is what rows are compared with: `neighbours`, the
// mean distance to the k nearest of them, or `density`, minus the logarithm of a kernel density of
// them. The scores of the other part make the p-values: with m of them, a row that comes from where
// the usual rows come from has a p-value of at most t with probability at most t, whatever the
// network is and however many features it has. The usual rows must not have trained the network.
// Nothing of them is kept in a file.
//
// With `weights`, the likelihood ratio of the new rows' distribution to that of the usual ones, the
// same holds of rows whose inputs have moved by that ratio; discoveries then need Dependence::kAny.
//
// Tested by tests/calibrate/outliers_test.cc and tests/api/api_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fcp/discoveries.h"
#include "fcp/predictor.h"

namespace fcp {

class FeatureOutliers;  // not installed

struct OutlierOptions {
  std::string score = "neighbours";  // or density
  size_t neighbours = 10;            // k; of density the one whose distance is the kernel's width
  size_t kept = 2000;                // most rows that new ones are compared with
  // Where features are, as in `cut` of a calibration; empty: where the predictor has them, and
  // otherwise where its network is cut by default.
  std::string cut{};
  uint64_t seed = 0;              // of the parting
  std::vector<double> weights{};  // of the usual rows; empty: nothing has moved
};

class OutlierDetector {
 public:
  // An Error where there are fewer than four rows.
  OutlierDetector(const Predictor& predictor, const Batch& usual,
                  const OutlierOptions& options = {});

  size_t reference_rows() const;    // that new ones are compared with
  size_t calibration_rows() const;  // that make the p-values
  // How the p-values of new rows depend on each other.
  Dependence dependence() const;

  // Large ones are unusual.
  std::vector<double> scores(const Batch& rows) const;
  // Small ones are unusual. `weights`: of these rows, where the usual ones have some.
  std::vector<double> p_values(const Batch& rows, const std::vector<double>& weights = {}) const;

 private:
  std::shared_ptr<const FeatureOutliers> detector_;
};

}  // namespace fcp
