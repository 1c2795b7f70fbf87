#include "python/predictor.h"

#include <algorithm>
#include <iostream>
#include <optional>

#include <nlohmann/json.hpp>
#include <pybind11/stl.h>
#include <torch/cuda.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/output_file.h"
#include "fcp/evaluate/evaluate.h"
#include "fcp/methods/scores/cqr.h"
#include "fcp/methods/scores/head_outputs.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/predictor/batch.h"
#include "fcp/predictor/predict.h"

#include "apps/report/choices_text.h"
#include "apps/report/html.h"
#include "apps/report/json.h"
#include "python/arrays.h"

namespace fcp {
namespace {

namespace py = pybind11;

// Regions of all rows and levels, as Python gets them.
struct RegionArrays {
  torch::Tensor prediction;  // [N, K] doubles; of labels [N, 1] longs
  torch::Tensor answer;      // [N, K, 2, levels]; of labels [N, C, levels] bools

  // Regions of all rows at one level, where their ends are one tensor already.
  static std::optional<RegionArrays> whole(const Regions& regions, int64_t rows) {
    const torch::Tensor &lower = regions.lower, &upper = regions.upper;
    if (regions.members.defined() || regions.parts.defined()) return std::nullopt;
    for (const torch::Tensor* part : {&regions.prediction, &lower, &upper}) {
      if (!part->is_cpu() || !part->is_contiguous() || part->dim() != 2) return std::nullopt;
      if (part->scalar_type() != torch::kDouble || part->numel() != rows) return std::nullopt;
    }
    if (!lower.is_alias_of(upper)) return std::nullopt;
    const int64_t apart = upper.storage_offset() - lower.storage_offset();
    if (apart < rows) return std::nullopt;
    return RegionArrays{regions.prediction, lower.as_strided({rows, 1, 2, 1}, {1, 1, apart, 1})};
  }

  void put(const Regions& regions, int64_t first, int64_t count, int64_t level) {
    if (put_column(regions, first, count)) return;
    prediction.narrow(0, first, count).copy_(regions.prediction);
    const torch::Tensor part = answer.narrow(0, first, count).select(-1, level);
    if (regions.members.defined()) {
      part.copy_(regions.members);
    } else {
      part.select(-1, 0).copy_(regions.lower);
      part.select(-1, 1).copy_(regions.upper);
    }
  }

 private:
  // The usual case, one output and one level, in one pass.
  bool put_column(const Regions& regions, int64_t first, int64_t count) {
    if (answer.dim() != 4 || answer.size(1) * answer.size(3) != 1) return false;
    for (const torch::Tensor* part : {&regions.prediction, &regions.lower, &regions.upper}) {
      if (!part->is_cpu() || !part->is_contiguous()) return false;
      if (part->scalar_type() != torch::kDouble || part->numel() != count) return false;
    }
    const double* const from = regions.prediction.data_ptr<double>();
    const double* const lower = regions.lower.data_ptr<double>();
    const double* const upper = regions.upper.data_ptr<double>();
    double* const means = prediction.data_ptr<double>() + first;
    double* const ends = answer.data_ptr<double>() + 2 * first;
    for (int64_t i = 0; i < count; ++i) {
      means[i] = from[i];
      ends[2 * i] = lower[i];
      ends[2 * i + 1] = upper[i];
    }
    return true;
  }
};

RegionArrays empty_arrays(const Regions& regions, int64_t rows, size_t levels) {
  const bool sets = regions.members.defined();
  std::vector<int64_t> shape = {rows, (sets ? regions.members : regions.prediction).size(1)};
  if (!sets) shape.push_back(2);
  shape.push_back(static_cast<int64_t>(levels));
  return {torch::empty({rows, regions.prediction.size(1)}, sets ? torch::kLong : torch::kDouble),
          torch::empty(shape, sets ? torch::kBool : torch::kDouble)};
}

}  // namespace

void StderrObserver::chosen(const Choices& choices) {
  for (const std::string& text : choices_text(choices)) note(text);
}

void StderrObserver::note(const std::string& text) {
  if (verbose_) std::cerr << text << '\n';
}

void StderrObserver::warning(const std::string& text) { note("warning: " + text); }

void warn(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 2) != 0) throw py::error_already_set();
  }
}

Level level_of(const py::handle& alpha) {
  if (py::isinstance<py::str>(alpha)) return Level::parse(alpha.cast<std::string>());
  if (!py::hasattr(alpha, "__float__")) {
    fail("alpha: found ", py::repr(alpha).cast<std::string>(), ", expected a number such as 0.1");
  }
  return Level(alpha.cast<double>());
}

torch::Device device_of(const std::string& name) {
  if (name != "cpu" && name != "cuda") fail("device: found '", name, "', expected 'cpu' or 'cuda'");
  if (name == "cuda" && !torch::cuda::is_available()) {
    fail("device: this machine, or this build of libtorch, has no CUDA device");
  }
  return device_named(name);  // with products of all bits
}

RowFacts facts_of(const py::dict& given) {
  RowFacts facts;
  facts.groups.ids = given["groups"].cast<std::vector<int64_t>>();
  facts.groups.names = given["group_names"].cast<std::vector<std::string>>();
  facts.shown.ids = given["shown"].cast<std::vector<int64_t>>();
  facts.shown.names = given["shown_names"].cast<std::vector<std::string>>();
  facts.weights = given["weights"].cast<std::vector<double>>();
  return facts;
}

const CalibrationArtifact& LoadedPredictor::artifact() const {
  const std::lock_guard lock(finishing_);
  made_.finish();
  return artifact_;
}

