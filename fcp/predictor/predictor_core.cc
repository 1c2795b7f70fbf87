#include "fcp/predictor/predictor_core.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/hash.h"
#include "fcp/methods/calibrations/kept_levels.h"
#include "fcp/methods/options.h"
#include "fcp/nn/runtime/batch_free.h"
#include "fcp/predictor.h"
#include "fcp/predictor/context.h"
#include "fcp/predictor/levels.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/region_tensors.h"
#include "fcp/tensors.h"

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

// One key for each row, of its place in the data and its x: equal rows get different keys.
std::vector<uint64_t> row_keys(const torch::Tensor& x, const SideInformation& given) {
  const torch::Tensor rows = x.to(torch::kCPU).contiguous();
  const auto count = static_cast<size_t>(rows.size(0));
  if (!given.places.empty() && given.places.size() != count) {
    fail("found ", given.places.size(), " places for ", count, " rows");
  }
  const size_t bytes = count == 0 ? 0 : rows.nbytes() / count;
  const auto* data = static_cast<const unsigned char*>(rows.data_ptr());
  std::vector<uint64_t> keys;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t place = given.places.empty() ? given.first + i : given.places[i];
    keys.push_back(row_hash(data + i * bytes, bytes, place));
  }
  return keys;
}

}  // namespace

PredictorCore::PredictorCore(CalibrationArtifact artifact, torch::Device device)
    : PredictorCore(std::make_shared<const CalibrationArtifact>(std::move(artifact)), device) {}

PredictorCore::PredictorCore(std::shared_ptr<const CalibrationArtifact> artifact,
                             torch::Device device, std::shared_ptr<const ScoredNetwork> network)
    : artifact_(std::move(artifact)),
      device_(device),
      network_(network ? std::move(network)
                       : std::make_shared<const ScoredNetwork>(artifact_->network,
                                                               artifact_->method.score,
                                                               artifact_->method.cut, device)),
      traits_(artifact_->method.calibration.traits()),
      group_(artifact_->method.calibration.value(field::group)),
      calibration_(
          make_calibration(artifact_->method.calibration, artifact_->rows, score().classes())),
      schema_(std::make_shared<const SchemaData>(*artifact_)),
      public_schema_(Access::schema(schema_)) {}

const PredictorCore::Texts& PredictorCore::texts() const {
  std::call_once(described_, [this] {
    texts_ = {
        .class_names = {}, .method = method_texts(*artifact_), .provenance = artifact_->facts()};
    const auto classes = static_cast<size_t>(score().classes());
    if (classes > 0) texts_.class_names = class_names_of(artifact_->network, classes);
  });
  return texts_;
}

size_t PredictorCore::derived_outputs() const {
  const torch::NoGradGuard no_grad;
  std::vector<int64_t> shape = schema_->row_shape();
  shape.insert(shape.begin(), 1);
  return static_cast<size_t>(unlimited(describe(torch::zeros(shape))).prediction.size(1));
}

size_t PredictorCore::outputs() const {
  if (labels()) return 1;
  if (artifact_->outputs > 0) return artifact_->outputs;
  std::call_once(derived_, [&] { outputs_ = derived_outputs(); });
  return outputs_;
}

SideInformation PredictorCore::placed(const BatchData& batch, bool judged) const {
  SideInformation known = batch.known;
  if (!batch.placed) {
    known.first = judged ? places_.judge(batch.rows()) : places_.answer(batch.rows());
  }
  return known;
}

