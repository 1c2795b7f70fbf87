// Calibrated predictors: the class that the estimators of the package hold.
#include <algorithm>

#include <pybind11/stl.h>

#include "fcp/export/export.h"
#include "fcp/nn/graph/onnx_reader.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/predictor/levels.h"

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

}  // namespace fcp
