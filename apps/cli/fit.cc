// fcp fit: one table becomes a calibrated predictor and a report.
#include "fcp/fit/fit.h"

#include <filesystem>
#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/base/output_file.h"
#include "fcp/data/csv_column.h"
#include "fcp/data/split.h"
#include "fcp/fit/table_split.h"
#include "fcp/methods/options.h"

#include "apps/cli/common.h"
#include "apps/cli/help.h"
#include "apps/cli/option_flags.h"
#include "apps/cli/print_report.h"
#include "apps/report/json.h"
#include "apps/report/page.h"
#include "apps/report/results.h"

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
  std::string group;  // the old name of keep_together
  std::string keep_together, time, cover_each, row_weights;
  std::string parts;
  std::string command;  // with all options but those that reports advise
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
  if (!flags.group.empty()) {
    say(flags.common, "note: --group is called --keep-together now");
  }
  options.keep_together = flags.keep_together.empty() ? flags.group : flags.keep_together;
  options.time = flags.time;
  options.cover_each = flags.cover_each;
  options.row_weights = flags.row_weights;
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
  options.training.target_scale = target_scale_named(flags.target_scale);
  return options;
}

// Training, calibration and test rows of each file as files of the folder.
void keep_parts(const FitOutcome& result, const DataOptions& data, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail(folder, ": cannot be made: ", error.message());
  const TableSplit& split = result.split;
  const std::vector<const std::vector<size_t>*> parts = {&split.training, &split.calibration,
                                                         &split.test};
  const std::vector<std::string> names = {"training", "calibration", "test"};
  CsvOptions csv = data.csv;
  csv.refused = result.refused_rows;
  size_t before = 0;  // rows of the files before
  for (const std::string& file : file_list(data.data)) {
    const size_t rows = read_csv_column(file, "0", csv).size();
    std::vector<std::vector<size_t>> own;
    std::vector<std::string> out;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (result.crossed && parts[i] == &split.calibration) continue;  // those that train
      own.emplace_back();
      for (const size_t row : *parts[i]) {
        if (row >= before && row < before + rows) own.back().push_back(row - before);
      }
      const std::string stem = std::filesystem::path(file).stem().string();
      out.push_back((std::filesystem::path(folder) / (stem + "." + names[i] + ".csv")).string());
    }
    write_parts(file, own, out, csv);
    before += rows;
  }
}

void run_fit(const FitFlags& flags) {
  const Context context = start(flags.common);
  FitRequest options = fit_options(flags);
  leave_out(options.keep_together, options.data.csv);
  leave_out(options.row_weights, options.data.csv);
  if (show_schema(flags.data, options.data, flags.common.json)) return;
  if (flags.out.empty()) fail_option("out", "is required");
  if (!flags.parts.empty() && holds_array(file_list(options.data.data)[0])) {
    fail_option("keep_parts", "takes CSV files; ", options.data.data, " is an array");
  }
  FitOutcome result = fit_table(options, context);
  result.report.model = file_name_of(flags.out);
  result.report.command = flags.command;
  if (!flags.parts.empty()) keep_parts(result, options.data, flags.parts);
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
      "  fcp fit visits.csv --target days --keep-together patient --out model.onnx\n"
      "  fcp fit birds.csv --target kind --cover-each label --out model.onnx\n"
      "  fcp fit sales.csv --target units --time date --out model.onnx\n"
      "Column types, categories, dates and classes are inferred. Rows are split at random 3:1:1 "
      "into\n"
      "training, calibration and test; where there are few rows, more of them calibrate, or the "
      "rows\n"
      "that train do (--calibration cross).");
  verb->add_option("data", flags->data.data, "Rows: CSV, .npy or .npz:entry")->required();
  verb->add_option("--out", flags->out, "Calibrated predictor to write");
  verb->add_option("--report", flags->report, "HTML report to write");
  add_levels(*verb, flags->levels);
  verb->add_option("--task", flags->task,
                   "What to learn; auto takes text, and up to ten different whole numbers, for "
                   "classification. numbers and classes are old names")
      ->check(CLI::IsMember({"auto", "regression", "classification", "numbers", "classes"}))
      ->capture_default_str();
  verb->add_option("--shares", flags->shares,
                   "Shares of training, calibration and test rows, such as 3:1:1");
  verb->add_option("--keep-together", flags->keep_together,
                   "CSV column, such as a patient or a shop: rows of one value stay together "
                   "in the split and in training; it is no feature unless --schema names it");
  verb->add_option("--group", flags->group, "The old name of --keep-together")
      ->excludes("--keep-together");
  verb->add_option("--cover-each", flags->cover_each,
                   "A radius and a guarantee for each value of this CSV column, or for each "
                   "class: label");
  verb->add_option("--time", flags->time,
                   "CSV column of dates or numbers: test on the newest rows; then train again on "
                   "all rows but the newest, which calibrate. With --keep-together a value is as "
                   "new as its newest row");
  verb->add_option("--row-weights", flags->row_weights,
                   "CSV column or .npy file of numbers above 0: how much each row counts in "
                   "training; it is no feature. Rows calibrate and test unweighted, so the "
                   "guarantee is for a row like those of the table");
  verb->add_option("--keep-parts", flags->parts,
                   "Folder for the training, calibration and test rows as CSV files");
  verb->add_option("--score", flags->score, "Score to calibrate; auto compares all that apply")
      ->capture_default_str();
  verb->add_option("--objective", flags->objective, find_option("objective").help)
      ->check(CLI::IsMember({kByIntervalScore, kByLength}))
      ->capture_default_str();
  verb->add_option("--calibration", flags->calibration,
                   "split: separate rows calibrate; cross: all rows but the test rows train "
                   "and calibrate, in ten folds (CV+), which guarantees about 1 - 2 alpha and "
                   "usually covers 1 - alpha; rectified: split, with coverage evened out by a "
                   "learned quantile of the score; auto is cross for one target below 1,000 "
                   "such rows, else split")
      ->check(CLI::IsMember({"auto", "split", "cross", "rectified"}))
      ->capture_default_str();
  for (const char* option :
       {"allow_empty", "probabilities", "side", "support", "integer", "joint"}) {
    add_option_flag(*verb, flags->method, find_option(option));
  }
  verb->add_option("--members", flags->members, "Networks of the ensemble [5]");
  verb->add_option("--epochs", flags->epochs,
                   "Maximum number of epochs [80 to 400, by the number of rows]");
  verb->add_option("--target-scale", flags->target_scale,
                   "Learn the target as it is or by its logarithm; auto compares the interval "
                   "scores of short boosted runs out of fold")
      ->check(CLI::IsMember({"auto", "identity", "log"}))
      ->capture_default_str();
  verb->add_flag("--no-trees", flags->no_trees, "Networks only, no boosted trees");
  flags->data.may_show = true;
  add_data(*verb, flags->data, /*needs_target=*/true, TakesImages::kNo);
  add_common(*verb, flags->common);
  verb->callback([flags, verb] {
    flags->command = command_without(*verb, {"--calibration", "--cover-each", "--json", "--quiet"});
    run_fit(*flags);
  });
}

}  // namespace fcp::cli
