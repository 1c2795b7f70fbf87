// Calibrated predictors: the class that the estimators of the package hold.

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>
#include <pybind11/stl.h>

#include "fcp/base/error.h"
#include "fcp/base/output_file.h"
#include "fcp/calibrate/calibrate.h"
#include "fcp/calibrate/collect_scores.h"
#include "fcp/calibrate/outliers.h"
#include "fcp/export/export.h"
#include "fcp/fit/fit.h"
#include "fcp/methods/options.h"
#include "fcp/nn/graph/onnx_reader.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/predictor/context.h"
#include "fcp/predictor/distribution.h"
#include "fcp/predictor/levels.h"

#include "apps/report/choices_text.h"
#include "apps/report/json.h"
#include "apps/report/page.h"
#include "python/arrays.h"
#include "python/options.h"
#include "python/predictor.h"

namespace fcp {
namespace {

namespace py = pybind11;

using PredictorClass = py::class_<LoadedPredictor, std::shared_ptr<LoadedPredictor>>;

void export_levels(const LoadedPredictor& self, const std::string& path, const py::list& alphas,
                   const std::string& prefix) {
  ExportOptions options{.levels = {}, .prefix = prefix};
  for (const py::handle& alpha : alphas) options.levels.push_back(level_of(alpha));
  {
    py::gil_scoped_release unlocked;
    write_onnx(export_artifact(self.artifact(), options), path);
  }
  for (const Level& level : options.levels) warn(level_warnings(self.artifact(), level));
}

void bind_files(PredictorClass& predictor) {
  predictor
      .def_static(
          "read",
          [](const std::string& path, const std::string& device) {
            py::gil_scoped_release unlocked;
            return std::make_shared<LoadedPredictor>(read_artifact(path), device);
          },
          py::arg("path"), py::arg("device"))
      .def(py::pickle(
          [](const LoadedPredictor& self) {
            return py::make_tuple(py::bytes(serialize_onnx(artifact_graph(self.artifact()))),
                                  self.device());
          },
          [](const py::tuple& state) {
            const std::string name = "the pickled predictor";
            const py::bytes bytes = state[0];
            return std::make_shared<LoadedPredictor>(
                artifact_from_graph(parse_onnx(std::string_view(bytes), name), name),
                state[1].cast<std::string>());
          }))
      .def(
          "write",
          [](const LoadedPredictor& self, const std::string& path) {
            py::gil_scoped_release unlocked;
            write_artifact(self.artifact(), path);
          },
          py::arg("path"))
      .def("export", export_levels, py::arg("path"), py::arg("alphas"), py::arg("prefix"));
}

// Of a name that no calibration has, none: another check says so.
std::map<std::string, bool> traits_by_name(const std::string& name) {
  const std::vector<std::string> names = calibration_names();
  const bool known = std::find(names.begin(), names.end(), name) != names.end();
  const CalibrationTraits traits = known ? calibration_traits(name) : CalibrationTraits();
  return {{"by_group", traits.by_group},
          {"by_weight", traits.by_weight},
          {"by_feature", traits.by_feature},
          {"rectifies", name == kRectified}};
}

void bind_facts(PredictorClass& predictor) {
  predictor
      .def(
          "radius",
          [](const LoadedPredictor& self, const py::object& alpha) {
            return self.radius(level_of(alpha));
          },
          py::arg("alpha"))
      .def(
          "warning",
          [](const LoadedPredictor& self, const py::object& alpha) -> std::optional<std::string> {
            std::string all;
            const Level level = level_of(alpha);
            for (const std::string& one :
                 level_warnings(self.settings(), level, self.radius(level))) {
              all += (all.empty() ? "" : "; ") + one;
            }
            if (all.empty()) return std::nullopt;
            return all;
          },
          py::arg("alpha"))
      .def("network",
           [](const LoadedPredictor& self) {
             return std::make_shared<LoadedNetwork>(self.artifact().network, "calibrated");
           })
      .def_property_readonly("labels", &LoadedPredictor::labels)
      .def_property_readonly("classes", &LoadedPredictor::classes)
      .def_property_readonly(
          "rows", [](const LoadedPredictor& self) { return self.settings().rows.count(); })
      .def_property_readonly("cut",
                             [](const LoadedPredictor& self) { return self.settings().method.cut; })
      .def_property_readonly(
          "score", [](const LoadedPredictor& self) { return self.settings().method.score.name(); })
      .def_property_readonly(
          "calibration",
          [](const LoadedPredictor& self) { return self.settings().method.calibration.name(); })
      .def_property_readonly("group",
                             [](const LoadedPredictor& self) {
                               return self.settings().method.calibration.value(field::group);
                             })
      .def_property_readonly(
          "group_names",
          [](const LoadedPredictor& self) { return self.settings().rows.group_names; })
      .def_property_readonly("outputs", &LoadedPredictor::outputs)
      .def_property_readonly("provenance",
                             [](const LoadedPredictor& self) { return self.artifact().facts(); });
}

}  // namespace

void bind_calibrated(py::module_& module) {
  module.def("score_names", score_names);
  module.def("predicts_labels", predicts_labels, py::arg("score"));
  module.def("uses_features", uses_features, py::arg("score"));
  module.def(
      "reads_heads", [](const std::string& score) { return score_traits(score).reads_heads; },
      py::arg("score"));
  module.def("calibration_traits", traits_by_name, py::arg("calibration"));
  PredictorClass predictor(module, "Predictor");
  predictor
      .def_static("calibrate", calibrate_arrays, py::arg("network"), py::arg("x"), py::arg("y"),
                  py::arg("options"), py::arg("facts"), py::arg("shifted"), py::arg("fit_data"))
      .def("regions", &LoadedPredictor::regions, py::arg("x"), py::arg("alphas"), py::arg("facts"),
           py::arg("before") = 0)
      .def("check", &LoadedPredictor::check, py::arg("x"), py::arg("y"), py::arg("alpha"),
           py::arg("facts"))
      .def("distribution", &LoadedPredictor::distribution, py::arg("x"), py::arg("probabilities"),
           py::arg("events"), py::arg("facts"))
      .def("below", &LoadedPredictor::below, py::arg("x"), py::arg("thresholds"), py::arg("facts"))
      .def("evaluate", &LoadedPredictor::evaluate, py::arg("x"), py::arg("y"), py::arg("alpha"),
           py::arg("facts"), py::arg("report"), py::arg("verbose"));
  bind_files(predictor);
  bind_facts(predictor);
}

// Rows that are unlike usual ones, and which p-values are discoveries.

namespace {

namespace py = pybind11;

// Scores [N], p-values [N], and whether the p-values may depend on each other in any way.
py::tuple feature_outliers(const LoadedPredictor& predictor, const py::object& array,
                           const py::object& usual, const py::dict& given) {
  const torch::Tensor rows = as_rows(tensor_of(array, "X"), "X");
  const torch::Tensor known = as_rows(tensor_of(usual, "reference"), "reference");
  OutlierOptions options{.score = given["score"].cast<std::string>(),
                         .neighbours = given["neighbours"].cast<size_t>(),
                         .cut = given["cut"].cast<std::string>(),
                         .seed = given["seed"].cast<uint64_t>(),
                         .weights = given["reference_weights"].cast<std::vector<double>>()};
  const auto weights = given["weights"].cast<std::vector<double>>();
  const internal::PredictorCore& core = predictor.core();
  std::vector<double> scores, p_values;
  Dependence dependence{};
  {
    py::gil_scoped_release unlocked;
    OutlierFeatures source(predictor.settings(), options.cut, core.device());
    const torch::Tensor features = source.of(core.schema().encode(known, {}).x);
    const FeatureOutliers detector(std::move(source), features, options);
    scores = detector.scores(detector.source().of(core.schema().encode(rows, {}).x));
    p_values = detector.p_values(scores, weights);
    dependence = detector.dependence();
  }
  return py::make_tuple(array_of(torch::tensor(scores, torch::kDouble)),
                        array_of(torch::tensor(p_values, torch::kDouble)),
                        dependence == Dependence::kAny);
}

std::vector<bool> python_discoveries(const std::vector<double>& p_values, const py::object& rate,
                                     bool any_dependence) {
  return discoveries(p_values, level_of(rate),
                     any_dependence ? Dependence::kAny : Dependence::kPositive);
}

}  // namespace

void bind_outliers(py::module_& module) {
  module.def("feature_outliers", feature_outliers, py::arg("predictor"), py::arg("x"),
             py::arg("reference"), py::arg("options"));
  module.def("discoveries", python_discoveries, py::arg("p_values"), py::arg("rate"),
             py::arg("any_dependence"));
}

// Calibration of arrays: the parameters of an estimator become the settings of
// fcp/calibrate/calibrate.h.

namespace {

namespace py = pybind11;

CalibrateSettings settings_of(const py::dict& options) {
  CalibrateSettings settings;
  settings.data_name = "X";
  settings.level = level_of(options["alpha"]);
  settings.method = request_of(options);
  return settings;
}

}  // namespace

std::shared_ptr<LoadedPredictor> calibrate_arrays(const LoadedNetwork& network,
                                                  const py::object& array,
                                                  const py::object& answers,
                                                  const py::dict& options, const py::dict& given,
                                                  const py::object& shifted,
                                                  const py::object& fit_data) {
  const internal::SchemaData& schema = network.schema();
  internal::TensorRows rows = rows_over(tensor_of(array, "X"), tensor_of(answers, "y"), schema);
  CalibrateSettings settings = settings_of(options);
  settings.facts = facts_of(given);
  settings.provenance["network"] = std::filesystem::path(network.name()).filename().string();
  std::optional<internal::TensorRows> shifted_rows, head_rows;
  if (!shifted.is_none()) {
    shifted_rows.emplace(rows_over(tensor_of(shifted, "shifted"), {}, schema));
    settings.shifted = &*shifted_rows;
  }
  if (!fit_data.is_none()) {
    const py::tuple pair = fit_data;
    head_rows.emplace(
        rows_over(tensor_of(pair[0], "fit_data"), tensor_of(pair[1], "fit_data"), schema));
    settings.head_rows = &*head_rows;
  }
  const auto device = options["device"].cast<std::string>();
  StderrObserver observer(options["verbose"].cast<bool>());
  const torch::Device where = device_of(device);
  const Context context{.device = where,
                        .observer = &observer,
                        .seed = settings.method.whole("seed"),
                        .batch = batch_for(rows, network.graph(), where)};
  UnfinishedCalibration made;
  {
    py::gil_scoped_release unlocked;
    made = begin_calibration(network.graph(), rows, settings, context, {.finish_later = true});
  }
  const CalibrateResult& result = *made.result;
  for (const std::string& note : findings_text(result.findings)) observer.note(note);
  // With a score that was asked for the outputs were asked for as well.
  const bool any_score = settings.method.score == kAutoScore;
  const auto taken = result.artifact.provenance.find(kOutputsTaken);
  if (any_score && taken != result.artifact.provenance.end()) warn({taken->second});
  warn(result.warnings);
  return std::make_shared<LoadedPredictor>(std::move(made));
}

// From a table to a calibrated predictor, by the same function as the program's `fit`; and what
// Python's tables need to be read as the program reads files.

namespace {

namespace py = pybind11;

// `written`: the file was written by this package, with commas and a header.
FitRequest request_of_options(const std::string& data, const std::string& target,
                              const py::dict& options, bool written) {
  FitRequest request;
  const auto text = [&](const char* key) { return options[key].cast<std::string>(); };
  request.data.data = data;
  request.data.target = target;
  if (written) {
    request.data.csv.header = CsvHeader::kYes;
    request.data.csv.separator = ',';
  }
  request.data.csv.drop = options["drop"].cast<std::vector<std::string>>();
  request.data.csv.categorical = options["categorical"].cast<std::vector<std::string>>();
  request.data.csv.types = options["types"].cast<std::map<std::string, std::string>>();
  check_types(request.data.csv.types);
  request.data.csv.missing = options["missing"].cast<std::vector<std::string>>();
  request.task = task_named(text("task"));
  request.calibration = fit_calibration_named(text("calibration"));
  request.shares = options["shares"].cast<std::vector<double>>();
  request.keep_together = text("keep_together");
  request.time = text("time");
  request.cover_each = text("cover_each");
  request.row_weights = text("row_weights");
  request.level = level_of(options["alpha"]);
  request.training.members = options["members"].cast<int64_t>();
  request.training.epochs = options["epochs"].cast<int64_t>();
  request.training.trees = options["trees"].cast<bool>();
  request.training.target_scale = target_scale_named(text("target_scale"));
  request.method = request_of(options["method"].cast<py::dict>());
  request.method.score = text("score");
  request.method.set("seed", options["seed"].cast<uint64_t>());
  return request;
}

// Writes the predictor to `out`, and an HTML page to `report` unless that is empty. Returns the
// JSON of the evaluation on the test rows, and the warnings.
py::tuple fit_file(const std::string& data, const std::string& target, const py::dict& options,
                   const std::string& out, const std::string& report, bool written) {
  FitRequest request = request_of_options(data, target, options, written);
  request.all_levels = !report.empty();
  const Context context{.device = device_of(options["device"].cast<std::string>()),
                        .seed = options["seed"].cast<uint64_t>()};
  std::string json;
  std::vector<std::string> warnings;
  {
    py::gil_scoped_release unlocked;
    FitOutcome fitted = fit_table(request, context);
    write_artifact(fitted.calibrated.artifact, out);
    if (!report.empty()) write_file(report, report_html(fitted.report));
    json = json_text(report_json(fitted.report));
    warnings = fit_warnings(fitted);
  }
  return py::make_tuple(json, warnings);
}

// The probabilities of the classes for rows as the network takes them, [N, C], and the pair p0, p1
// or twice None.
py::tuple class_probabilities(const LoadedPredictor& predictor, const py::object& array) {
  const torch::Tensor x = as_rows(tensor_of(array, "X"), "X");
  const internal::PredictorCore& core = predictor.core();
  ClassChances found;
  {
    py::gil_scoped_release unlocked;
    const internal::BatchData batch = core.schema().encode(x, {});
    found = ClassProbabilities(core.network(), core.artifact()).of(batch.x);
  }
  if (!found.calibrated()) return py::make_tuple(array_of(found.merged), py::none(), py::none());
  return py::make_tuple(array_of(found.merged), array_of(found.p0), array_of(found.p1));
}

// Of rows by their flags: each text, and how many rows have it.
std::string novelty_text(const std::map<std::string, size_t>& flags, size_t rows) {
  NoveltyCounts counts;
  for (const auto& [text, count] : flags) {
    for (size_t i = 0; i < count; ++i) counts.add(text);
  }
  return counts.text(rows);
}

}  // namespace

void bind_fit(py::module_& module) {
  module.def("fit_file", fit_file, py::arg("data"), py::arg("target"), py::arg("options"),
             py::arg("out"), py::arg("report"), py::arg("written"));
  module.def("class_probabilities", class_probabilities, py::arg("predictor"), py::arg("x"));
  module.def("novelty_text", novelty_text, py::arg("flags"), py::arg("rows"));
}

}  // namespace fcp