AnswerData PredictorCore::predict(const BatchData& batch, std::span<const Level> levels) const {
  const torch::NoGradGuard no_grad;
  const RunOnce once;
  AnswerData answer{.levels = {levels.begin(), levels.end()}, .regions = {}};
  if (levels.empty()) {
    answer.regions = {unlimited(describe(batch.x, batch.known))};
  } else {
    for (const Level& level : levels) {
      if (const auto missing = missing_level(artifact_->rows.levels, level)) {
        fail("the calibration ", *missing);
      }
    }
    schema_->check_known(batch);
    answer.regions = regions(describe(batch.x, placed(batch, /*judged=*/false)), levels);
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
                               std::span<const Level> levels, JudgedRegions* judged_by) const {
  const torch::NoGradGuard no_grad;
  const RunOnce once;
  schema_->check_known(batch);
  const TestInputs rows = describe(batch.x, placed(batch, /*judged=*/true));
  Judgement found;
  found.sides = static_cast<size_t>(score().sides());
  found.targets = static_cast<size_t>(score().targets());
  found.scores = scores(rows, truth, names_in(batch));
  if (artifact_->rows.levels.empty()) found.p_values = p_values(rows, truth, found.scores);
  for (const Level& level : levels) {
    found.in.push_back(within(rows, truth, found.scores, level));
  }
  if (judged_by != nullptr) *judged_by = {regions(rows, levels), rows.groups};
  return found;
}

TestInputs PredictorCore::describe(const torch::Tensor& x, const SideInformation& given) const {
  TestInputs rows{network_->features(x), {}, {}};
  if (group_ == kByPrediction) {
    rows.groups = network_->predicted_labels(artifact_->method.score.output, rows.features);
  } else {
    rows.groups = given.groups;
  }
  if (traits_.by_weight) {
    const DensityRatio& ratio = artifact_->ratio;
    rows.weights = ratio.defined() ? ratio.weights(ratio_input(x, rows.features)) : given.weights;
  }
  if (traits_.by_feature) rows.keys = row_keys(x, given);
  return rows;
}

Regions PredictorCore::region(const TestInputs& rows, const Level& level) const {
  return score().region(rows.features, calibration_->radii(rows, level));
}

std::vector<Regions> PredictorCore::regions(const TestInputs& rows,
                                            std::span<const Level> levels) const {
  std::vector<torch::Tensor> radii;  // of every row, [N, S] or [N, C]
  for (const Level& level : levels) radii.push_back(calibration_->radii(rows, level));
  return score().regions(rows.features, radii);
}

Regions PredictorCore::unlimited(const TestInputs& rows) const {
  return score().region(rows.features, std::numeric_limits<double>::infinity());
}

std::vector<double> PredictorCore::radius(const Level& level) const {
  if (!traits_.one_radius) return {};
  const torch::Tensor radii =
      calibration_->radii({torch::empty({1, 1}), {}, {}}, level).contiguous();
  return {radii.data_ptr<double>(), radii.data_ptr<double>() + radii.numel()};
}

std::vector<double> PredictorCore::scores(const TestInputs& rows, const torch::Tensor& truth,
                                          const RowNames& row_name) const {
  std::vector<double> found = score().score(rows.features, truth);
  check_numbers(found, score().sides(), row_name);
  return found;
}

std::vector<double> PredictorCore::p_values(const TestInputs& rows, const torch::Tensor& truth,
                                            const std::vector<double>& scores) const {
  if (group_ != kByLabel) return calibration_->p_values(rows, scores);
  TestInputs by_label = rows;
  const torch::Tensor plain = truth.to(torch::kCPU).flatten();
  const torch::Tensor labels = plain.masked_fill(plain.isinf(), 0).to(torch::kLong).contiguous();
  by_label.groups.assign(labels.data_ptr<int64_t>(), labels.data_ptr<int64_t>() + labels.numel());
  return calibration_->p_values(by_label, scores);
}

std::vector<bool> PredictorCore::within(const TestInputs& rows, const torch::Tensor& truth,
                                        const std::vector<double>& scores,
                                        const Level& level) const {
  torch::Tensor radii = host_doubles(calibration_->radii(rows, level));  // [N, S] or [N, C]
  const std::vector<bool> foreign = foreign_labels(truth);
  if (score().classes() > 0 && radii.size(1) > 1) {
    const torch::Tensor plain = truth.to(torch::kCPU).reshape({-1, 1});
    const torch::Tensor labels = plain.masked_fill(plain.isinf(), 0).to(torch::kLong);
    radii = radii.gather(1, labels).contiguous();
  }
  const std::span<const double> limits = numbers(radii);
  const auto sides = static_cast<size_t>(score().sides() / score().targets());
  const bool strict = artifact_->method.score.value(field::paper);
  std::vector<bool> in(scores.size() / sides, true);
  for (size_t i = 0; i < scores.size(); ++i) {
    const bool within = strict ? scores[i] < limits[i] : scores[i] <= limits[i];
    if (!within) in[i / sides] = false;
  }
  for (size_t i = 0; i < foreign.size(); ++i) {
    if (foreign[i]) in[i] = false;  // an infinite radius takes all labels there are, and no others
  }
  return in;
}

std::vector<bool> PredictorCore::foreign_labels(const torch::Tensor& truth) const {
  if (score().classes() == 0 || !truth.is_floating_point() || truth.dim() != 2 ||
      truth.size(1) != 1) {
    return {};
  }
  const torch::Tensor infinite = truth.isinf().to(torch::kCPU).flatten().contiguous();
  if (!infinite.any().item<bool>()) return {};
  const bool* const from = infinite.data_ptr<bool>();
  return std::vector<bool>(from, from + infinite.numel());
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

namespace fcp {

// The public values of fcp/predictor.h and fcp/tensors.h.

using internal::Access;
using internal::AnswerData;
using internal::PredictorCore;

namespace {

void check_place(const char* what, size_t place, size_t count) {
  if (place < count) return;
  throw std::out_of_range(concat("fcp::Answer: ", what, " ", place, " of ", count));
}

// The regions of a level, of the kind that is asked for.
const Regions& regions_at(const AnswerData& answer, size_t level, bool labels) {
  const bool sets = answer.host.at(0).members.defined();
  if (sets != labels) {
    fail("the answers are ", sets ? "label sets, not intervals" : "intervals, not label sets");
  }
  check_place("level", level, answer.levels.size());
  return answer.host[level];
}

size_t size_of(const torch::Tensor& tensor, int64_t axis) {
  return static_cast<size_t>(tensor.size(axis));
}

std::span<const double> span_of(const torch::Tensor& tensor) {
  return {tensor.data_ptr<double>(), static_cast<size_t>(tensor.numel())};
}

}  // namespace

size_t Answer::rows() const { return size_of(data_->points, 0); }
const std::vector<Level>& Answer::levels() const { return data_->levels; }
size_t Answer::outputs() const { return size_of(data_->points, 1); }

size_t Answer::classes() const {
  const torch::Tensor& members = data_->host.at(0).members;
  return members.defined() ? size_of(members, 1) : 0;
}

size_t Answer::pixels() const {
  const torch::Tensor& members = data_->host.at(0).members;
  return members.defined() && members.dim() > 2 ? size_of(members, 2) : 1;
}

double Answer::point(size_t row, size_t output) const {
  check_place("row", row, rows());
  check_place("output", output, outputs());
  return points()[row * outputs() + output];
}

std::span<const double> Answer::points() const { return span_of(data_->points); }

Interval Answer::interval(size_t row, size_t output, size_t level) const {
  check_place("row", row, rows());
  check_place("output", output, outputs());
  const size_t place = row * outputs() + output;
  return {lower(level)[place], upper(level)[place]};
}

std::vector<Interval> Answer::parts(size_t row, size_t output, size_t level) const {
  const Interval whole = interval(row, output, level);
  const torch::Tensor& parts = regions_at(*data_, level, false).parts;
  if (!parts.defined()) return {whole};
  const size_t count = size_of(parts, 2);
  const double* ends = parts.data_ptr<double>() + (row * outputs() + output) * count * 2;
  std::vector<Interval> found;
  for (size_t i = 0; i < count; ++i, ends += 2) {
    const Interval part{ends[0], ends[1]};
    if (!part.empty()) found.push_back(part);
  }
  return found;
}

std::span<const double> Answer::lower(size_t level) const {
  return span_of(regions_at(*data_, level, false).lower);
}

std::span<const double> Answer::upper(size_t level) const {
  return span_of(regions_at(*data_, level, false).upper);
}

std::vector<size_t> Answer::labels(size_t row, size_t level, size_t pixel) const {
  std::vector<size_t> labels;
  const auto count = static_cast<size_t>(regions_at(*data_, level, true).members.size(1));
  for (size_t label = 0; label < count; ++label) {
    if (in_set(row, label, level, pixel)) labels.push_back(label);
  }
  return labels;
}

bool Answer::in_set(size_t row, size_t label, size_t level, size_t pixel) const {
  const torch::Tensor& members = regions_at(*data_, level, true).members;
  check_place("row", row, rows());
  check_place("label", label, classes());
  check_place("pixel", pixel, pixels());
  return members.data_ptr<bool>()[(row * classes() + label) * pixels() + pixel];
}

Predictor Predictor::load(const std::string& path, const std::string& device) {
  return internal::make_predictor(read_artifact(path), device_named(device));
}

void Predictor::save(const std::string& path) const { write_artifact(core_->artifact(), path); }

const InputSchema& Predictor::schema() const { return core_->public_schema(); }

Answer Predictor::predict(const Batch& batch, const std::vector<Level>& levels) const {
  AnswerData answer = core_->predict(Access::data(batch), levels);
  internal::bring_to_host(answer);
  return Access::answer(std::move(answer));
}

Judgement Predictor::judge(const Batch& batch, std::span<const float> truth,
                           const std::vector<Level>& levels) const {
  return core_->judge(Access::data(batch), core_->truth_of(truth, batch.rows()), levels);
}

std::vector<double> Predictor::p_values(const Batch& batch, std::span<const float> truth) const {
  core_->check_all_scores();
  return judge(batch, truth).p_values;
}

size_t Predictor::outputs() const { return core_->outputs(); }
const std::vector<std::string>& Predictor::classes() const { return core_->class_names(); }
size_t Predictor::calibration_rows() const { return core_->artifact().rows.count(); }
const std::vector<Level>& Predictor::kept_levels() const { return core_->artifact().rows.levels; }
const std::map<std::string, std::string>& Predictor::method() const { return core_->method(); }

std::string Predictor::method(const std::string& option) const {
  const auto found = method().find(option);
  return found == method().end() ? "" : found->second;
}

std::vector<double> Predictor::radius(const Level& level) const {
  return core_->artifact().radius(level);
}

std::vector<std::string> Predictor::warnings(const Level& level) const {
  return level_warnings(core_->artifact(), level);
}

const std::map<std::string, std::string>& Predictor::provenance() const {
  return core_->provenance();
}

Batch encode(const InputSchema& schema, const torch::Tensor& x, const RowInfo& info) {
  return Access::batch(Access::data(schema).encode(x, info));
}

TensorRegions tensors(const Answer& answer, size_t level) {
  const AnswerData& data = Access::data(answer);
  check_place("level", level, data.regions.size());
  const Regions& found = data.regions[level];
  TensorRegions regions{.prediction = found.prediction};
  if (data.levels.empty()) return regions;
  regions.lower = found.lower;
  regions.upper = found.upper;
  regions.members = found.members;
  regions.parts = found.parts;
  return regions;
}

torch::Tensor features(const Predictor& predictor, const Batch& batch) {
  const torch::NoGradGuard no_grad;
  return Access::core(predictor).network().features(Access::data(batch).x);
}

std::vector<double> scores(const Predictor& predictor, const Batch& batch, const torch::Tensor& y) {
  const torch::NoGradGuard no_grad;
  return Access::core(predictor).score().score(features(predictor, batch), y);
}

}  // namespace fcp
