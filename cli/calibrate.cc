// fcp calibrate: a network and rows with known answers become a calibrated predictor.
#include "fcp/pipeline/calibrate.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "fcp/base/error.h"
#include "fcp/network/onnx_reader.h"
#include "fcp/network/onnx_writer.h"
#include "fcp/pipeline/shared_batches.h"
#include "fcp/report/choices_text.h"
#include "fcp/report/format.h"
#include "fcp/report/json.h"

#include "cli/common.h"
#include "cli/data_flags.h"
#include "cli/print_report.h"
#include "cli/verbs.h"

namespace fcp {
namespace {

struct CalibrateOptions {
  CommonOptions common;
  DataFlags data;
  CalibrateSettings settings;
  std::string model;
  std::string out;
  std::string alpha = "0.1";
  std::vector<std::string> levels;
  std::string cut;
  std::string checkpoint;
  int steps = 0;         // 0: chosen
  double bandwidth = 0;  // 0: chosen
  std::string norm = "inf";
  std::string bound = "ibp";
  FactOptions facts;
  std::string shifted;
  std::string temperature = "1";
  std::string rank_weight = "auto";
  bool plain = false;  // --not-randomized
};

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

void check_score_usage(const CalibrateOptions& options) {
  const ScoreOptions& score = options.settings.score;
  const bool quantiles = score.name == "cqr" || score.name == "feature_cqr";
  const bool localized = options.settings.calibration.name == "localized";
  if (score.paper && score.name != "surrogate" && score.name != "feature_cqr") {
    throw UsageError("--paper is about --score surrogate and feature_cqr");
  }
  if (options.cut == "auto" && searches_surrogate(score)) {
    throw UsageError(
        "--cut auto compares lengths at equal coverage, which a surrogate search does not promise");
  }
  if (!options.cut.empty() && !uses_features(score.name) && !localized) {
    throw UsageError(concat("--cut: the score ", score.name, " does not look at features"));
  }
  const bool has_floor = score.name == "nested" || score.name == "linearized" ||
                         (score.name == "feature_cqr" && !score.paper);
  if (score.floor > 0 && !has_floor) {
    throw UsageError(concat("--floor: the score ", score.name, " has no floor"));
  }
  if (options.steps > 0 && !searches_surrogate(score)) {
    throw UsageError("--steps is about --score surrogate, feature_sampled and feature_cqr --paper");
  }
  if (!quantiles && (score.asymmetric || !score.low.empty() || !score.high.empty())) {
    throw UsageError("--asymmetric, --low and --high are about --score cqr and feature_cqr");
  }
}

// A number, or "auto", which asks for a choice on the slice.
std::optional<double> number_or_auto(const std::string& text, const char* option, double least) {
  if (text == "auto") return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= least)) {
    throw UsageError(concat(option, " ", text, ": expected 'auto' or a number"));
  }
  return value;
}

void settle_label_options(CalibrateOptions& options) {
  CalibrateSettings& settings = options.settings;
  ScoreOptions& score = settings.score;
  const bool softmax = score.name == "lac" || score.name == "aps" || score.name == "raps";
  const bool ranked = score.name == "raps" || score.name == "feature_margin";
  score.randomized = !options.plain;
  score.seed = options.common.seed;
  settings.temperature = number_or_auto(options.temperature, "--temperature", 1e-6);
  if (options.temperature != "1" && !softmax) {
    throw UsageError("--temperature is about --score lac, aps and raps");
  }
  if (options.plain && score.name != "aps" && score.name != "raps") {
    throw UsageError("--not-randomized is about --score aps and raps");
  }
  settings.rank_weight = number_or_auto(options.rank_weight, "--rank-weight", 0);
  if (!ranked && (options.rank_weight != "auto" || score.rank_free > 0)) {
    throw UsageError("--rank-weight and --rank-free are about --score raps and feature_margin");
  }
}

void check_usage(const CalibrateOptions& options) {
  check_score_usage(options);
  const std::string& name = options.settings.calibration.name;
  if ((name == "grouped") != !options.facts.group.empty()) {
    throw UsageError("--calibration grouped and --group go together");
  }
  if (!options.levels.empty() && name != "split") {
    throw UsageError(concat("--levels is about --calibration split: ", name, " needs all scores"));
  }
  if (options.bandwidth > 0 && name != "localized") {
    throw UsageError("--bandwidth is about --calibration localized");
  }
  const bool given = !options.facts.weights.empty(), estimated = !options.shifted.empty();
  if ((name == "weighted") != (given || estimated) || (given && estimated)) {
    throw UsageError("--calibration weighted takes one of --weights and --shifted");
  }
}

