// fcp export: the regions of fixed levels as outputs of a plain ONNX network.
#include "fcp/export/export.h"

#include <algorithm>
#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/predictor/artifact_settings.h"
#include "fcp/predictor/levels.h"

#include "apps/cli/common.h"
#include "apps/cli/option_flags.h"
#include "apps/cli/print_report.h"
#include "apps/server/feedback_store.h"

namespace fcp::cli {
namespace {

struct ExportVerbOptions {
  CommonOptions common;
  std::string model;
  std::vector<std::string> alpha{};  // empty: as LevelFlags
  std::string state;
  std::string prefix;
  std::string out;
};

// The level that `fcp serve --adapt` has reached for this very file and this target.
Level adapted_level(const ExportVerbOptions& options, const Level& target) {
  const std::string sha256 = file_sha256(options.model);
  for (const auto& [key, level] : read_feedback_store(options.state)->levels_of(sha256)) {
    if (key.target != target.value()) continue;
    if (level.level <= 0 || level.level >= 1) {
      fail(options.model, ": its adapted level is ", level.level, ", which asks for ",
           level.level <= 0 ? "everything" : "nothing", "; recalibrate with fcp update");
    }
    say(options.common,
        concat("level ", level.level, ", adapted by ", key.method, " for ", target.text()));
    return Level(level.level);
  }
  fail(options.model, ": the state has no adapted level of this file for ", target.text());
}

void run_export(const ExportVerbOptions& options) {
  start(options.common);
  ExportOptions wanted{.levels = {}, .prefix = options.prefix};
  std::vector<Level> levels;
  for (const std::string& alpha : options.alpha) levels.push_back(parse_level(alpha));
  if (levels.empty()) read_artifact_at(options.model, {}, levels);
  for (Level level : levels) {
    if (!options.state.empty()) level = adapted_level(options, level);
    if (std::find(wanted.levels.begin(), wanted.levels.end(), level) != wanted.levels.end()) {
      throw UsageError(concat("--alpha: ", level.text(), " is given twice"));
    }
    wanted.levels.push_back(level);
  }
  const CalibrationArtifact artifact = read_artifact_for(options.model, wanted.levels);
  nlohmann::ordered_json outputs = nlohmann::ordered_json::object();
  nlohmann::ordered_json radius = nlohmann::ordered_json::object();
  std::string names;
  Graph exported;
  try {
    exported = export_artifact(artifact, wanted);
  } catch (const Error& error) {
    fail(options.model, ": ", error.what());
  }
  write_onnx(exported, options.out);
  for (const Level& level : wanted.levels) {
    for (const std::string& warning : level_warnings(artifact, level)) {
      say(options.common, "warning: " + warning);
    }
    const std::vector<std::string> made = export_names(artifact, wanted, level);
    for (const std::string& name : made) names += (names.empty() ? "" : ", ") + name;
    outputs[level.text()] = made;
    radius[level.text()] = radius_json(artifact, level);
  }
  const std::vector<std::string> chances = chance_names(artifact, wanted);
  for (const std::string& name : chances) names += ", " + name;
  if (options.common.json) {
    nlohmann::ordered_json json = {{"score", artifact.method.score.name()},
                                   {"outputs", outputs},
                                   {"radius", radius},
                                   {"out", options.out}};
    if (!chances.empty()) json["probabilities"] = chances;
    std::cout << json.dump(2) << '\n';
  } else {
    say(options.common, concat("wrote ", options.out, " with the outputs ", names));
  }
}

}  // namespace

void add_export(CLI::App& app) {
  auto options = std::make_shared<ExportVerbOptions>();
  CLI::App* verb =
      app.add_subcommand("export", "Write plain ONNX with the regions as outputs, for any runtime");
  verb->footer(
      "Examples:\n"
      "  fcp export calibrated.onnx --alpha 0.1 --out intervals.onnx\n"
      "  fcp export calibrated.onnx --alpha 0.1,0.05 --out intervals.onnx\n"
      "  fcp export calibrated.onnx --state state/ --out adapted.onnx\n"
      "The new outputs are lower and upper, in the shape of the prediction, or for labels in_set, "
      "booleans\n[rows, classes]; with several levels lower_0.1, lower_0.05 and so on. Scores: "
      "residual, cqr, nested and\nfeature_cqr with ibp, linearized for perceptrons, lac, aps, raps "
      "and saps not randomized, feature_margin.");
  verb->add_option("model", options->model, "Calibrated predictor")->required();
  verb->add_option("--alpha", options->alpha,
                   "Share of regions that may miss the truth; several: 0.1,0.05. A file of fcp fit "
                   "brings its own")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->default_str("0.1");
  verb->add_option("--state", options->state,
                   "State of fcp serve --adapt: the level that it has reached for --alpha instead");
  verb->add_option("--out", options->out, "ONNX file to write")->required();
  verb->add_option("--prefix", options->prefix, "Before the names of the new outputs");
  add_common(*verb, options->common, kTakesJson | kTakesThreads);
  verb->callback([options] { run_export(*options); });
}

}  // namespace fcp::cli
