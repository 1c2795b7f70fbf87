// What stands behind the public Predictor: an artifact, what runs it, and how its rows are encoded.
// Tensors in and out; the public class turns them into plain values.
//
//   const auto core = std::make_shared<const PredictorCore>(read_artifact(path), torch::kCPU);
//   const AnswerData answer = core->predict(batch_of(rows, known), levels);
//   sink(answer.regions);
//
// Immutable; any number of threads may use it.
// Tested by tests/predictor/predictor_test.cc.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/predictor/artifact.h"
#include "fcp/predictor/batch.h"
#include "fcp/predictor/input_schema.h"
#include "fcp/predictor/tensor_predictor.h"

namespace fcp::internal {

struct JudgedRegions {
  std::vector<Regions> regions;  // one per level
  std::vector<int64_t> groups;   // by which the rows were judged; empty: by none
};

class PredictorCore {
 public:
  PredictorCore(CalibrationArtifact artifact, torch::Device device);
  // With the artifact's network as it has been made already.
  PredictorCore(std::shared_ptr<const CalibrationArtifact> artifact, torch::Device device,
                std::shared_ptr<const TensorPredictor> tensors);

  const CalibrationArtifact& artifact() const { return *artifact_; }
  const TensorPredictor& tensors() const { return *tensors_; }
  const SchemaData& schema() const { return *schema_; }
  const InputSchema& public_schema() const { return public_schema_; }
  torch::Device device() const { return device_; }
  bool labels() const { return tensors_->score().classes() > 0; }
  const std::vector<std::string>& class_names() const { return texts().class_names; }
  const std::map<std::string, std::string>& method() const { return texts().method; }
  const std::map<std::string, std::string>& provenance() const { return texts().provenance; }

  // Intervals per row; 1 for labels. Files of fcp 0.2 do not say it: it is then derived from the
  // answer for a row of zeros, once; an Error where rows have no shape of their own.
  size_t outputs() const;

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

 private:
  TestInputs describe(const BatchData& batch, bool judged) const;
  size_t derived_outputs() const;

  struct Texts {
    std::vector<std::string> class_names;
    std::map<std::string, std::string> method, provenance;
  };
  const Texts& texts() const;  // made when somebody asks for one of them

  std::shared_ptr<const CalibrationArtifact> artifact_;
  torch::Device device_;
  std::shared_ptr<const TensorPredictor> tensors_;
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
