// A calibrated network at work on new rows: features, regions, scores and p-values, whatever the
// score and the calibration are.
//
//   const TensorPredictor predictor(calibrated);
//   const TestInputs rows = predictor.describe(x);
//   predictor.region(rows, Level(0.1));
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include <torch/types.h>

#include "fcp/methods/calibrations/calibration.h"
#include "fcp/predictor/artifact.h"
#include "fcp/predictor/scored_network.h"

namespace fcp {

// What a caller knows of rows besides x; only what the calibration asks for need be there.
struct SideInformation {
  std::vector<int64_t> groups;  // indices of the calibration's group names; −1: unknown
  std::vector<double> weights;  // likelihood ratios
  // Localized draws by the place of a row: that of the first one, or those of all of them.
  uint64_t first = 0;
  std::vector<uint64_t> places{};
};

// Places for rows that are not part of one set of data, such as single rows of a client: one after
// the other, so that no draw is used twice. Regions and truths are counted apart: where rows are
// judged in the order in which they were answered, each is judged by the draw it was answered with.
class RowPlaces {
 public:
  // That of the first of `rows` rows.
  uint64_t answer(uint64_t rows) const { return answered_.fetch_add(rows); }
  uint64_t judge(uint64_t rows) const { return judged_.fetch_add(rows); }

 private:
  mutable std::atomic<uint64_t> answered_ = 0, judged_ = 0;
};

// How usual each row's truth is.
struct Conformity {
  std::vector<double> scores;    // [N × sides]
  std::vector<double> p_values;  // [N × targets]
};

class TensorPredictor {
 public:
  explicit TensorPredictor(const CalibrationArtifact& artifact, torch::Device device = torch::kCPU);
  // The same with the artifact's network as it has been made already, at its cut.
  TensorPredictor(std::shared_ptr<const ScoredNetwork> network,
                  const CalibrationArtifact& artifact);

  // x [N, …] → features, and the groups or weights that follow from x.
  TestInputs describe(const torch::Tensor& x, const SideInformation& given = {}) const;

  Regions region(const TestInputs& rows, const Level& level) const;

  // The regions of an infinite radius, for their prediction, which is that of every level. Needs no
  // group or weight.
  Regions unlimited(const TestInputs& rows) const;

  // truth [N, K], for label scores [N, 1].
  Conformity judge(const TestInputs& rows, const torch::Tensor& truth) const;
  std::vector<double> p_values(const TestInputs& rows, const torch::Tensor& truth,
                               const std::vector<double>& scores) const;
  // Whether each row's scores (or each target's) are all within its radii, and its label, if it is
  // one, among the classes; the paper's code is strict.
  std::vector<bool> within(const TestInputs& rows, const torch::Tensor& truth,
                           const std::vector<double>& scores, const Level& level) const;
  // Which rows of a score of labels have a truth that is none of its classes; empty: none has.
  std::vector<bool> foreign_labels(const torch::Tensor& truth) const;

  // The radius of each side where it is the same for all rows, by split calibration; else empty.
  std::vector<double> radius(const Level& level) const;

  const ScoredNetwork& predictor() const { return *network_; }
  torch::Tensor features(const torch::Tensor& x) const { return network_->features(x); }
  const Score& score() const { return network_->score(); }
  const Calibration& calibration() const { return *calibration_; }

 private:
  std::shared_ptr<const ScoredNetwork> network_;
  std::string output_;  // the one whose largest number is the predicted label
  std::string group_;   // what tells groups; empty: there are none
  bool split_;
  bool weighted_;
  bool localized_;
  bool strict_;
  DensityRatio ratio_;
  std::unique_ptr<Calibration> calibration_;
};

// The label that the network answers for each feature: the largest of the output's numbers.
std::vector<int64_t> predicted_labels(const ScoredNetwork& predictor, const std::string& output,
                                      const torch::Tensor& features);

// What an estimated likelihood ratio looks at: x where it is a table, the features elsewhere.
torch::Tensor ratio_input(const torch::Tensor& x, const torch::Tensor& features);

}  // namespace fcp
