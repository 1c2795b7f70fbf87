// Calibrated predictors: calibration, regions, checks, evaluation, files. The work is that of the
// program's verbs (cli/steps.h), so that both give the same bits; only data come as arrays.
#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>
#include <pybind11/stl.h>
#include <torch/cuda.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/output_file.h"
#include "fcp/calibration/calibrated_predictor.h"
#include "fcp/calibration/export.h"
#include "fcp/network/onnx_reader.h"
#include "fcp/network/onnx_writer.h"
#include "fcp/report/html.h"
#include "fcp/report/json.h"
#include "fcp/report/label_html.h"

#include "cli/label_steps.h"
#include "cli/method_stream.h"
#include "cli/steps.h"
#include "python/arrays.h"
#include "python/module.h"

namespace fcp {
namespace {

namespace py = pybind11;

// A number, or its decimal digits as text.
Level level_of(const py::handle& alpha) {
  if (py::isinstance<py::str>(alpha)) return Level::parse(alpha.cast<std::string>());
  return Level(alpha.cast<double>());
}

torch::Device device_of(const std::string& name) {
  if (name != "cpu" && name != "cuda") fail("device: found '", name, "', expected 'cpu' or 'cuda'");
  if (name == "cuda" && !torch::cuda::is_available()) {
    fail("device: this machine, or this build of libtorch, has no CUDA device");
  }
  return name == "cuda" ? torch::kCUDA : torch::kCPU;
}

// What a caller says of rows besides x and y, already in the numbers that the predictor knows.
RowFacts facts_of(const py::dict& given) {
  RowFacts facts;
  facts.groups.ids = given["groups"].cast<std::vector<int64_t>>();
  facts.groups.names = given["group_names"].cast<std::vector<std::string>>();
  facts.shown.ids = given["shown"].cast<std::vector<int64_t>>();
  facts.shown.names = given["shown_names"].cast<std::vector<std::string>>();
  facts.weights = given["weights"].cast<std::vector<double>>();
  return facts;
}

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
  read("steps", score.steps);
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
  settings.cut = options["cut"].cast<std::string>();
  settings.level = level_of(options["alpha"]);
  settings.selection_share = options["selection"].cast<double>();
  settings.calibration.name = options["calibration"].cast<std::string>();
  settings.calibration.group = options["group"].cast<std::string>();
  settings.calibration.bandwidth = options["bandwidth"].cast<double>();
  settings.calibration.seed = settings.score.seed;
  // None asks for a choice on the slice.
  settings.choose_temperature = options["temperature"].is_none();
  if (!settings.choose_temperature) {
    settings.score.temperature = options["temperature"].cast<double>();
  }
  const bool ranked = settings.score.name == "raps" || settings.score.name == "feature_margin";
  settings.choose_rank_term = ranked && options["rank_weight"].is_none();
  if (ranked && !settings.choose_rank_term) {
    settings.score.rank_weight = options["rank_weight"].cast<double>();
  }
  return settings;
}

// A calibrated network with what runs it.
class LoadedPredictor {
 public:
  LoadedPredictor(Calibrated calibrated, const std::string& device)
      : device_(device_of(device)),
        calibrated_(std::move(calibrated)),
        predictor_(calibrated_, device_) {}

  const Calibrated& calibrated() const { return calibrated_; }
  std::string device() const { return device_.is_cuda() ? "cuda" : "cpu"; }
  bool labels() const { return predictor_.score().classes() > 0; }

  py::tuple regions(const py::object& array, const py::list& alphas, const py::dict& given) const;
  py::tuple check(const py::object& array, const py::object& answers, const py::object& alpha,
                  const py::dict& given) const;
  std::string evaluate(const py::object& array, const py::object& answers, const py::object& alpha,
                       const py::dict& given, const std::string& report, bool verbose) const;

 private:
  // Calls `work` with the rows of each batch: their number, those before, and what is known of
  // them.
  template <typename Work>
  void for_batches(const torch::Tensor& x, const RowFacts& facts, const Work& work) const;

