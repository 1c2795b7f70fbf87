// fcp evaluate: how the regions of a calibrated predictor do on rows with known answers.
#include "apps/cli/evaluate.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/base/text_table.h"
#include "fcp/evaluate/evaluate.h"
#include "fcp/evaluate/replay.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/predictor/batch.h"
#include "fcp/predictor/context.h"
#include "fcp/predictor/levels.h"

#include "apps/cli/common.h"
#include "apps/cli/option_flags.h"
#include "apps/cli/print_report.h"
#include "apps/cli/truths.h"
#include "apps/report/json.h"
#include "apps/report/results.h"

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

namespace {

// Gibbs and Candès: whatever the rows are, ACI's share of misses over T of them is as near as this.
double aci_bound(const Level& level, double step, size_t rows) {
  const double alpha = level.value();
  return (std::max(alpha, 1 - alpha) + step) / (step * static_cast<double>(rows));
}

std::string promise_of(const OnlineFlags& flags, const Level& level, size_t rows) {
  if (flags.adapt.method == "none") {
    return "the level stays, and nothing is promised where the rows are not exchangeable";
  }
  std::string text = concat("in the long run coverage tends to ", format_target(level),
                            ", whatever the rows are; nothing is promised for one row");
  if (flags.adapt.method == "aci") {
    text += concat("; over these ", format_count(rows), " rows it is within ",
                   format_percent(std::min(1.0, aci_bound(level, flags.adapt.step, rows))),
                   " of it for certain");
  }
  return text;
}

nlohmann::ordered_json side_json(const RateCount& covered, const SizeCount& size) {
  return {{"coverage", covered.rate()},
          {"size", json_number(size.mean())},
          {"infinite", size.infinite}};
}

std::vector<std::string> side_cells(const std::string& name, const RateCount& covered,
                                    const SizeCount& size) {
  return {name, format_percent(covered.rate()), format_number(size.mean()),
          format_count(size.infinite)};
}

}  // namespace

void add_online(CLI::App& verb, OnlineFlags& flags) {
  auto* online = verb.add_option("--calibration", flags.calibration,
                                 "online: rows are in the order of time, and the level of each "
                                 "follows the truths before it")
                     ->check(CLI::IsMember({"online"}));
  verb.add_option("--adapt", flags.adapt.method, "Online: how; dtaci needs no step size")
      ->check(CLI::IsMember({"aci", "dtaci", "none"}))
      ->needs(online)
      ->capture_default_str();
  verb.add_option("--step", flags.adapt.step, "Online by aci: how far each truth moves the level")
      ->check(CLI::Range(0.0, 1.0))
      ->needs(online)
      ->capture_default_str();
  verb.add_option("--window", flags.window,
                  "Online: take radii from this many last scores; 0: from those of the file")
      ->needs(online)
      ->capture_default_str();
}

void evaluate_online(const CalibrationArtifact& artifact, RowSource& source, const Level& level,
                     RowFacts facts, const OnlineFlags& flags, const CommonOptions& common,
                     const Context& context) {
  ReplayOptions options;
  options.monitor.level = level;
  options.monitor.seed = common.seed;
  options.facts = std::move(facts);
  options.watch_inputs = false;
  options.adapt = flags.adapt;
  options.window = flags.window;
  const MonitorReport report = replay(artifact, source, options, context);
  const std::string promise = promise_of(flags, level, report.rows);
  if (common.json) {
    const nlohmann::ordered_json json = {
        {"alpha", level.value()},
        {"rows", report.rows},
        {"adapt", adapting_text(flags.adapt)},
        {"window", flags.window},
        {"online", side_json(report.adapted_covered, report.adapted_size)},
        {"as_filed", side_json(report.covered, report.size)},
        {"promise", promise}};
    std::cout << json_text(json) << '\n';
    return;
  }
  Table table({"calibration", "coverage", "mean size", "infinite"});
  table.add_row(side_cells("as filed", report.covered, report.size));
  table.add_row(side_cells("online", report.adapted_covered, report.adapted_size));
  std::cout << table << format_count(report.rows) << " rows; " << promise << '\n';
}

}  // namespace fcp::cli
