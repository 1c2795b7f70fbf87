#include "python/predictor.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <optional>
#include <span>

#include <nlohmann/json.hpp>
#include <pybind11/stl.h>
#include <torch/cuda.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/output_file.h"
#include "fcp/evaluate/evaluate.h"
#include "fcp/methods/scores/cqr.h"
#include "fcp/methods/scores/outputs.h"

#include "apps/report/choices_text.h"
#include "apps/report/json.h"
#include "apps/report/page.h"
#include "python/arrays.h"

namespace fcp {
namespace {

namespace py = pybind11;

using internal::AnswerData;

// Regions of all rows and levels, as Python gets them.
struct RegionArrays {
  torch::Tensor prediction;  // [N, K] doubles; of labels [N, 1] longs
  torch::Tensor answer;      // [N, K, 2, levels]; of labels [N, C, levels] bools

  // Those of the rows from `first` on, of `total`; one for each level, or without levels one whose
  // ends mean nothing.
  void put(const AnswerData& found, int64_t first, int64_t total) {
    const int64_t count = found.regions[0].prediction.size(0);
    if (count == total && found.levels.size() == 1) {
      if (auto all = whole(found.regions[0], total)) {
        *this = *std::move(all);
        return;
      }
    }
    if (!answer.defined()) *this = empty(found.regions[0], total, found.levels.size());
    if (found.levels.empty()) {
      prediction.narrow(0, first, count).copy_(found.regions[0].prediction);
    }
    for (size_t a = 0; a < found.levels.size(); ++a) {
      put_level(found.regions[a], first, count, static_cast<int64_t>(a));
    }
  }

 private:
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

