// fcp calibrate: a network and rows with known answers become a calibrated predictor.
#include "fcp/calibrate/calibrate.h"

#include <memory>
#include <set>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/base/memory.h"
#include "fcp/calibrate/update.h"
#include "fcp/methods/options.h"
#include "fcp/nn/graph/onnx_reader.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/predictor/batch.h"
#include "fcp/predictor/context.h"
#include "fcp/predictor/network_inputs.h"

#include "apps/cli/common.h"
#include "apps/cli/option_flags.h"
#include "apps/cli/print_report.h"

namespace fcp::cli {
namespace {

struct CalibrateOptions {
  CommonOptions common;
  std::set<std::string> told;  // options of the table that were given
  DataFlags data;
  CalibrateSettings settings;
  std::string model;
  std::string out;
  std::string alpha = "0.1";
  std::vector<std::string> levels;
  std::string checkpoint;
  std::string weights;  // a column or a file
  std::string shifted;
  std::string fit_data;
};

void check_usage(const CalibrateOptions& options) {
  const std::string& name = options.settings.method.calibration;
  const CalibrationTraits traits =
      name == kRectified ? CalibrationTraits() : calibration_traits(name);
  if (!options.levels.empty() && !traits.one_radius) {
    fail_option("levels", "applies only to the calibration split: ", name, " needs all scores");
  }
  const bool given = !options.weights.empty(), estimated = !options.shifted.empty();
  if (traits.by_weight != (given || estimated) || (given && estimated)) {
    throw UsageError("--calibration weighted takes one of --weights and --shifted");
  }
}

// Further rows are read like the calibration rows; null where there are none.
std::unique_ptr<RowSource> open_further(const std::string& files, bool with_target,
                                        const CalibrateOptions& options, const Graph& network) {
  if (files.empty()) return nullptr;
  DataOptions rows = data_options(options.data);
  rows.data = files;
  if (!with_target) rows.target.clear();
  rows.needs_target = with_target;
  return open_data(rows, &network);
}

void read_calibration_facts(CalibrateOptions& options) {
  const std::string column = resolve(options.settings.method).calibration.group_column();
  options.settings.facts =
      read_facts(data_options(options.data), {.group = column, .weights = options.weights});
}

// The network of a file that is calibrated already, whose method is kept where nothing else is
// said.
Graph keep_method(CalibrateOptions& options, Graph calibrated) {
  const CalibrationArtifact artifact = artifact_from_graph(std::move(calibrated), options.model);
  MethodRequest& method = options.settings.method;
  method = recalibration_request(artifact, method, options.told);
  const std::string cut =
      artifact.method.cut.empty() ? "" : concat(", cut at ", artifact.method.cut);
  say(options.common,
      concat("note: ", options.model, " is calibrated already, with the score ",
             artifact.method.score.name(), cut, "; what is not asked for stays as it was"));
  return artifact.network;
}

void run_calibrate(CalibrateOptions& options) {
  Context context = start(options.common);
  set_memory_budget(options.settings.method.memory);
  context.batch = options.data.batch;
  const DataOptions data = data_options(options.data);
  options.settings.level = parse_level(options.alpha);
  options.settings.levels = parse_levels(options.levels);
  options.settings.method.set("seed", options.common.seed);
  Graph network = read_onnx(options.model);
  if (is_calibrated(network)) network = keep_method(options, std::move(network));
  check_options(options.settings.method);
  check_usage(options);
  if (!options.checkpoint.empty()) options.settings.checkpoint = options.checkpoint;
  if (options.common.ranks->size() > 1) {
    check_same_bytes(*options.common.ranks, options.model, serialize_onnx(network));
  }
  pack_for_rows(data, network);
  const auto source = open_data(data, &network, *context.observer);
  choose_device(network, *source, context);
  remember_images(data, *source, network);
  const auto shifted = open_further(options.shifted, false, options, network);
  options.settings.shifted = shifted.get();
  const auto fitting = open_further(options.fit_data, true, options, network);
  options.settings.head_rows = fitting.get();
  read_calibration_facts(options);
  options.settings.data_name = options.data.data;
  options.settings.provenance["network"] = file_name_of(options.model);
  options.settings.provenance["calibration data"] = data_file_names(data);
  const CalibrateResult result = calibrate(network, *source, options.settings, context);
  if (options.common.ranks->rank() != 0) return;
  finish_calibration(result, options.settings, options.out, options.common);
}

}  // namespace

void add_calibrate(CLI::App& app) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App* verb =
      app.add_subcommand("calibrate", "Calibrate a network on rows with known answers");
  verb->footer(
      "Examples:\n"
      "  fcp calibrate model.onnx --data cal.csv --target y --out calibrated.onnx\n"
      "  fcp calibrate model.onnx --data x.npy --target y.npy --score nested --cut auto --out "
      "calibrated.onnx\n"
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
  verb->add_option(
          "--data", options->data.data,
          "Calibration rows: CSV, .npy, .npz:entry, or a folder of images; an .npz with one "
          "entry per input where the network has several")
      ->required();
  verb->add_option("--out", options->out, "Calibrated predictor to write")->required();
  add_option_flags(*verb, options->settings.method);
  verb->add_option("--memory", options->settings.method.memory,
                   "Bytes for bounds, and for the tensors of networks, as 4GB or 500MB; by default "
                   "half of what is free")
      ->transform(CLI::AsSizeValue(false));
  verb->add_option("--weights", options->weights,
                   "Weighted: the likelihood ratio of each row: a CSV column or an .npy file");
  verb->add_option("--shifted", options->shifted,
                   "Weighted: rows of the other distribution, without answers, from which the "
                   "ratio is estimated");
  verb->add_option("--fit-data", options->fit_data,
                   "CSV rows that heads on features are learned on (spread, quantiles, density, "
                   "auto); by default a share of the calibration rows, which is then left out. A "
                   "network by `fcp train` brings its heads");
  verb->add_flag("--allow-training-rows", options->settings.allow_training_rows,
                 "Only warn where the network was trained on these rows");
  verb->add_option("--alpha", options->alpha, "Level for which lengths are compared when choosing")
      ->capture_default_str();
  verb->add_option(
          "--levels", options->levels,
          "Split: keep the radii of these alphas alone, as 0.05,0.1, instead of all scores: a "
          "small file, and ranks send no scores; other alphas and p-values cannot be asked of it")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb->add_option(
      "--checkpoint", options->checkpoint,
      "File that keeps the scores as they come: the same command goes on from it after "
      "a crash, and removes it at the end");
  add_data(*verb, options->data, /*needs_target=*/true);
  add_common(*verb, options->common);
  verb->callback([options, verb] {
    for (const Option& option : option_table()) {
      const CLI::Option* flag = verb->get_option_no_throw(flag_name(option.name));
      if (flag != nullptr && flag->count() > 0) options->told.insert(option.name);
    }
    run_shared(options->common, [&] { run_calibrate(*options); });
  });
}

}  // namespace fcp::cli
