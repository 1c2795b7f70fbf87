// A calibrated network at work on new rows: features, regions, scores and p-values, whatever the
// score and the calibration are.
//
//   const CalibratedPredictor predictor(calibrated);
//   const NewRows rows = predictor.describe(x);
//   predictor.region(rows, Level(0.1));
#pragma once

#include <memory>
#include <vector>

#include <torch/types.h>

#include "fcp/calibration/calibrated.h"
#include "fcp/calibration/calibration.h"
#include "fcp/calibration/predictor.h"

namespace fcp {

// What a caller knows of rows besides x; only what the calibration asks for need be there.
struct GivenRows {
  std::vector<int64_t> groups;  // indices of the calibration's group names; −1: unknown
  std::vector<double> weights;  // likelihood ratios
};

// How usual each row's truth is.
struct Judged {
  std::vector<double> scores;    // [N × sides]
  std::vector<double> p_values;  // [N]
};

class CalibratedPredictor {
 public:
  explicit CalibratedPredictor(const Calibrated& calibrated, torch::Device device = torch::kCPU);

  // x [N, …] → features, and the groups or weights that follow from x.
  NewRows describe(const torch::Tensor& x, const GivenRows& given = {}) const;

  Regions region(const NewRows& rows, const Level& level) const;

  // truth [N, K], for label scores [N, 1].
  Judged judge(const NewRows& rows, const torch::Tensor& truth) const;

  const Predictor& predictor() const { return predictor_; }
  const Score& score() const { return predictor_.score(); }
  const Calibration& calibration() const { return *calibration_; }

 private:
  Predictor predictor_;
  std::string output_;  // the one whose largest number is the predicted label
  std::string group_;   // what tells groups; empty: there are none
  bool weighted_;
  bool localized_;
  DensityRatio ratio_;
  std::unique_ptr<Calibration> calibration_;
};

// The label that the network answers for each feature: the largest of the output's numbers.
std::vector<int64_t> predicted_labels(const Predictor& predictor, const std::string& output,
                                      const torch::Tensor& features);

// What an estimated likelihood ratio looks at: x where it is a table, the features elsewhere.
torch::Tensor ratio_input(const torch::Tensor& x, const torch::Tensor& features);

}  // namespace fcp
