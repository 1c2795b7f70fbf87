// The public values of fcp/predictor.h and fcp/tensors.h.
#include "fcp/predictor.h"

#include <stdexcept>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/predictor/context.h"
#include "fcp/predictor/levels.h"
#include "fcp/predictor/predictor_core.h"
#include "fcp/tensors.h"

namespace fcp {

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
