#include "fcp/fit/fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/conformal/quantile.h"
#include "fcp/data/row_sources.h"
#include "fcp/fit/table_split.h"
#include "fcp/fit/test_report.h"
#include "fcp/fit/train.h"
#include "fcp/methods/calibrations/grouped.h"
#include "fcp/methods/options.h"
#include "fcp/methods/scores/cross.h"
#include "fcp/predictor/open_data.h"
#include "fcp/training/training_data.h"

namespace fcp {
namespace {

constexpr size_t kLeastRows = 20;

// How the files are read: types inferred, rows without a target passed over.
DataOptions fit_data(const FitRequest& options) {
  DataOptions data = options.data;
  data.needs_target = true;
  data.csv.find_types = true;
  data.csv.keep_missing = !data.csv.impute;
  data.csv.exact = true;  // of targets; see read_rows
  data.csv.labels = target_labels(options.task);
  data.refuse.without_target = true;
  leave_out(options.keep_together, data.csv);
  leave_out(options.row_weights, data.csv);
  if (!data.refused) data.refused = std::make_shared<RefusedRows>();
  data.csv.refused = data.refused;
  return data;
}

// Finds the rows that are passed over and returns how many are left.
size_t settle_rows(const DataOptions& data, const Context& context, FitOutcome& result) {
  const std::vector<std::string> files = file_list(data.data);
  if (holds_array(files[0])) return open_rows(data.data, data.target, data.csv)->size().value();
  const Refusals found = refuse_rows(data, data.csv, *context.observer);
  result.without_target = found.without_target;
  result.refused = found.problems;
  return found.kept;
}

void check_parts(const TableSplit& split, const DataOptions& data, size_t rows) {
  if (rows < kLeastRows) {
    fail(data.data, ": ", rows, " rows with a target, expected at least ", kLeastRows);
  }
  if (std::min({split.training.size(), split.calibration.size(), split.test.size()}) < 2) {
    fail(data.data, ": ", split.training.size(), " rows to train, ", split.calibration.size(),
         " to calibrate and ", split.test.size(), " to test, expected at least 2 of each");
  }
}

// The source whose categories and means are those of the training rows.
std::unique_ptr<RowSource> open_learned(const DataOptions& data,
                                        const std::vector<size_t>& training, size_t rows,
                                        Observer& observer) {
  auto mask = std::make_shared<std::vector<bool>>(rows, false);
  for (const size_t row : training) (*mask)[row] = true;
  CsvOptions csv = data.csv;
  csv.learn_rows = std::move(mask);
  auto source = open_rows(data.data, data.target, csv);
  for (const std::string& note : source->notes()) observer.note(note);
  return source;
}

// All rows. Targets are unrounded where float32 numbers are too coarse for those that train
// (fcp/training/training_data.h).
Rows read_rows(RowSource& source, const std::vector<size_t>& training) {
  Rows all = read_exact_targets(source);
  if (target_offsets(take_rows(all.y, training)).empty()) all.y.exact.clear();
  return all;
}

std::vector<double> target_numbers(const Array& y) {
  return y.exact.empty() ? std::vector<double>(y.values.begin(), y.values.end()) : y.exact;
}

bool varies(const Array& y) {
  const std::vector<double> numbers = target_numbers(y);
  return std::any_of(numbers.begin(), numbers.end(),
                     [&](double value) { return value != numbers[0]; });
}

// Labels of an array beyond those of the training rows become those of no class (scores/labels.h).
// Returns how many classes there are, two at least.
int64_t mark_unknown_labels(Array& y, const std::vector<size_t>& training) {
  float largest = 1;
  for (const size_t row : training) largest = std::max(largest, y.values[row]);
  for (float& label : y.values) {
    if (label > largest) label = std::numeric_limits<float>::infinity();
  }
  return static_cast<int64_t>(std::min(largest, 1e9f)) + 1;
}

size_t count_unknown(const TableRows& rows) {
  return static_cast<size_t>(std::count_if(rows.y().values.begin(), rows.y().values.end(),
                                           [](float label) { return std::isinf(label); }));
}

// Rows whose class no training row has.
void warn_of_unknown(const TableRows& calibration, const TableRows& test, FitOutcome& result) {
  const size_t among_tests = count_unknown(test);
  const size_t calibrating = result.crossed ? 0 : count_unknown(calibration);
  if (among_tests + calibrating == 0) return;
  result.calibrated.warnings.push_back(
      concat(calibrating, " calibration rows and ", among_tests,
             " test rows have a class that no training row has: no set can hold it, they count as ",
             "misses"));
}

std::string reason_of(const RowSource& whole, const DataOptions& data) {
  const size_t classes = whole.class_names().size();
  if (classes == 0) return concat("'", data.target, "' holds numbers");
  const TableSchema* schema = whole.schema();
  if (schema == nullptr || !schema->few_whole_numbers) return concat("'", data.target, "' is text");
  return concat("'", data.target, "' has ", classes, " different whole numbers");
}

TabularOptions training_options(const FitRequest& options, const RowSource& source,
                                const Context& context) {
  TabularOptions training = options.training;
  training.seed = context.seed;
  training.device = context.device;
  const bool classes = !source.class_names().empty() || options.task == Task::kClasses;
  training.loss = classes ? Loss::kCrossEntropy : Loss::kMse;
  if (classes) training.classes = static_cast<int64_t>(source.class_names().size());
  return training;
}

// What the target seems to be limited to, as flags; empty where nothing is seen. The training rows
// tell, which calibration does not use.
std::string support_hint(const std::vector<double>& y) {
  const auto [least, most] = std::minmax_element(y.begin(), y.end());
  const bool integer =
      std::all_of(y.begin(), y.end(), [](double value) { return value == std::floor(value); });
  std::string hint;
  if (y.empty() || !(*least >= 0)) return integer && !y.empty() ? "--integer" : hint;
  hint = *most <= 1 && !integer ? "--support 0:1"
         : *most == 100         ? "--support 0:100"
                                : "--support 0:";
  return integer ? hint + " --integer" : hint;
}

void suggest_support(const TableRows& training, const FitRequest& options, const Context& context) {
  const bool given = options.method.flag("integer") || !options.method.text("support").empty();
  if (given) return;
  const std::string hint = support_hint(target_numbers(training.y()));
  if (hint.empty()) return;
  context.observer->note(concat("every training target fits '", hint,
                                "'; if new ones must as well, add it for tighter intervals"));
}

void join_parts(std::vector<size_t>& all, const std::vector<size_t>& more) {
  all.insert(all.end(), more.begin(), more.end());
  std::sort(all.begin(), all.end());
}

// The column that tells for which groups coverage is to hold; empty where none does.
std::string group_column(const FitRequest& options) {
  const bool by_column = GroupedOptions{options.cover_each}.by_column();
  return by_column ? options.cover_each : "";
}

}  // namespace

FitCalibration fit_calibration_named(const std::string& name) {
  if (name == "auto") return FitCalibration::kAuto;
  if (name == SplitOptions::kName) return FitCalibration::kSplit;
  if (name == CrossFoldOptions::kName) return FitCalibration::kCross;
  if (name == kRectified) return FitCalibration::kEvened;
  fail_option("calibration", "found '", name, "', expected split, cross, rectified or auto");
}

Task task_named(const std::string& name) {
  if (name == "auto") return Task::kAuto;
  if (name == "regression" || name == "numbers") return Task::kNumbers;
  if (name == "classification" || name == "classes") return Task::kClasses;
  fail_option("task", "found '", name, "', expected regression, classification or auto");
}

TargetScale target_scale_named(const std::string& name) {
  if (name == "auto") return TargetScale::kAuto;
  if (name == "identity") return TargetScale::kIdentity;
  if (name == "log") return TargetScale::kLog;
  fail_option("target_scale", "found '", name, "', expected identity, log or auto");
}

std::vector<std::string> fit_warnings(const FitOutcome& outcome) {
  std::vector<std::string> warnings = outcome.calibrated.warnings;
  for (const std::string& note : outcome.report.notes) {
    if (std::find(warnings.begin(), warnings.end(), note) == warnings.end()) {
      warnings.push_back(note);
    }
  }
  return warnings;
}

void check_types(const std::map<std::string, std::string>& types) {
  for (const auto& [column, type] : types) parse_types("column=" + type);
}

CsvLabels target_labels(Task task) {
  if (task == Task::kNumbers) return CsvLabels::kNumbers;
  return task == Task::kClasses ? CsvLabels::kAlways : CsvLabels::kFewValues;
}

std::vector<double> usual_shares(size_t rows, const Level& level) {
  const double all = static_cast<double>(std::max<size_t>(rows, 1));
  const double wanted = 3 * static_cast<double>(least_calibration_rows(level)) / all;
  const double calibration = std::clamp(wanted, 0.2, 0.4);
  return {0.8 - calibration, calibration, 0.2};
}

namespace {

// After the newest rows have told how a predictor does that is made on earlier ones: the predictor
// made again, so that the recent past counts.
void refit_by_time(const DataOptions& data, const FitRequest& options, const TabularOptions& train,
                   const std::vector<double>& weights, const Context& context, FitOutcome& result) {
  TableSplit split = refit_split(result.split);
  const auto source = open_learned(data, split.training, split.times.size(), *silent_observer());
  const Rows all = read_rows(*source, split.training);
  const RowFacts facts = read_facts(data, {.group = group_column(options), .weights = {}});
  split.text = concat(split.way, ": trained on ", period_text(split, split.training),
                      ", calibrated on ", period_text(split, split.calibration),
                      "; evaluated before by another predictor, ", periods_text(result.split));
  context.observer->note("training again on all rows but the newest, which calibrate");
  const HoldoutError holdout = result.holdout;
  std::vector<std::string> warnings = std::move(result.calibrated.warnings);
  TabularOptions again = train;
  if (again.loss == Loss::kCrossEntropy && !source->class_names().empty()) {
    again.classes = static_cast<int64_t>(source->class_names().size());
  }
  result.refit = train_and_calibrate({*source, all, facts, split, weights}, again, data, options,
                                     context, result);
  result.holdout = holdout;
  for (std::string& warning : result.calibrated.warnings) {
    if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end()) {
      warnings.push_back(std::move(warning));
    }
  }
  result.calibrated.warnings = std::move(warnings);
}

}  // namespace