  void put_level(const Regions& regions, int64_t first, int64_t count, int64_t level) {
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

  static RegionArrays empty(const Regions& regions, int64_t rows, size_t levels) {
    const bool sets = regions.members.defined();
    std::vector<int64_t> shape = {rows, (sets ? regions.members : regions.prediction).size(1)};
    if (!sets) shape.push_back(2);
    shape.push_back(static_cast<int64_t>(levels));
    return {torch::empty({rows, regions.prediction.size(1)}, sets ? torch::kLong : torch::kDouble),
            torch::empty(shape, sets ? torch::kBool : torch::kDouble)};
  }

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
  return core_->artifact();
}

std::map<std::string, std::string> LoadedPredictor::outputs() const {
  const ScoreOptions& score = settings().method.score;
  const Network& head = *core_->network().shared_head();
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

void LoadedPredictor::each_batch(
    internal::TensorRows& rows, const RowFacts& facts, size_t levels,
    const std::function<void(const internal::BatchData&, int64_t first)>& take) const {
  check_facts(facts, *rows.size());
  const size_t most = batch_for(rows, settings().network, core_->device());
  const size_t size = std::max<size_t>(1, most / std::max<size_t>(1, levels));
  const size_t groups = settings().rows.group_names.size();
  internal::BatchData batch;
  for (size_t first = 0; rows.next_batch(size, batch); first += batch.rows()) {
    batch.known = side_information(facts, groups, first, batch.rows());
    take(batch, static_cast<int64_t>(first));
  }
}

py::tuple LoadedPredictor::regions(const py::object& array, const py::list& alphas,
                                   const py::dict& given, int64_t before) const {
  internal::TensorRows rows = rows_over(tensor_of(array, "X"), {}, core_->schema(), before);
  const RowFacts facts = facts_of(given);
  std::vector<Level> levels;
  for (const py::handle& alpha : alphas) levels.push_back(level_of(alpha));
  const auto total = static_cast<int64_t>(*rows.size());
  if (total == 0) fail("X: has no rows");
  RegionArrays found;
  {
    py::gil_scoped_release unlocked;
    each_batch(rows, facts, levels.size(), [&](const internal::BatchData& batch, int64_t first) {
      found.put(core_->predict(batch, levels), first, total);
    });
  }
  const torch::Tensor prediction = labels() ? found.prediction.squeeze(1) : found.prediction;
  return py::make_tuple(array_of(prediction), lent_array(found.answer));
}

py::tuple LoadedPredictor::check(const py::object& array, const py::object& answers,
                                 const py::object& alpha, const py::dict& given) const {
  internal::TensorRows rows =
      rows_over(tensor_of(array, "X"), tensor_of(answers, "y"), core_->schema());
  const RowFacts facts = facts_of(given);
  const Level level = level_of(alpha);
  const auto total = static_cast<int64_t>(*rows.size());
  if (total == 0) fail("X: has no rows");
  core_->check_all_scores();
  std::vector<double> scores, p_values;
  const int64_t targets = core_->score().targets();
  torch::Tensor inside = torch::empty({total, targets}, torch::kBool);
  {
    py::gil_scoped_release unlocked;
    each_batch(rows, facts, 1, [&](const internal::BatchData& batch, int64_t first) {
      const auto count = static_cast<int64_t>(batch.rows());
      const Judgement judged = core_->judge(batch, rows.answers(first, count), {&level, 1});
      scores.insert(scores.end(), judged.scores.begin(), judged.scores.end());
      p_values.insert(p_values.end(), judged.p_values.begin(), judged.p_values.end());
      std::copy(judged.in[0].begin(), judged.in[0].end(),
                inside.data_ptr<bool>() + first * targets);
    });
  }
  const torch::Tensor all =
      torch::tensor(scores, torch::kDouble).reshape({total, core_->score().sides()});
  const auto per_row = [&](const torch::Tensor& found) {
    return array_of(targets == 1 ? found.reshape({total}) : found.reshape({total, targets}));
  };
  return py::make_tuple(array_of(all), per_row(torch::tensor(p_values, torch::kDouble)),
                        per_row(inside));
}

std::shared_ptr<const PredictiveDistribution> LoadedPredictor::distributions() const {
  const CalibrationArtifact& whole = artifact();
  const std::lock_guard lock(distributing_);
  if (!distributions_) {
    distributions_ = std::make_shared<const PredictiveDistribution>(whole, core_->device());
  }
  return distributions_;
}

py::tuple LoadedPredictor::distribution(const py::object& array, const py::list& probabilities,
                                        const std::vector<std::pair<double, double>>& events,
                                        const py::dict& given) const {
  internal::TensorRows rows = rows_over(tensor_of(array, "X"), {}, core_->schema());
  const RowFacts facts = facts_of(given);
  std::vector<Level> levels;
  for (const py::handle& probability : probabilities) levels.push_back(level_of(probability));
  for (const auto& [from, to] : events) {
    if (!(from < to)) fail("between: found ", from, " and ", to, ", expected the smaller first");
  }
  std::vector<torch::Tensor> quantiles, bands;
  {
    py::gil_scoped_release unlocked;
    const torch::NoGradGuard no_grad;
    const auto distribution = distributions();
    each_batch(rows, facts, 1, [&](const internal::BatchData& batch, int64_t) {
      core_->schema().check_known(batch);
      const TestInputs inputs = distribution->describe(batch.x, batch.known);
      const auto count = static_cast<int64_t>(batch.rows());
      quantiles.push_back(levels.empty() ? torch::empty({count, 0}, torch::kDouble)
                                         : distribution->quantiles(inputs, levels));
      torch::Tensor ends =
          torch::empty({static_cast<int64_t>(events.size()), count, 2}, torch::kDouble);
      double* out = ends.data_ptr<double>();
      for (const auto& [from, to] : events) {
        for (const ProbabilityBand& band : distribution->probability(inputs, {from, to})) {
          *out++ = band.lower;
          *out++ = band.upper;
        }
      }
      bands.push_back(ends.permute({1, 0, 2}));
    });
    if (quantiles.empty()) fail("X: has no rows");
  }
  return py::make_tuple(array_of(torch::cat(quantiles)), array_of(torch::cat(bands)));
}

py::object LoadedPredictor::below(const py::object& array, const py::object& thresholds,
                                  const py::dict& given) const {
  internal::TensorRows rows = rows_over(tensor_of(array, "X"), {}, core_->schema());
  const RowFacts facts = facts_of(given);
  const torch::Tensor all = tensor_of(thresholds, "thresholds").to(torch::kDouble).contiguous();
  if (all.dim() != 1 || all.size(0) != static_cast<int64_t>(*rows.size())) {
    fail("found ", all.numel(), " thresholds, X has ", *rows.size(), " rows");
  }
  torch::Tensor ends = torch::empty({all.size(0), 2}, torch::kDouble);
  {
    py::gil_scoped_release unlocked;
    const auto distribution = distributions();
    double* out = ends.data_ptr<double>();
    each_batch(rows, facts, 1, [&](const internal::BatchData& batch, int64_t first) {
      core_->schema().check_known(batch);
      const TestInputs inputs = distribution->describe(batch.x, batch.known);
      const std::span own(all.data_ptr<double>() + first, batch.rows());
      for (const double threshold : own) {
        if (!std::isfinite(threshold))
          fail("found the threshold ", threshold, ", expected a number");
      }
      for (const ProbabilityBand& band : distribution->below(inputs, own)) {
        *out++ = band.lower;
        *out++ = band.upper;
      }
    });
  }
  return array_of(ends);
}

std::string LoadedPredictor::evaluate(const py::object& array, const py::object& answers,
                                      const py::object& alpha, const py::dict& given,
                                      const std::string& report, bool verbose) const {
  internal::TensorRows rows =
      rows_over(tensor_of(array, "X"), tensor_of(answers, "y"), core_->schema());
  const RowFacts facts = facts_of(given);
  const Level level = level_of(alpha);
  StderrObserver observer(verbose);
  const Context context{.device = core_->device(), .observer = &observer};
  py::gil_scoped_release unlocked;
  const EvaluationReport found = fcp::evaluate(
      artifact(), rows, {.level = level, .all_levels = !report.empty(), .facts = facts}, context);
  if (!report.empty()) write_file(report, report_html(found));
  return json_text(report_json(found));
}

}  // namespace fcp
