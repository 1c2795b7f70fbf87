// Calibration of arrays: the parameters of an estimator become the settings of
// fcp/calibrate/calibrate.h.
#include "fcp/calibrate/calibrate.h"

#include <filesystem>
#include <optional>
#include <utility>

#include <pybind11/stl.h>

#include "fcp/calibrate/unfinished.h"

#include "apps/report/choices_text.h"
#include "python/arrays.h"
#include "python/options.h"
#include "python/predictor.h"

namespace fcp {
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

}  // namespace fcp
