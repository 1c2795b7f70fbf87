#include "fcp/predictor/predictor_core.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/methods/calibrations/kept_levels.h"
#include "fcp/methods/options.h"
#include "fcp/nn/runtime/batch_free.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/region_tensors.h"

namespace fcp::internal {
namespace {

std::map<std::string, std::string> method_texts(const CalibrationArtifact& artifact) {
  std::map<std::string, std::string> texts;
  for (const Option& option : option_table()) {
    texts[option.name] = option_text(value_in(option, artifact.method));
  }
  texts["cut"] = artifact.method.cut;
  if (!artifact.method.calibration.traits().by_group) texts["group"] = "";
  return texts;
}

RowNames names_in(const BatchData& batch) {
  return [&batch](size_t row) { return batch.name_of(row); };
}

// Radii of every row, [N, S] or [N, C], one for each level.
std::vector<torch::Tensor> radii_at(const Calibration& calibration, const TestInputs& rows,
                                    std::span<const Level> levels) {
  std::vector<torch::Tensor> radii;
  for (const Level& level : levels) radii.push_back(calibration.radii(rows, level));
  return radii;
}

}  // namespace

PredictorCore::PredictorCore(CalibrationArtifact artifact, torch::Device device)
    : PredictorCore(std::make_shared<const CalibrationArtifact>(std::move(artifact)), device, {}) {}

PredictorCore::PredictorCore(std::shared_ptr<const CalibrationArtifact> artifact,
                             torch::Device device, std::shared_ptr<const TensorPredictor> tensors)
    : artifact_(std::move(artifact)),
      device_(device),
      tensors_(tensors ? std::move(tensors)
                       : std::make_shared<const TensorPredictor>(*artifact_, device)),
      schema_(std::make_shared<const SchemaData>(*artifact_)),
      public_schema_(Access::schema(schema_)) {}

const PredictorCore::Texts& PredictorCore::texts() const {
  std::call_once(described_, [this] {
    texts_ = {
        .class_names = {}, .method = method_texts(*artifact_), .provenance = artifact_->facts()};
    const auto classes = static_cast<size_t>(tensors_->score().classes());
    if (classes > 0) texts_.class_names = class_names_of(artifact_->network, classes);
  });
  return texts_;
}

size_t PredictorCore::derived_outputs() const {
  const torch::NoGradGuard no_grad;
  std::vector<int64_t> shape = schema_->row_shape();
  shape.insert(shape.begin(), 1);
  const TestInputs row = tensors_->describe(torch::zeros(shape));
  return static_cast<size_t>(tensors_->unlimited(row).prediction.size(1));
}

size_t PredictorCore::outputs() const {
  if (labels()) return 1;
  if (artifact_->outputs > 0) return artifact_->outputs;
  std::call_once(derived_, [&] { outputs_ = derived_outputs(); });
  return outputs_;
}

TestInputs PredictorCore::describe(const BatchData& batch, bool judged) const {
  SideInformation known = batch.known;
  if (!batch.placed) {
    known.first = judged ? places_.judge(batch.rows()) : places_.answer(batch.rows());
  }
  return tensors_->describe(batch.x, known);
}

AnswerData PredictorCore::predict(const BatchData& batch, std::span<const Level> levels) const {
  const torch::NoGradGuard no_grad;
  const RunOnce once;
  AnswerData answer{.levels = {levels.begin(), levels.end()}, .regions = {}};
  if (levels.empty()) {
    answer.regions = {tensors_->unlimited(tensors_->describe(batch.x, batch.known))};
  } else {
    for (const Level& level : levels) {
      if (const auto missing = missing_level(artifact_->rows.levels, level)) {
        fail("the calibration ", *missing);
      }
    }
    schema_->check_known(batch);
    const TestInputs rows = describe(batch, /*judged=*/false);
    answer.regions =
        tensors_->score().regions(rows.features, radii_at(tensors_->calibration(), rows, levels));
  }
  for (const Regions& regions : answer.regions) check_numbers(regions, names_in(batch));
  return answer;
}

torch::Tensor PredictorCore::truth_of(std::span<const float> y, size_t rows) const {
  const bool pixels = labels() && artifact_->method.score.pixels > 0;
  const size_t width = pixels && rows > 0 ? y.size() / rows : outputs();
  if (y.size() != rows * width || y.empty()) {
    fail("y: found ", y.size(), " numbers for ", rows, " rows, expected ", rows * width);
  }
  for (size_t i = 0; i < y.size(); ++i) {
    if (!std::isnan(y[i])) continue;
    fail("y: row ", i / width, " (from 0) has NaN in column ", i % width, ", expected a number");
  }
  return torch::from_blob(const_cast<float*>(y.data()),
                          {static_cast<int64_t>(rows), static_cast<int64_t>(width)}, torch::kFloat);
}

void PredictorCore::check_all_scores() const {
  if (const auto missing = missing_scores(artifact_->rows.levels)) {
    fail("the calibration ", *missing, "; a p-value needs all scores");
  }
}

Judgement PredictorCore::judge(const BatchData& batch, const torch::Tensor& truth,
                               std::span<const Level> levels, JudgedRegions* regions) const {
  const torch::NoGradGuard no_grad;
  const RunOnce once;
  schema_->check_known(batch);
  const TestInputs rows = describe(batch, /*judged=*/true);
  Judgement found;
  found.sides = static_cast<size_t>(tensors_->score().sides());
  found.targets = static_cast<size_t>(tensors_->score().targets());
  if (artifact_->rows.levels.empty()) {
    Conformity judged = judge_named(*tensors_, rows, truth, names_in(batch));
    found.scores = std::move(judged.scores);
    found.p_values = std::move(judged.p_values);
  } else {
    found.scores = numbers_of_scores(*tensors_, rows, truth, names_in(batch));
  }
  for (const Level& level : levels) {
    found.in.push_back(tensors_->within(rows, truth, found.scores, level));
  }
  if (regions != nullptr) {
    regions->regions =
        tensors_->score().regions(rows.features, radii_at(tensors_->calibration(), rows, levels));
    regions->groups = rows.groups;
  }
  return found;
}

void bring_to_host(AnswerData& answer) {
  for (const Regions& regions : answer.regions) {
    Regions host = regions;
    host.prediction = regions.prediction.to(torch::kCPU).contiguous();
    if (regions.members.defined()) {
      host.members = host_members(regions);
    } else {
      host.lower = host_doubles(regions.lower);
      host.upper = host_doubles(regions.upper);
    }
    if (regions.parts.defined()) host.parts = host_doubles(regions.parts);
    answer.host.push_back(std::move(host));
  }
  answer.points = host_doubles(answer.host.at(0).prediction);
}

Predictor make_predictor(CalibrationArtifact artifact, torch::Device device) {
  return Access::predictor(std::make_shared<const PredictorCore>(std::move(artifact), device));
}

}  // namespace fcp::internal
