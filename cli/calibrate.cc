// fcp calibrate: a network and rows with known answers become a calibrated predictor.
#include <filesystem>
#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/network/onnx_reader.h"
#include "fcp/report/format.h"
#include "fcp/report/json.h"

#include "cli/steps.h"
#include "cli/verbs.h"

namespace fcp {
namespace {

struct CalibrateOptions {
  CommonOptions common;
  DataOptions data;
  CalibrateSettings settings;
  std::string model;
  std::string out;
  std::string alpha = "0.1";
  std::string norm = "inf";
  std::string bound = "ibp";
};

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

void run_calibrate(CalibrateOptions& options) {
  const torch::Device device = start(options.common);
  ScoreOptions& score = options.settings.score;
  score.norm = parse_norm(options.norm);
  score.bound.method = parse_bound(options.bound);
  options.settings.level = parse_level(options.alpha);
  if (score.paper && score.name != "surrogate") {
    throw UsageError("--paper is about --score surrogate");
  }
  if (options.settings.cut == "auto" && score.name == "surrogate") {
    throw UsageError(
        "--cut auto compares lengths at equal coverage, which surrogate does not promise");
  }
  if (!options.settings.cut.empty() && !uses_features(score.name)) {
    throw UsageError(concat("--cut: the score ", score.name, " does not look at features"));
  }
  if (score.floor > 0 && score.name != "nested" && score.name != "linearized") {
    throw UsageError(concat("--floor: the score ", score.name, " has no floor"));
  }
  if (score.steps > 0 && score.name != "surrogate") {
    throw UsageError("--steps is about --score surrogate");
  }
  const Graph network = read_onnx(options.model);
  const auto source = open_data(options.data, &network);
  options.settings.data_name = options.data.data;
  options.settings.provenance["network"] = file_name(options.model);
  options.settings.provenance["calibration data"] = file_name(options.data.data);
  const Calibrated calibrated = calibrate_rows(network, *source, batch_rows(options.data, *source),
                                               options.settings, device, options.common);
  write_calibrated(calibrated, options.out);

  const Level levels[] = {Level::parse("0.2"), Level::parse("0.1"), Level::parse("0.05"),
                          Level::parse("0.01")};
  if (options.common.json) {
    nlohmann::ordered_json json = {{"rows", calibrated.scores.size()},
                                   {"score", calibrated.score.name},
                                   {"cut", calibrated.cut},
                                   {"out", options.out}};
    for (const Level& level : levels) {
      json["radius"][level.text()] = json_number(calibrated.radius(level));
    }
    std::cout << json.dump(2) << '\n';
    return;
  }
  std::cout << "calibrated on " << format_count(calibrated.scores.size()) << " rows with score "
            << calibrated.score.name << ": " << options.out << "\nradius";
  for (const Level& level : levels) {
    std::cout << "  " << format_target(level) << ": " << format_number(calibrated.radius(level));
  }
  std::cout << '\n';
}

}  // namespace

void add_calibrate(CLI::App& app) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App* verb =
      app.add_subcommand("calibrate", "Calibrate a network on rows with known answers");
  verb->footer(
      "Examples:\n"
      "  fcp calibrate model.onnx --data cal.csv --target y --out calibrated.onnx\n"
      "  fcp calibrate model.onnx --data x.npy --target y.npy --cut auto --out calibrated.onnx\n"
      "  fcp calibrate model.onnx --data cal.csv --target y --score residual --out "
      "calibrated.onnx\n"
      "The rows must not have been used to train the network.");
  verb->add_option("model", options->model, "ONNX file")->required();
  verb->add_option("--data", options->data.data, "Calibration rows: CSV, .npy or .npz:entry")
      ->required();
  verb->add_option("--out", options->out, "Calibrated predictor to write")->required();
  ScoreOptions& score = options->settings.score;
  verb->add_option("--score", score.name, "How strange an answer is")
      ->check(CLI::IsMember(score_names()))
      ->capture_default_str();
  verb->add_option("--output", score.output,
                   "The network's output to calibrate, where it has several");
  verb->add_option("--normalize", score.normalize,
                   "Residual score: the output that estimates the spread of the answer");
  verb->add_option(
      "--cut", options->settings.cut,
      "Where features are: a tensor, a node, a number of layers, or 'auto' to try every "
      "cut and floor on a slice of the rows; by default two layers before the output");
  verb->add_option("--norm", options->norm, "Norm of feature space: inf, 2 or 1")
      ->check(CLI::IsMember({"inf", "2", "1"}))
      ->capture_default_str();
  verb->add_option("--bound", options->bound,
                   "Bound propagation: ibp, crown-ibp, crown or alpha-crown")
      ->check(CLI::IsMember({"ibp", "crown-ibp", "crown", "alpha-crown"}))
      ->capture_default_str();
  verb->add_option("--iterations", score.bound.iterations, "Iterations of alpha-crown")
      ->capture_default_str();
  verb->add_option("--memory", score.bound.memory,
                   "Bytes for bounds, as 4GB or 500MB; by default half of what is free")
      ->transform(CLI::AsSizeValue(false));
  verb->add_option("--floor", score.floor,
                   "Widen each band by this share of the mean band (nested, linearized)")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb->add_option("--steps", score.steps, "Surrogate: steps of the search; 0 chooses them")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--rate", score.step_rate, "Surrogate: step size of the search")
      ->capture_default_str();
  verb->add_flag("--adam", score.adam, "Surrogate: search with Adam instead of plain descent");
  verb->add_option("--loss-weights", score.loss_weights,
                   "Surrogate: weights of the squared error, one an output")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb->add_flag(
      "--paper", score.paper,
      "Surrogate: as the paper's code: rows that choose the steps are calibrated on too, at "
      "level 0.1 always, and the largest score stands for an infinite radius");
  verb->add_option("--alpha", options->alpha, "Level for which lengths are compared when choosing")
      ->capture_default_str();
  verb->add_option("--selection", options->settings.selection_share,
                   "Share of the rows that choices look at and calibration does not")
      ->check(CLI::Range(0.0, 0.9))
      ->capture_default_str();
  add_data(*verb, options->data, /*needs_target=*/true);
  add_common(*verb, options->common);
  verb->callback([options] { run_calibrate(*options); });
}

}  // namespace fcp
