// fcp update: a calibrated predictor, brought up to date with new rows; its settings are kept.
#include "fcp/calibrate/update.h"

#include <iostream>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/predictor/artifact_settings.h"
#include "fcp/predictor/context.h"

#include "apps/cli/common.h"
#include "apps/cli/option_flags.h"
#include "apps/cli/print_report.h"
#include "apps/cli/truths.h"
#include "apps/report/results.h"

namespace fcp::cli {
namespace {

struct UpdateFlags {
  CommonOptions common;
  DataFlags data;
  FactOptions facts;
  UpdateOptions update;
  std::string model;
  std::string out;
  std::string time;
};

void print_updated(const CalibrationArtifact& artifact, const UpdateFlags& flags) {
  const ArtifactFacts facts = artifact_facts(artifact);
  if (flags.common.json) {
    const Level usual(0.1);
    nlohmann::ordered_json json = {
        {"rows", facts.rows}, {"version", facts.version}, {"out", flags.out}};
    if (artifact.method.calibration.traits().one_radius && facts.kept_levels.empty()) {
      json["radius"][usual.text()] = radius_json(artifact, usual);
    }
    std::cout << json.dump(2) << '\n';
    return;
  }
  std::cout << "version " << facts.version << ", calibrated on " << format_count(facts.rows)
            << " rows with score " << facts.score << ": " << flags.out << '\n';
}

void run_update(UpdateFlags& flags) {
  Context context = start(flags.common);
  context.batch = flags.data.batch;
  if (flags.data.state.empty() && flags.update.since.empty() != flags.time.empty()) {
    throw UsageError("--since takes --time, the column of the times, and --time takes --since");
  }
  const DataOptions data = data_options(flags.data);
  const CalibrationArtifact artifact = read_artifact(flags.model);
  Truths truths =
      open_truths(flags.data, data, flags.facts, flags.time, flags.model, artifact, context);
  choose_device(artifact.network, *truths.rows, context);
  UpdateOptions options = flags.update;
  options.facts = std::move(truths.facts);
  if (!options.since.empty()) options.times = std::move(truths.times);
  options.data_name = truths.name;
  options.file_sha256 = file_sha256(flags.model);
  const CalibrateResult result = update(artifact, *truths.rows, options, context);
  write_artifact(result.artifact, flags.out);
  for (const std::string& warning : result.warnings) say(flags.common, "warning: " + warning);
  print_updated(result.artifact, flags);
}

}  // namespace

void add_update(CLI::App& app) {
  auto flags = std::make_shared<UpdateFlags>();
  CLI::App* verb =
      app.add_subcommand("update", "Recalibrate with new rows and the settings of the file");
  verb->footer(
      "Examples:\n"
      "  fcp update calibrated.onnx --data new.csv --target y --out calibrated2.onnx\n"
      "  fcp update calibrated.onnx --data log.csv --target y --window 5000 --out next.onnx\n"
      "  fcp update calibrated.onnx --data log.csv --target y --time t --since 2026-10-01 --out "
      "next.onnx\n"
      "  fcp update calibrated.onnx --state state/ --since 2026-10-01 --out next.onnx\n"
      "Without --window and --since all new rows are merged with those of the file.");
  verb->add_option("model", flags->model, "Calibrated predictor")->required();
  add_truths(*verb, flags->data, "New rows: CSV, .npy or .npz:entry");
  verb->add_option("--out", flags->out, "Calibrated predictor to write")->required();
  auto* window = verb->add_option("--window", flags->update.window,
                                  "Calibrate on this many rows: the newest, then old ones");
  verb->add_option("--since", flags->update.since, "Calibrate only on new rows from this time on")
      ->excludes(window);
  verb->add_option("--time", flags->time, "CSV column of times, for --since");
  add_facts(*verb, flags->facts);
  add_data(*verb, flags->data, /*needs_target=*/true);
  add_common(*verb, flags->common);
  verb->callback([flags] { run_update(*flags); });
}

}  // namespace fcp::cli
