// fcp evaluate: how the regions of a calibrated predictor do on rows with known answers.
#include "fcp/evaluate/evaluate.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/predictor/device_choice.h"
#include "fcp/predictor/levels.h"
#include "fcp/predictor/shared_batches.h"

#include "apps/cli/common.h"
#include "apps/cli/data_flags.h"
#include "apps/cli/evaluate_online.h"
#include "apps/cli/level_flags.h"
#include "apps/cli/print_report.h"
#include "apps/cli/truths.h"
#include "apps/cli/verbs.h"

namespace fcp::cli {
namespace {

struct EvaluateFlags {
  CommonOptions common;
  DataFlags data;
  std::string model;
  LevelFlags levels;
  FactOptions facts;
  std::vector<std::string> refits;
  ReportFlags report;
  OnlineFlags online;
};

// The file, and what is predicted where it has a name.
std::string evaluation_title(const EvaluationReport& report, const std::string& name,
                             const DataOptions& data) {
  const bool file = data.target.find(".np") != std::string::npos;
  const std::string target = report.response != "y" ? report.response : file ? "" : data.target;
  return concat(name, target.empty() ? "" : concat(": ", target));
}

void check_online(const EvaluateFlags& flags, const Context& context) {
  if (!flags.refits.empty() || !flags.report.html.empty() || flags.report.fail_below) {
    throw UsageError(
        "--calibration online takes no --refit, --report or --fail-below; fcp monitor --adapt "
        "writes a report");
  }
  if (context.ranks->size() > 1) throw UsageError("--calibration online takes one process");
}

void run_evaluate(const EvaluateFlags& flags) {
  Context context = start(flags.common);
  context.batch = flags.data.batch;
  DataOptions data = data_options(flags.data);
  std::vector<Level> levels;
  const CalibrationArtifact artifact = read_artifact_at(flags.model, flags.levels, levels);
  const Level level = levels[0];
  if (context.ranks->size() > 1) {
    check_same_bytes(*context.ranks, flags.model, serialize_onnx(artifact_graph(artifact)));
  }
  if (!flags.data.data.empty()) take_target(artifact, data);
  if (!flags.data.state.empty() && context.ranks->size() > 1) {
    throw UsageError("--state takes one process");
  }
  Truths truths = open_truths(flags.data, data, flags.facts, "", flags.model, artifact, context);
  choose_device(artifact.network, *truths.rows, context);
  if (!flags.online.calibration.empty()) {
    check_online(flags, context);
    return evaluate_online(artifact, *truths.rows, level, truths.facts, flags.online, flags.common,
                           context);
  }
  EvaluateOptions options{.level = level, .facts = std::move(truths.facts)};
  std::vector<CalibrationArtifact> refits;
  for (const std::string& path : flags.refits)
    refits.push_back(read_artifact_for(path, {&level, 1}));
  for (const CalibrationArtifact& refit : refits) options.refits.push_back(&refit);
  options.all_levels = !flags.report.html.empty();
  const bool images = flags.data.state.empty() && are_images(data);
  if (images) options.images = transform_for(data, &artifact.network);
  EvaluationReport report = evaluate(artifact, *truths.rows, options, context);
  report.provenance.emplace_back("test data", truths.name);
  report.title = evaluation_title(report, truths.name, data);
  report.model = file_name_of(flags.model);
  tell_report(report, flags.report, flags.common);
}

}  // namespace

void add_evaluate(CLI::App& app) {
  auto flags = std::make_shared<EvaluateFlags>();
  CLI::App* verb =
      app.add_subcommand("evaluate", "Coverage, and length or size, on rows with known answers");
  verb->footer(
      "Example:\n"
      "  fcp evaluate calibrated.onnx --data test.csv --target y --alpha 0.1 --report report.html\n"
      "  fcp evaluate calibrated.onnx --data today.csv --target y --fail-below 0.001\n"
      "  fcp evaluate calibrated.onnx --data log.csv --target y --calibration online\n"
      "  fcp evaluate seed0.onnx --data test.csv --target y --refit seed1.onnx,seed2.onnx\n"
      "  mpirun -n 4 fcp evaluate calibrated.onnx --data x.npy --target y.npy --threads 1");
  verb->add_option("model", flags->model, "Calibrated predictor")->required();
  add_truths(*verb, flags->data, "Rows: CSV, .npy, .npz:entry, or a folder of images");
  add_levels(*verb, flags->levels);
  add_facts(*verb, flags->facts);
  verb->add_option("--refit", flags->refits,
                   "Predictors of other training or calibration runs, separated by commas: "
                   "measure how much their intervals overlap")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb->add_option("--report", flags->report.html, "HTML report to write");
  add_fail_below(*verb, flags->report);
  add_online(*verb, flags->online);
  add_data(*verb, flags->data, /*needs_target=*/true);
  add_common(*verb, flags->common);
  verb->callback([flags] { run_shared(flags->common, [&] { run_evaluate(*flags); }); });
}

}  // namespace fcp::cli
