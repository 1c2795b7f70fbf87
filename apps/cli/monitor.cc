// fcp monitor: a log of rows with truths, replayed in the order of time. Alarms end it with code 3.
#include <iostream>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/base/output_file.h"
#include "fcp/evaluate/replay.h"
#include "fcp/predictor/levels.h"

#include "apps/cli/common.h"
#include "apps/cli/option_flags.h"
#include "apps/cli/truths.h"
#include "apps/report/json.h"
#include "apps/report/monitor_report.h"

namespace fcp::cli {
namespace {

struct MonitorFlags {
  CommonOptions common;
  DataFlags data;
  FactOptions facts;
  ReplayOptions replay;
  std::string model;
  LevelFlags levels;
  std::string time;
  std::string reference;
  std::vector<std::string> watch;
  std::string adapt;
  double step = 0.005;
  std::string report;
};

// The features without those of a column, where that is one of them: that time passes is no drift.
// Empty: all.
std::vector<std::string> columns_but(std::vector<std::string> names, const std::string& column) {
  const auto is_of = [&](const std::string& name) {
    return name == column || name.starts_with(column + "=");
  };
  const size_t removed = column.empty() ? 0 : std::erase_if(names, is_of);
  return removed > 0 ? names : std::vector<std::string>();
}

ReplayOptions replay_options(const MonitorFlags& flags, Truths& truths) {
  ReplayOptions options = flags.replay;
  options.monitor.seed = flags.common.seed;
  options.facts = std::move(truths.facts);
  options.times = std::move(truths.times);
  options.watch_inputs = flags.watch != std::vector<std::string>{"none"};
  if (options.watch_inputs) options.watched = flags.watch;
  if (!flags.adapt.empty()) options.adapt = AdaptOptions{flags.adapt, flags.step};
  if (options.window > 0 && !options.adapt) {
    throw UsageError("--window applies only to --adapt; say --adapt dtaci, aci or none");
  }
  return options;
}

void tell_monitor(const MonitorFlags& flags, const std::string& log, const MonitorReport& report) {
  if (!flags.report.empty()) {
    write_file(flags.report, monitor_html(report, {{"predictor", flags.model}, {"log", log}}));
  }
  if (flags.common.json) {
    std::cout << json_text(monitor_json(report)) << '\n';
  } else {
    std::cout << monitor_text(report);
    if (!flags.report.empty()) std::cout << "report: " << flags.report << '\n';
  }
  if (!report.alarms.empty()) throw Alarm();
}

void run_monitor(MonitorFlags& flags) {
  Context context = start(flags.common);
  context.batch = flags.data.batch;
  DataOptions data = data_options(flags.data);
  flags.replay.monitor.level = levels_of(flags.levels)[0];
  say_lax_level(flags.common, flags.replay.monitor.level);
  const CalibrationArtifact artifact =
      read_artifact_for(flags.model, {&flags.replay.monitor.level, 1});
  if (!flags.data.data.empty()) take_target(artifact, data);
  Truths truths =
      open_truths(flags.data, data, flags.facts, flags.time, flags.model, artifact, context);
  ReplayOptions options = replay_options(flags, truths);
  if (options.watch_inputs && flags.watch.empty()) {
    options.watched = columns_but(truths.rows->column_names(), flags.time);
  }
  std::unique_ptr<RowSource> reference;
  if (!flags.reference.empty()) {
    DataOptions before = data;
    before.data = flags.reference;
    before.target = "";
    before.needs_target = false;
    reference = open_data(before, &artifact.network);
    options.reference = reference.get();
  }
  tell_monitor(flags, truths.name, replay(artifact, *truths.rows, options, context));
}

void add_watching(CLI::App& verb, MonitorFlags& flags) {
  verb.add_option("--false-alarms", flags.replay.monitor.false_alarms,
                  "Chance of any false alarm over all time")
      ->check(CLI::Range(1e-9, 0.5))
      ->capture_default_str();
  verb.add_option("--watch", flags.watch, "Columns of the inputs to watch for drift, or none")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb.add_option(
      "--reference", flags.reference,
      "Rows from before the log, for the drift of inputs; without it the log's own past");
  verb.add_option("--time", flags.time, "CSV column of times: numbers, or dates like 2026-11-16");
  verb.add_option("--period", flags.replay.period,
                  "Periods of the timeline, by the dates of --time")
      ->check(CLI::IsMember({"year", "month", "day", "hour"}));
  verb.add_option("--every", flags.replay.every, "Rows of a period; 0 chooses")
      ->capture_default_str();
  verb.add_option("--report", flags.report, "HTML report with the timeline to write");
}

void add_adapting(CLI::App& verb, MonitorFlags& flags) {
  verb.add_option("--adapt", flags.adapt,
                  "Also show regions whose level follows the truths: dtaci needs no step size; "
                  "none: the level stays, for --window alone")
      ->check(CLI::IsMember({"aci", "dtaci", "none"}));
  verb.add_option("--step", flags.step, "Adapt by aci: how far each truth moves the level")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  verb.add_option("--window", flags.replay.window,
                  "Adapt: take radii from this many last scores; 0: from those of the file")
      ->capture_default_str();
}

}  // namespace

void add_monitor(CLI::App& app) {
  auto flags = std::make_shared<MonitorFlags>();
  CLI::App* verb = app.add_subcommand(
      "monitor", "Watch a log for change: coverage, scores, inputs; exit code 3 on alarm");
  verb->footer(
      "Examples:\n"
      "  fcp monitor calibrated.onnx --data log.csv --target y --time t --period month\n"
      "  fcp monitor calibrated.onnx --data log.csv --target y --report timeline.html\n"
      "  fcp monitor calibrated.onnx --data log.csv --target y --adapt dtaci --window 1000\n"
      "  fcp monitor calibrated.onnx --state state/ --period day\n"
      "The rows must be in the order of time. Exit code 3: at least one alarm.");
  verb->add_option("model", flags->model, "Calibrated predictor")->required();
  add_truths(*verb, flags->data, "The log: CSV, .npy or .npz:entry");
  add_levels(*verb, flags->levels);
  add_watching(*verb, *flags);
  add_adapting(*verb, *flags);
  add_facts(*verb, flags->facts);
  add_data(*verb, flags->data, /*needs_target=*/true);
  add_common(*verb, flags->common);
  verb->callback([flags] { run_monitor(*flags); });
}

}  // namespace fcp::cli