  torch::Device device_;
  Calibrated calibrated_;
  CalibratedPredictor predictor_;
};

template <typename Work>
void LoadedPredictor::for_batches(const torch::Tensor& x, const RowFacts& facts,
                                  const Work& work) const {
  torch::NoGradGuard no_grad;
  const auto total = x.size(0);
  if (total == 0) fail("X: has no rows");
  check_facts(facts, static_cast<size_t>(total));
  const auto batch = static_cast<int64_t>(batch_rows({}, TensorRows(x, {})));
  const size_t known = calibrated_.rows.group_names.size();
  for (int64_t first = 0; first < total; first += batch) {
    check_signals();
    const int64_t count = std::min(batch, total - first);
    const torch::Tensor rows = x.narrow(0, first, count).to(torch::kFloat);
    const GivenRows facts_here =
        given_rows(facts, known, static_cast<size_t>(first), static_cast<size_t>(count));
    work(first, count, predictor_.describe(rows, facts_here));
  }
}

// Intervals: prediction [N, K] and ends [N, K, 2, A]. Labels: prediction [N] and members [N, C, A].
py::tuple LoadedPredictor::regions(const py::object& array, const py::list& alphas,
                                   const py::dict& given) const {
  const torch::Tensor x = as_rows(tensor_of(array, "X"), "X");
  const RowFacts facts = facts_of(given);
  std::vector<Level> levels;
  for (const py::handle& alpha : alphas) levels.push_back(level_of(alpha));
  const auto count_levels = static_cast<int64_t>(levels.size());
  torch::Tensor prediction, answer;
  {
    py::gil_scoped_release unlocked;
    for_batches(x, facts, [&](int64_t first, int64_t count, const NewRows& rows) {
      for (int64_t a = 0; a < count_levels; ++a) {
        const Regions found = predictor_.region(rows, levels[static_cast<size_t>(a)]);
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

// Scores [N, sides], p-values [N], and whether each row is within its radius [N].
py::tuple LoadedPredictor::check(const py::object& array, const py::object& answers,
                                 const py::object& alpha, const py::dict& given) const {
  const torch::Tensor x = as_rows(tensor_of(array, "X"), "X");
  const torch::Tensor y = as_rows(tensor_of(answers, "y"), "y").flatten(1);
  if (x.size(0) != y.size(0)) fail("X has ", x.size(0), " rows, y has ", y.size(0));
  const RowFacts facts = facts_of(given);
  const Level level = level_of(alpha);
  std::vector<double> scores, p_values;
  torch::Tensor inside = torch::empty({x.size(0)}, torch::kBool);
  {
    py::gil_scoped_release unlocked;
    for_batches(x, facts, [&](int64_t first, int64_t count, const NewRows& rows) {
      const torch::Tensor truth = y.narrow(0, first, count).to(torch::kFloat);
      const Judged judged = predictor_.judge(rows, truth);
      const std::vector<bool> in =
          within_radii(predictor_, rows, truth, judged.scores, level, calibrated_.score.paper);
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

// The text of the JSON that `fcp evaluate --json` prints; and its HTML page, where asked for.
std::string LoadedPredictor::evaluate(const py::object& array, const py::object& answers,
                                      const py::object& alpha, const py::dict& given,
                                      const std::string& report, bool verbose) const {
  TensorRows rows(tensor_of(array, "X"), tensor_of(answers, "y"));
  const RowFacts facts = facts_of(given);
  const Level level = level_of(alpha);
  const CommonOptions common{.quiet = !verbose};
  py::gil_scoped_release unlocked;
  if (labels()) {
    const LabelReport found =
        evaluate_sets(calibrated_, rows, DataOptions(), level, facts, device_, common);
    if (!report.empty()) write_file(report, label_report_html(found));
    return json_text(label_report_json(found));
  }
  const IntervalReport found =
      evaluate_rows(calibrated_, rows, batch_rows({}, rows), level, facts, device_, common);
  if (!report.empty()) write_file(report, interval_report_html(found));
  return json_text(interval_report_json(found));
}

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
  const CommonOptions common{.quiet = !options["verbose"].cast<bool>(),
                             .seed = settings.score.seed};
  py::gil_scoped_release unlocked;
  return std::make_shared<LoadedPredictor>(
      calibrate_rows(network.graph(), rows, batch_rows({}, rows), settings, device_of(device),
                     common),
      device);
}

void export_levels(const LoadedPredictor& self, const std::string& path, const py::list& alphas,
                   const std::string& prefix) {
  ExportOptions options{.levels = {}, .prefix = prefix};
  for (const py::handle& alpha : alphas) options.levels.push_back(level_of(alpha));
  py::gil_scoped_release unlocked;
  write_onnx(export_calibrated(self.calibrated(), options), path);
}

}  // namespace

void bind_calibrated(py::module_& module) {
  module.def("score_names", score_names);
  module.def("predicts_labels", predicts_labels, py::arg("score"));
  module.def("uses_features", uses_features, py::arg("score"));
  py::class_<LoadedPredictor, std::shared_ptr<LoadedPredictor>>(module, "Predictor")
      .def_static("calibrate", calibrate_arrays, py::arg("network"), py::arg("x"), py::arg("y"),
                  py::arg("options"), py::arg("facts"), py::arg("shifted"))
      .def_static(
          "read",
          [](const std::string& path, const std::string& device) {
            py::gil_scoped_release unlocked;
            return std::make_shared<LoadedPredictor>(read_calibrated(path), device);
          },
          py::arg("path"), py::arg("device"))
      .def(py::pickle(
          [](const LoadedPredictor& self) {
            return py::make_tuple(py::bytes(serialize_onnx(to_artefact(self.calibrated()))),
                                  self.device());
          },
          [](const py::tuple& state) {
            const std::string name = "the pickled predictor";
            const py::bytes bytes = state[0];
            return std::make_shared<LoadedPredictor>(
                from_artefact(parse_onnx(std::string_view(bytes), name), name),
                state[1].cast<std::string>());
          }))
      .def(
          "write",
          [](const LoadedPredictor& self, const std::string& path) {
            py::gil_scoped_release unlocked;
            write_calibrated(self.calibrated(), path);
          },
          py::arg("path"))
      .def("regions", &LoadedPredictor::regions, py::arg("x"), py::arg("alphas"), py::arg("facts"))
      .def("check", &LoadedPredictor::check, py::arg("x"), py::arg("y"), py::arg("alpha"),
           py::arg("facts"))
      .def("evaluate", &LoadedPredictor::evaluate, py::arg("x"), py::arg("y"), py::arg("alpha"),
           py::arg("facts"), py::arg("report"), py::arg("verbose"))
      .def("export", export_levels, py::arg("path"), py::arg("alphas"), py::arg("prefix"))
      .def(
          "radius",
          [](const LoadedPredictor& self, const py::object& alpha) {
            return self.calibrated().radius(level_of(alpha));
          },
          py::arg("alpha"))
      .def(
          "warning",
          [](const LoadedPredictor& self, const py::object& alpha) {
            return infinite_radius_warning(self.calibrated(), level_of(alpha));
          },
          py::arg("alpha"))
      .def("network",
           [](const LoadedPredictor& self) {
             return std::make_shared<LoadedNetwork>(self.calibrated().network, "calibrated");
           })
      .def_property_readonly("labels", &LoadedPredictor::labels)
      .def_property_readonly(
          "rows", [](const LoadedPredictor& self) { return self.calibrated().rows.count(); })
      .def_property_readonly("cut",
                             [](const LoadedPredictor& self) { return self.calibrated().cut; })
      .def_property_readonly(
          "score", [](const LoadedPredictor& self) { return self.calibrated().score.name; })
      .def_property_readonly(
          "calibration",
          [](const LoadedPredictor& self) { return self.calibrated().calibration.name; })
      .def_property_readonly(
          "group", [](const LoadedPredictor& self) { return self.calibrated().calibration.group; })
      .def_property_readonly(
          "group_names",
          [](const LoadedPredictor& self) { return self.calibrated().rows.group_names; })
      .def_property_readonly(
          "provenance", [](const LoadedPredictor& self) { return self.calibrated().provenance; });
}

}  // namespace fcp
