// Calibration of arrays: the parameters of an estimator become the settings of
// fcp/pipeline/calibrate.h.
#include "fcp/pipeline/calibrate.h"

#include <filesystem>
#include <type_traits>
#include <utility>

#include <pybind11/stl.h>

#include "fcp/report/choices_text.h"

#include "python/arrays.h"
#include "python/predictor.h"

namespace fcp {
namespace {

namespace py = pybind11;

ScoreOptions score_options(const py::dict& options) {
  ScoreOptions score;
  const auto read = [&](const char* name, auto& value) {
    value = options[name].cast<std::decay_t<decltype(value)>>();
  };
  read("score", score.name);
  read("output", score.output);
  read("normalize", score.normalize);
  read("low", score.low);
  read("high", score.high);
  read("asymmetric", score.asymmetric);
  score.norm = parse_norm(options["norm"].cast<std::string>());
  score.bound.method = parse_bound(options["bound"].cast<std::string>());
  read("floor", score.floor);
  read("rate", score.step_rate);
  read("adam", score.adam);
  read("paper", score.paper);
  read("loss_weights", score.loss_weights);
  read("randomized", score.randomized);
  read("rank_free", score.rank_free);
  read("samples", score.samples);
  read("seed", score.seed);
  return score;
}

CalibrateSettings settings_of(const py::dict& options) {
  CalibrateSettings settings;
  settings.data_name = "X";
  settings.score = score_options(options);
  settings.cut = parse_cut(options["cut"].cast<std::string>());
  settings.level = level_of(options["alpha"]);
  settings.selection_share = options["selection"].cast<double>();
  settings.calibration.name = options["calibration"].cast<std::string>();
  settings.calibration.group = options["group"].cast<std::string>();
  // 0, and None below, ask for a choice on the slice.
  if (const auto steps = options["steps"].cast<int>(); steps != 0) settings.steps = steps;
  if (const auto bandwidth = options["bandwidth"].cast<double>(); bandwidth != 0) {
    settings.bandwidth = bandwidth;
  }
  settings.calibration.seed = settings.score.seed;
  settings.temperature = options["temperature"].cast<std::optional<double>>();
  settings.rank_weight = options["rank_weight"].cast<std::optional<double>>();
  return settings;
}

}  // namespace

std::shared_ptr<LoadedPredictor> calibrate_arrays(const LoadedNetwork& network,
                                                  const py::object& array,
                                                  const py::object& answers,
                                                  const py::dict& options, const py::dict& given,
                                                  const py::object& shifted) {
  TensorRows rows(tensor_of(array, "X"), tensor_of(answers, "y"));
  CalibrateSettings settings = settings_of(options);
  settings.facts = facts_of(given);
  settings.provenance["network"] = std::filesystem::path(network.name()).filename().string();
  std::unique_ptr<TensorRows> shifted_rows;
  if (!shifted.is_none()) {
    shifted_rows = std::make_unique<TensorRows>(tensor_of(shifted, "shifted"), torch::Tensor());
    settings.shifted = shifted_rows.get();
  }
  const auto device = options["device"].cast<std::string>();
  StderrObserver observer(options["verbose"].cast<bool>());
  const Context context{
      .device = device_of(device), .observer = &observer, .seed = settings.score.seed};
  py::gil_scoped_release unlocked;
  CalibrateResult result = calibrate(network.graph(), rows, settings, context);
  for (const std::string& note : findings_text(result.findings)) observer.note(note);
  return std::make_shared<LoadedPredictor>(std::move(result.artifact), device);
}

}  // namespace fcp