std::map<std::string, std::string> LoadedPredictor::outputs() const {
  const ScoreOptions& score = artifact_.method.score;
  const Network& head = *predictor_->predictor().shared_head();
  const auto name = [&](size_t output) { return head.outputs()[output].name; };
  std::map<std::string, std::string> roles;
  if (score.find(field::low) != nullptr) {
    const auto [low, high] =
        quantile_outputs(head, score.value(field::low), score.value(field::high));
    roles = {{"low", name(low)}, {"high", name(high)}};
  } else {
    roles[labels() ? "classes" : "prediction"] = name(output_index(head, score.output));
  }
  const std::string spread = score.value(field::normalize);
  if (!spread.empty()) roles["spread"] = spread;
  if (score.traits().reads_heads) {
    const bool grid = score.find(field::quantiles) != nullptr;
    roles[grid ? "quantiles" : "spread"] = score.learned_outputs()[0];
  }
  return roles;
}

py::tuple LoadedPredictor::regions(const py::object& array, const py::list& alphas,
                                   const py::dict& given, int64_t before) const {
  const torch::Tensor x = as_rows(tensor_of(array, "X"), "X");
  check_missing(x, missing_, before);
  const RowFacts facts = facts_of(given);
  std::vector<Level> levels;
  for (const py::handle& alpha : alphas) levels.push_back(level_of(alpha));
  RegionArrays found;
  {
    py::gil_scoped_release unlocked;
    torch::NoGradGuard no_grad;
    const TensorRows source(x, {}, artifact_.network);
    const int64_t total = x.size(0);
    if (total == 0) fail("X: has no rows");
    check_facts(facts, static_cast<size_t>(total));
    const auto batch = static_cast<int64_t>(batch_for(source, artifact_.network, device_));
    const uint64_t place = places_.answer(static_cast<uint64_t>(total));
    for (int64_t first = 0; first < total; first += batch) {
      check_signals();
      const int64_t count = std::min(batch, total - first);
      SideInformation known =
          side_information(facts, artifact_.rows.group_names.size(), static_cast<size_t>(first),
                           static_cast<size_t>(count));
      known.first += place;
      const auto row_name = [&](size_t row) {
        return concat("X: row ", before + first + static_cast<int64_t>(row), " (from 0)");
      };
      const TestInputs rows = predictor_->describe(
          input_rows(x.narrow(0, first, count), artifact_.network, before + first), known);
      if (levels.empty()) {
        const Regions regions = predictor_->unlimited(rows);
        internal::check_numbers(regions, row_name);
        if (!found.answer.defined()) found = empty_arrays(regions, total, 0);
        found.prediction.narrow(0, first, count).copy_(regions.prediction);
      }
      for (size_t a = 0; a < levels.size(); ++a) {
        const Regions regions = predictor_->region(rows, levels[a]);
        internal::check_numbers(regions, row_name);
        if (count == total && levels.size() == 1) {
          if (auto whole = RegionArrays::whole(regions, total)) {
            found = *std::move(whole);
            continue;
          }
        }
        if (!found.answer.defined()) found = empty_arrays(regions, total, levels.size());
        found.put(regions, first, count, static_cast<int64_t>(a));
      }
    }
  }
  const torch::Tensor prediction = labels() ? found.prediction.squeeze(1) : found.prediction;
  return py::make_tuple(array_of(prediction), lent_array(found.answer));
}

py::tuple LoadedPredictor::check(const py::object& array, const py::object& answers,
                                 const py::object& alpha, const py::dict& given) const {
  check_missing(as_rows(tensor_of(array, "X"), "X"), missing_);
  TensorRows rows(tensor_of(array, "X"), tensor_of(answers, "y"), artifact_.network);
  const auto total = static_cast<int64_t>(*rows.size());
  const CheckOptions options{.level = level_of(alpha),
                             .facts = facts_of(given),
                             .first = places_.judge(static_cast<uint64_t>(total))};
  std::vector<double> scores, p_values;
  torch::Tensor inside = torch::empty({total}, torch::kBool);
  {
    py::gil_scoped_release unlocked;
    const internal::PredictorCore predictor(artifact(), device_);
    fcp::check(predictor, rows, options, {.device = device_}, [&](const CheckedRow& row) {
      scores.insert(scores.end(), row.scores.begin(), row.scores.end());
      p_values.push_back(row.p_value);
      inside.data_ptr<bool>()[row.row] = row.in;
    });
  }
  const torch::Tensor all =
      torch::tensor(scores, torch::kDouble).reshape({total, predictor_->score().sides()});
  return py::make_tuple(array_of(all), array_of(torch::tensor(p_values, torch::kDouble)),
                        array_of(inside));
}

std::string LoadedPredictor::evaluate(const py::object& array, const py::object& answers,
                                      const py::object& alpha, const py::dict& given,
                                      const std::string& report, bool verbose) const {
  check_missing(as_rows(tensor_of(array, "X"), "X"), missing_);
  TensorRows rows(tensor_of(array, "X"), tensor_of(answers, "y"), artifact_.network);
  const RowFacts facts = facts_of(given);
  const Level level = level_of(alpha);
  StderrObserver observer(verbose);
  const Context context{.device = device_, .observer = &observer};
  py::gil_scoped_release unlocked;
  const EvaluationReport found = fcp::evaluate(
      artifact(), rows, {.level = level, .all_levels = !report.empty(), .facts = facts}, context);
  if (!report.empty()) write_file(report, report_html(found));
  return json_text(report_json(found));
}

}  // namespace fcp
