// What stands behind the public Predictor: an artifact, what runs it, and how its rows are encoded.
// Tensors in and out; the public class turns them into plain values.
//
//   const auto core = std::make_shared<const PredictorCore>(read_artifact(path), torch::kCPU);
//   const AnswerData answer = core->predict(batch_of(rows, known), levels);
//   sink(answer.regions);
//
// or step by step, where features are wanted once for several questions:
//
//   const TestInputs rows = core->describe(x, known);
//   core->region(rows, Level(0.1));
//
// Immutable; any number of threads may use it.
// Tested by tests/predictor/predictor_test.cc and predictor_core_test.cc.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/methods/calibrations/calibration.h"
#include "fcp/predictor/artifact.h"
#include "fcp/predictor/batch.h"
#include "fcp/predictor/input_schema.h"
#include "fcp/predictor/scored_network.h"

namespace fcp::internal {

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

struct JudgedRegions {
  std::vector<Regions> regions;  // one per level
  std::vector<int64_t> groups;   // by which the rows were judged; empty: by none
};

class PredictorCore {
 public:
  explicit PredictorCore(CalibrationArtifact artifact, torch::Device device = torch::kCPU);
  // `network`: the artifact's, where it has been made already, at its cut.
  PredictorCore(std::shared_ptr<const CalibrationArtifact> artifact, torch::Device device,
                std::shared_ptr<const ScoredNetwork> network = nullptr);

  const CalibrationArtifact& artifact() const { return *artifact_; }
  const ScoredNetwork& network() const { return *network_; }
  const Score& score() const { return network_->score(); }
  const Calibration& calibration() const { return *calibration_; }
  const SchemaData& schema() const { return *schema_; }
  const InputSchema& public_schema() const { return public_schema_; }
  torch::Device device() const { return device_; }
  bool labels() const { return score().classes() > 0; }
  const std::vector<std::string>& class_names() const { return texts().class_names; }
  const std::map<std::string, std::string>& method() const { return texts().method; }
  const std::map<std::string, std::string>& provenance() const { return texts().provenance; }

  // Intervals per row; 1 for labels. Files of fcp 0.2 do not say it: it is then derived from the
  // answer for a row of zeros, once; an Error where rows have no shape of their own.
  size_t outputs() const;

  // The radius of each side where it is the same for all rows, by split calibration, from scores in
  // any order; else empty.
  std::vector<double> radius(const Level& level) const;

  // The regions at all levels, in their order, from one run of the network; see Predictor::predict.
  AnswerData predict(const BatchData& batch, std::span<const Level> levels) const;

  // truth [N, K], for label scores [N, 1]; see Predictor::judge. p-values where all scores are
  // kept. `regions`: those that the truths were judged by, where wanted.
  Judgement judge(const BatchData& batch, const torch::Tensor& truth, std::span<const Level> levels,
                  JudgedRegions* regions = nullptr) const;

  // Truths as judge takes them: outputs() numbers, or one label, per row. y must outlive them.
  torch::Tensor truth_of(std::span<const float> y, size_t rows) const;

  // An Error where radii of some levels alone are kept, from which no p-value follows.
  void check_all_scores() const;

  // x [N, …] → features, and the groups or weights that follow from x.
  TestInputs describe(const torch::Tensor& x, const SideInformation& given = {}) const;

  Regions region(const TestInputs& rows, const Level& level) const;
  // One per level.
  std::vector<Regions> regions(const TestInputs& rows, std::span<const Level> levels) const;
  // The regions of an infinite radius, for their prediction, which is that of every level. Needs no
  // group or weight.
  Regions unlimited(const TestInputs& rows) const;

  // [N × sides]. An Error names a row whose score is NaN because the network's answer is.
  std::vector<double> scores(const TestInputs& rows, const torch::Tensor& truth,
                             const RowNames& row_name) const;
  // [N × targets]
  std::vector<double> p_values(const TestInputs& rows, const torch::Tensor& truth,
                               const std::vector<double>& scores) const;
  // Whether each row's scores (or each target's) are all within its radii, and its label, if it is
  // one, among the classes; the paper's code is strict.
  std::vector<bool> within(const TestInputs& rows, const torch::Tensor& truth,
                           const std::vector<double>& scores, const Level& level) const;
  // Which rows of a score of labels have a truth that is none of its classes; empty: none has.
  std::vector<bool> foreign_labels(const torch::Tensor& truth) const;

 private:
  SideInformation placed(const BatchData& batch, bool judged) const;
  size_t derived_outputs() const;

  struct Texts {
    std::vector<std::string> class_names;
    std::map<std::string, std::string> method, provenance;
  };
  const Texts& texts() const;  // made when somebody asks for one of them

  std::shared_ptr<const CalibrationArtifact> artifact_;
  torch::Device device_;
  std::shared_ptr<const ScoredNetwork> network_;
  CalibrationTraits traits_;
  std::string group_;  // what tells groups; empty: there are none
  std::unique_ptr<Calibration> calibration_;
  std::shared_ptr<const SchemaData> schema_;
  InputSchema public_schema_;
  RowPlaces places_;
  mutable std::once_flag derived_, described_;
  mutable size_t outputs_ = 0;  // of an artifact that does not say it; 0: not derived yet
  mutable Texts texts_;
};

Predictor make_predictor(CalibrationArtifact artifact, torch::Device device);

// The answer's tensors on the host, and its points as doubles.
void bring_to_host(AnswerData& answer);

}  // namespace fcp::internal
