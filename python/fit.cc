// From a table to a calibrated predictor, by the same function as the program's `fit`; and what
// Python's tables need to be read as the program reads files.
#include "fcp/fit/fit.h"

#include <map>

#include <nlohmann/json.hpp>
#include <pybind11/stl.h>

#include "fcp/base/error.h"
#include "fcp/base/output_file.h"
#include "fcp/methods/options.h"
#include "fcp/predictor/class_probabilities.h"
#include "fcp/predictor/device_choice.h"

#include "apps/report/html.h"
#include "apps/report/json.h"
#include "python/arrays.h"
#include "python/options.h"
#include "python/predictor.h"

namespace fcp {
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
