#include "python/predictor.h"

#include <algorithm>
#include <iostream>

#include <nlohmann/json.hpp>
#include <pybind11/stl.h>
#include <torch/cuda.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/output_file.h"
#include "fcp/pipeline/answers.h"
#include "fcp/pipeline/coverage_counts.h"
#include "fcp/pipeline/evaluate.h"
#include "fcp/report/choices_text.h"
#include "fcp/report/html.h"
#include "fcp/report/json.h"

#include "python/arrays.h"

namespace fcp {
namespace {

namespace py = pybind11;

}  // namespace

void StderrObserver::chosen(const Choices& choices) {
  for (const std::string& text : choices_text(choices)) note(text);
}

void StderrObserver::note(const std::string& text) {
  if (verbose_) std::cerr << text << '\n';
}

void StderrObserver::warning(const std::string& text) { note("warning: " + text); }

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
  return name == "cuda" ? torch::kCUDA : torch::kCPU;
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

template <typename Work>
void LoadedPredictor::for_batches(const torch::Tensor& x, const RowFacts& facts,
                                  const Work& work) const {
  torch::NoGradGuard no_grad;
  const auto total = x.size(0);
  if (total == 0) fail("X: has no rows");
  check_facts(facts, static_cast<size_t>(total));
  const auto batch = static_cast<int64_t>(Context().batch_for(TensorRows(x, {})));
  const size_t known = artifact_.rows.group_names.size();
  for (int64_t first = 0; first < total; first += batch) {
    check_signals();
    const int64_t count = std::min(batch, total - first);
    const torch::Tensor rows = x.narrow(0, first, count).to(torch::kFloat);
    const SideInformation facts_here =
        side_information(facts, known, static_cast<size_t>(first), static_cast<size_t>(count));
    work(first, count, predictor_.describe(rows, facts_here));
  }
}

py::tuple LoadedPredictor::regions(const py::object& array, const py::list& alphas,
                                   const py::dict& given) const {
  const torch::Tensor x = as_rows(tensor_of(array, "X"), "X");
  check_no_nan(x, artifact_.network);
  const RowFacts facts = facts_of(given);
  std::vector<Level> levels;
  for (const py::handle& alpha : alphas) levels.push_back(level_of(alpha));
  const auto count_levels = static_cast<int64_t>(levels.size());
  torch::Tensor prediction, answer;
  {
    py::gil_scoped_release unlocked;
    for_batches(x, facts, [&](int64_t first, int64_t count, const TestInputs& rows) {
      for (int64_t a = 0; a < count_levels; ++a) {
        const Regions found = predictor_.region(rows, levels[static_cast<size_t>(a)]);
        check_answers(found, TensorRows(x, {}), static_cast<size_t>(first));
        if (!answer.defined()) {
          const int64_t width = (labels() ? found.members : found.prediction).size(1);
          prediction = torch::empty({x.size(0), found.prediction.size(1)},
                                    labels() ? torch::kLong : torch::kDouble);
          answer = labels() ? torch::empty({x.size(0), width, count_levels}, torch::kBool)
                            : torch::empty({x.size(0), width, 2, count_levels}, torch::kDouble);
        }
        prediction.narrow(0, first, count).copy_(found.prediction);
        const torch::Tensor part = answer.narrow(0, first, count).select(-1, a);
        if (labels()) {
          part.copy_(found.members);
        } else {
          part.select(-1, 0).copy_(found.lower);
          part.select(-1, 1).copy_(found.upper);
        }
      }
    });
  }
  return py::make_tuple(array_of(labels() ? prediction.squeeze(1) : prediction), array_of(answer));
}

py::tuple LoadedPredictor::check(const py::object& array, const py::object& answers,
                                 const py::object& alpha, const py::dict& given) const {
  const torch::Tensor x = as_rows(tensor_of(array, "X"), "X");
  check_no_nan(x, artifact_.network);
  const torch::Tensor y = as_rows(tensor_of(answers, "y"), "y").flatten(1);
  if (x.size(0) != y.size(0)) fail("X has ", x.size(0), " rows, y has ", y.size(0));
  const RowFacts facts = facts_of(given);
  const Level level = level_of(alpha);
  std::vector<double> scores, p_values;
  torch::Tensor inside = torch::empty({x.size(0)}, torch::kBool);
  {
    py::gil_scoped_release unlocked;
    for_batches(x, facts, [&](int64_t first, int64_t count, const TestInputs& rows) {
      const torch::Tensor truth = y.narrow(0, first, count).to(torch::kFloat);
      const Conformity judged =
          judge_numbers(predictor_, rows, truth, TensorRows(x, {}), static_cast<size_t>(first));
      const std::vector<bool> in =
          within_radii(predictor_, rows, truth, judged.scores, level, artifact_.score.paper);
      scores.insert(scores.end(), judged.scores.begin(), judged.scores.end());
      p_values.insert(p_values.end(), judged.p_values.begin(), judged.p_values.end());
      std::copy(in.begin(), in.end(), inside.data_ptr<bool>() + first);
    });
  }
  const torch::Tensor all =
      torch::tensor(scores, torch::kDouble).reshape({x.size(0), predictor_.score().sides()});
  return py::make_tuple(array_of(all), array_of(torch::tensor(p_values, torch::kDouble)),
                        array_of(inside));
}

std::string LoadedPredictor::evaluate(const py::object& array, const py::object& answers,
                                      const py::object& alpha, const py::dict& given,
                                      const std::string& report, bool verbose) const {
  check_no_nan(tensor_of(array, "X"), artifact_.network);
  TensorRows rows(tensor_of(array, "X"), tensor_of(answers, "y"));
  const RowFacts facts = facts_of(given);
  const Level level = level_of(alpha);
  StderrObserver observer(verbose);
  const Context context{.device = device_, .observer = &observer};
  py::gil_scoped_release unlocked;
  const EvaluationReport found = fcp::evaluate(
      artifact_, rows, {.level = level, .all_levels = !report.empty(), .facts = facts}, context);
  if (!report.empty()) write_file(report, report_html(found));
  return json_text(report_json(found));
}

}  // namespace fcp
