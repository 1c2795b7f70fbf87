// fcp predict: intervals for new rows.
#include "fcp/pipeline/predict.h"

#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/pipeline/levels.h"

#include "cli/common.h"
#include "cli/data_flags.h"
#include "cli/print_report.h"
#include "cli/verbs.h"

namespace fcp {
namespace {

struct PredictFlags {
  CommonOptions common;
  DataFlags data;
  FactOptions facts;
  std::string model;
  std::string alpha = "0.1";
  std::string out = "-";
};

void run_predict(const PredictFlags& flags) {
  if (flags.common.json && flags.out == "-") {
    throw UsageError("--json needs --out FILE, because the regions themselves go to stdout");
  }
  Context context = start(flags.common);
  context.batch = flags.data.batch;
  const DataOptions data = data_options(flags.data);
  const Level level = parse_level(flags.alpha);
  const CalibrationArtifact artifact = read_artifact_for(flags.model, {&level, 1});
  if (const auto warning = infinite_radius_warning(artifact, level)) {
    say(flags.common, "warning: " + *warning);
  }
  const auto source = open_data(data, &artifact.network, *context.observer);
  const PredictOptions options{
      .level = level, .facts = read_facts_for(artifact, data, flags.facts, *context.observer)};
  const auto writer = open_region_file(flags.out, artifact);
  const size_t rows = predict(artifact, *source, options, context, *writer);
  if (flags.common.json) {
    const nlohmann::ordered_json json = {{"rows", rows},
                                         {"alpha", level.value()},
                                         {"radius", radius_json(artifact, level)},
                                         {"out", flags.out}};
    std::cout << json.dump(2) << '\n';
  } else {
    say(flags.common, concat("predicted ", rows, " rows at alpha ", level.text()));
  }
}

}  // namespace

void add_predict(CLI::App& app) {
  auto flags = std::make_shared<PredictFlags>();
  CLI::App* verb = app.add_subcommand("predict", "Intervals or label sets for new rows");
  verb->footer(
      "Examples:\n"
      "  fcp predict calibrated.onnx --data new.csv --alpha 0.1 --out intervals.csv\n"
      "  fcp predict calibrated.onnx --data new.npy --alpha 0.05 --out intervals.npy\n"
      "  fcp predict calibrated.onnx --data photos/ --out sets.csv\n"
      "CSV columns are prediction, lower, upper; an .npy holds [rows, outputs, 3] in that order.\n"
      "For labels: prediction, size, labels (joined by |); an .npy holds booleans [rows, "
      "classes].");
  verb->add_option("model", flags->model, "Calibrated predictor")->required();
  verb->add_option("--data", flags->data.data, "Rows: CSV, .npy, .npz:entry, or a folder of images")
      ->required();
  verb->add_option("--alpha", flags->alpha, "Share of regions that may miss the truth")
      ->capture_default_str();
  verb->add_option("--out", flags->out, "CSV or .npy file; - is standard output")
      ->capture_default_str();
  add_facts(*verb, flags->facts);
  add_data(*verb, flags->data, /*needs_target=*/false);
  add_common(*verb, flags->common);
  verb->callback([flags] { run_predict(*flags); });
}

}  // namespace fcp
