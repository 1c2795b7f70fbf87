// fcp fit: one table becomes a calibrated predictor and a report.
#include "fcp/fit/fit.h"

#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/base/output_file.h"
#include "fcp/data/split.h"
#include "fcp/methods/options.h"

#include "apps/cli/common.h"
#include "apps/cli/data_flags.h"
#include "apps/cli/fit_outcome.h"
#include "apps/cli/level_flags.h"
#include "apps/cli/option_flags.h"
#include "apps/cli/verbs.h"
#include "apps/report/format.h"
#include "apps/report/html.h"
#include "apps/report/json.h"

namespace fcp::cli {
namespace {

struct FitFlags {
  CommonOptions common;
  DataFlags data;
  std::string out;
  std::string report;
  LevelFlags levels;
  std::string task = "auto";
  std::string shares;
  std::string group;
  std::string time;
  std::string score = kAutoScore;
  std::string objective = kByIntervalScore;
  std::string calibration = "auto";
  MethodRequest method;
  std::optional<int64_t> epochs, members;
  bool no_trees = false;
  std::string target_scale = "auto";
};

FitRequest fit_options(const FitFlags& flags) {
  FitRequest options;
  options.data = data_options(flags.data);
  options.task = task_named(flags.task);
  options.data.csv.labels = target_labels(options.task);
  if (!flags.shares.empty()) options.shares = parse_shares(flags.shares);
  options.group = flags.group;
  options.time = flags.time;
  options.level = levels_of(flags.levels)[0];
  options.all_levels = !flags.report.empty();
  options.method = flags.method;
  options.method.score = flags.score;
  options.method.set("objective", flags.objective);
  options.calibration = fit_calibration_named(flags.calibration);
  options.method.set("seed", flags.common.seed);
  if (flags.epochs) options.training.epochs = *flags.epochs;
  if (flags.members) options.training.members = *flags.members;
  options.training.trees = !flags.no_trees;
  options.training.target_scale = flags.target_scale == "log"    ? TargetScale::kLog
                                  : flags.target_scale == "auto" ? TargetScale::kAuto
                                                                 : TargetScale::kIdentity;
  return options;
}

void run_fit(const FitFlags& flags) {
  const Context context = start(flags.common);
  const FitRequest options = fit_options(flags);
  if (show_schema(flags.data, options.data, flags.common.json)) return;
  if (flags.out.empty()) fail_option("out", "is required");
  FitOutcome result = fit_table(options, context);
  result.report.model = file_name_of(flags.out);
  write_artifact(result.calibrated.artifact, flags.out);
  if (!flags.report.empty()) write_file(flags.report, report_html(result.report));
  for (const std::string& warning : fit_warnings(result)) {
    say(flags.common, "warning: " + warning);
  }
  if (flags.common.json) {
    std::cout << json_text(fit_json(result, flags.out, flags.report)) << '\n';
  } else {
    std::cout << fit_text(result, flags.out, flags.report);
  }
}

}  // namespace

void add_fit(CLI::App& app) {
  auto flags = std::make_shared<FitFlags>();
  CLI::App* verb = app.add_subcommand(
      "fit", "From one table to a calibrated predictor: split, train, calibrate, evaluate");
  verb->footer(
      "Examples:\n"
      "  fcp fit data.csv --target price --out model.onnx --report report.html\n"
      "  fcp fit data.csv --target price --schema show\n"
      "  fcp fit visits.csv --target days --group patient --out model.onnx\n"
      "  fcp fit sales.csv --target units --time date --out model.onnx\n"
      "Column types, categories, dates and classes are found out. Rows are split at random 3:1:1 "
      "into\n"
      "training, calibration and test, classes in equal shares; where there are few rows, more of "
      "them\n"
      "calibrate, or the rows that train do (--calibration cross).");
  verb->add_option("data", flags->data.data, "Rows: CSV, .npy or .npz:entry")->required();
  verb->add_option("--out", flags->out, "Calibrated predictor to write");
  verb->add_option("--report", flags->report, "HTML report to write");
  add_levels(*verb, flags->levels);
  verb->add_option("--task", flags->task,
                   "What the target is: regression or classification, also called numbers or "
                   "classes; auto takes text, and up to ten different whole numbers, as classes")
      ->check(CLI::IsMember({"auto", "regression", "classification", "numbers", "classes"}))
      ->capture_default_str();
  verb->add_option("--shares", flags->shares, "Training, calibration and test rows, as 3:1:1");
  verb->add_option("--group", flags->group, "CSV column whose groups are not parted by the split");
  verb->add_option("--time", flags->time,
                   "CSV column of dates or numbers: train on the oldest rows, test on the newest");
  verb->add_option("--score", flags->score, "Score to calibrate; auto tries all that suit")
      ->capture_default_str();
  verb->add_option("--objective", flags->objective, find_option("objective").help)
      ->check(CLI::IsMember({kByIntervalScore, kByLength}))
      ->capture_default_str();
  verb->add_option(
          "--calibration", flags->calibration,
          "split: rows of their own calibrate; cross: all rows but those of the test train "
          "and calibrate, in ten folds (CV+), which guarantees about 1 - 2 alpha and "
          "usually covers 1 - alpha; auto is cross for one target below 1,000 such rows")
      ->check(CLI::IsMember({"auto", "split", "cross"}))
      ->capture_default_str();
  for (const char* option : {"allow_empty", "side", "support", "integer"}) {
    add_option_flag(*verb, flags->method, find_option(option));
  }
  verb->add_option("--members", flags->members, "Networks of the ensemble [5]");
  verb->add_option("--epochs", flags->epochs, "Epochs at most [80 to 400, by the number of rows]");
  verb->add_option("--target-scale", flags->target_scale,
                   "Learn the target as it is or by its logarithm; auto compares the interval "
                   "scores of short boosted runs out of fold")
      ->check(CLI::IsMember({"auto", "identity", "log"}))
      ->capture_default_str();
  verb->add_flag("--no-trees", flags->no_trees,
                 "Networks alone, without boosted trees beside them");
  flags->data.may_show = true;
  add_data(*verb, flags->data, /*needs_target=*/true, TakesImages::kNo);
  add_common(*verb, flags->common);
  verb->callback([flags] { run_fit(*flags); });
}

}  // namespace fcp::cli