FitOutcome fit_table(const FitRequest& options, const Context& context) {
  FitOutcome result;
  const DataOptions data = fit_data(options);
  if (data.target.empty()) fail_option("target", "is required");
  const size_t rows = settle_rows(data, context, result);
  result.refused_rows = data.refused;
  // Which task it is decides how rows are split, and the split decides what is learned.
  const auto whole = open_rows(data.data, data.target, data.csv);
  const bool classes = !whole->class_names().empty();
  const std::vector<double> shares =
      options.shares.empty() ? usual_shares(rows, options.level) : options.shares;
  if (shares.size() != 3) fail_option("shares", "found ", shares.size(), ", expected 3");
  TableSplit& split = result.split;
  split = split_table(data, {options.keep_together, options.time}, rows, shares, context.seed);
  check_parts(split, data, rows);
  const size_t known =
      options.task == Task::kClasses && !classes ? kUnknownClasses : whole->class_names().size();
  result.crossed = crosses(options, whole->target_count(), known,
                           split.training.size() + split.calibration.size());
  if (result.crossed) join_parts(split.training, split.calibration);
  const auto source = open_learned(data, split.training, rows, *context.observer);
  if (options.task == Task::kAuto) result.reason = reason_of(*whole, data);
  Rows all = read_rows(*source, split.training);
  const bool numbered = options.task == Task::kClasses && !classes;
  const int64_t labels = numbered ? mark_unknown_labels(all.y, split.training) : 0;
  TabularOptions train = training_options(options, *source, context);
  if (numbered) train.classes = labels;
  train.may_be_constant = varies(all.y);
  result.task = train.loss == Loss::kCrossEntropy ? Task::kClasses : Task::kNumbers;
  result.test_rows = split.test.size();
  const RowFacts facts = read_facts(data, {.group = group_column(options), .weights = {}});
  const std::vector<double> weights = read_row_weights(data, options.row_weights);
  if (!weights.empty() && weights.size() != rows) {
    fail(options.row_weights, ": ", weights.size(), " weights of ", rows, " rows");
  }
  const MadeFrom from{*source, all, facts, split, weights};
  if (result.task == Task::kNumbers && source->target_count() == 1) {
    suggest_support(TableRows(*source, all, split.training), options, context);
  }
  if (result.crossed) {
    calibrate_crossed(from, train, data, options, context, result);
  } else {
    result.rows = train_and_calibrate(from, train, data, options, context, result);
  }
  result.report = test_report(from, result.calibrated.artifact, options, data, context);
  if (result.task == Task::kClasses) {
    warn_of_unknown(TableRows(*source, all, split.calibration), TableRows(*source, all, split.test),
                    result);
  }
  if (!split.times.empty()) refit_by_time(data, options, train, weights, context, result);
  return result;
}

}  // namespace fcp