// The rows of --shifted are read like the calibration rows, without a target.
std::unique_ptr<RowSource> open_shifted(const CalibrateOptions& options, const Graph& network) {
  if (options.shifted.empty()) return nullptr;
  DataOptions rows = data_options(options.data);
  rows.data = options.shifted;
  rows.target.clear();
  rows.needs_target = false;
  return open_data(rows, &network);
}

void read_calibration_facts(CalibrateOptions& options) {
  CalibrationOptions& calibration = options.settings.calibration;
  calibration.seed = options.common.seed;
  calibration.group = options.facts.group;
  FactOptions wanted = options.facts;
  if (wanted.group == kByPrediction || wanted.group == kByLabel) wanted.group.clear();
  options.settings.facts = read_facts(data_options(options.data), wanted);
}

// Of all scores, the levels that people ask for first.
std::vector<Level> shown_levels(const CalibrationArtifact& artifact) {
  if (!artifact.rows.levels.empty()) {
    return {artifact.rows.levels.rbegin(), artifact.rows.levels.rend()};
  }
  return {Level::parse("0.2"), Level::parse("0.1"), Level::parse("0.05"), Level::parse("0.01")};
}

void print_calibrated(const CalibrationArtifact& artifact, const CalibrateOptions& options) {
  const std::vector<Level> levels = shown_levels(artifact);
  const bool split = artifact.calibration.name == "split";
  if (options.common.json) {
    nlohmann::ordered_json json = {{"rows", artifact.rows.count()},
                                   {"score", artifact.score.name},
                                   {"calibration", artifact.calibration.name},
                                   {"cut", artifact.cut},
                                   {"out", options.out}};
    if (split) {
      for (const Level& level : levels) json["radius"][level.text()] = radius_json(artifact, level);
    }
    std::cout << json.dump(2) << '\n';
    return;
  }
  std::cout << "calibrated on " << format_count(artifact.rows.count()) << " rows with score "
            << artifact.score.name;
  if (!split) {
    std::cout << ", " << artifact.calibration.name << ": " << options.out << '\n';
    return;
  }
  std::cout << ": " << options.out << "\nradius";
  for (const Level& level : levels) {
    std::cout << "  " << format_target(level) << ':';
    for (const double radius : artifact.radius(level)) std::cout << ' ' << format_number(radius);
  }
  std::cout << '\n';
}

void run_calibrate(CalibrateOptions& options) {
  Context context = start(options.common);
  context.batch = options.data.batch;
  const DataOptions data = data_options(options.data);
  ScoreOptions& score = options.settings.score;
  score.norm = parse_norm(options.norm);
  score.bound.method = parse_bound(options.bound);
  options.settings.level = parse_level(options.alpha);
  options.settings.levels = parse_levels(options.levels);
  check_usage(options);
  settle_label_options(options);
  options.settings.cut = parse_cut(options.cut);
  if (options.steps > 0) options.settings.steps = options.steps;
  if (options.bandwidth > 0) options.settings.bandwidth = options.bandwidth;
  if (!options.checkpoint.empty()) options.settings.checkpoint = options.checkpoint;
  Graph network = read_onnx(options.model);
  if (options.common.ranks->size() > 1) {
    check_same_bytes(*options.common.ranks, options.model, serialize_onnx(network));
  }
  const auto source = open_data(data, &network);
  remember_images(data, *source, network);
  const auto shifted = open_shifted(options, network);
  options.settings.shifted = shifted.get();
  read_calibration_facts(options);
  options.settings.data_name = options.data.data;
  options.settings.provenance["network"] = file_name(options.model);
  options.settings.provenance["calibration data"] = data_file_names(data);
  const CalibrateResult result = calibrate(network, *source, options.settings, context);
  if (options.common.ranks->rank() != 0) return;
  for (const std::string& note : findings_text(result.findings)) say(options.common, note);
  write_artifact(result.artifact, options.out);
  if (!options.checkpoint.empty()) unlink(options.checkpoint.c_str());
  for (const std::string& warning : result.warnings) say(options.common, "warning: " + warning);
  print_calibrated(result.artifact, options);
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
      "  fcp calibrate quantiles.onnx --data cal.csv --target y --score feature_cqr --out "
      "calibrated.onnx\n"
      "  fcp calibrate model.onnx --data cal.csv --target y --calibration grouped --group region "
      "--out calibrated.onnx\n"
      "  fcp calibrate classifier.onnx --data photos/ --score feature_margin --out "
      "calibrated.onnx\n"
      "  mpirun -n 4 fcp calibrate model.onnx --data x.npy --target y.npy --threads 1 --out "
      "calibrated.onnx\n"
      "  mpirun -n 4 fcp calibrate model.onnx --data x.npy --target y.npy --threads 1 --levels "
      "0.05,0.1 --out calibrated.onnx\n"
      "The rows must not have been used to train the network.");
  verb->add_option("model", options->model, "ONNX file")->required();
  verb->add_option("--data", options->data.data,
                   "Calibration rows: CSV, .npy, .npz:entry, or a folder of images")
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
  verb->add_option("--low", score.low, "cqr, feature_cqr: the output that is the low quantile");
  verb->add_option("--high", score.high, "cqr, feature_cqr: the output that is the high quantile");
  verb->add_flag("--asymmetric", score.asymmetric,
                 "cqr, feature_cqr: a radius for each side, each at half of alpha");
  verb->add_option(
      "--cut", options->cut,
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
  verb->add_option(
          "--floor", score.floor,
          "Widen each band by this share of the mean band (nested, linearized, feature_cqr)")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb->add_option("--steps", options->steps, "Surrogate: steps of the search; 0 chooses them")
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
      "Surrogate, feature_cqr: as the paper: signed surrogate distances for feature_cqr; rows that "
      "choose the steps are calibrated on too, at level 0.1 always, and the largest score stands "
      "for an infinite radius");
  verb->add_option("--temperature", options->temperature,
                   "lac, aps, raps: temperature of the softmax, or 'auto' to fit it on a slice")
      ->capture_default_str();
  verb->add_flag("--not-randomized", options->plain,
                 "aps, raps: whole labels only, larger sets and more coverage");
  verb->add_option("--rank-weight", options->rank_weight,
                   "raps (its lambda), feature_margin: what each rank beyond --rank-free costs, or "
                   "'auto' to choose both on a slice")
      ->capture_default_str();
  verb->add_option("--rank-free", score.rank_free, "raps (its k_reg), feature_margin")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--samples", score.samples, "feature_sampled: samples of the ball")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  CalibrationOptions& calibration = options->settings.calibration;
  verb->add_option("--calibration", calibration.name,
                   "split: one radius; grouped: one a group; localized: rows near the new one in "
                   "feature space count more; weighted: for rows of another distribution")
      ->check(CLI::IsMember({"split", "grouped", "localized", "weighted"}))
      ->capture_default_str();
  verb->add_option("--group", options->facts.group,
                   "Grouped: a CSV column, an .npy file of group numbers, or for labels "
                   "'predicted' (by the network's answer) or 'label' (class by class)");
  verb->add_option("--bandwidth", options->bandwidth,
                   "Localized: width of the neighbourhood, in the unit of the features; 0 chooses "
                   "it on a slice of the rows")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--weights", options->facts.weights,
                   "Weighted: the likelihood ratio of each row: a CSV column or an .npy file");
  verb->add_option("--shifted", options->shifted,
                   "Weighted: rows of the other distribution, without answers, from which the "
                   "ratio is estimated");
  verb->add_option("--alpha", options->alpha, "Level for which lengths are compared when choosing")
      ->capture_default_str();
  verb->add_option(
          "--levels", options->levels,
          "Split: keep the radii of these alphas alone, as 0.05,0.1, instead of all scores: a "
          "small "
          "file, and ranks send no scores; other alphas and p-values cannot be asked of it")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb->add_option("--selection", options->settings.selection_share,
                   "Share of the rows that choices look at and calibration does not")
      ->check(CLI::Range(0.0, 0.9))
      ->capture_default_str();
  verb->add_option(
      "--checkpoint", options->checkpoint,
      "File that keeps the scores as they come: the same command goes on from it after "
      "a crash, and removes it at the end");
  add_data(*verb, options->data, /*needs_target=*/true);
  add_common(*verb, options->common);
  verb->callback([options] { run_shared(options->common, [&] { run_calibrate(*options); }); });
}

}  // namespace fcp
