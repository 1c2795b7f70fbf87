#include "fcp/fit/fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/calibrate/unfinished.h"
#include "fcp/conformal/rank.h"
#include "fcp/data/csv_column.h"
#include "fcp/data/split.h"
#include "fcp/data/table_rows.h"
#include "fcp/evaluate/evaluate.h"
#include "fcp/fit/train.h"
#include "fcp/methods/scores/cross.h"
#include "fcp/predictor/levels.h"
#include "fcp/predictor/row_facts.h"

namespace fcp {
namespace {

constexpr size_t kLeastRows = 20;

// How the files are read: types found out, rows without a target passed over.
DataOptions fit_data(const FitRequest& options) {
  DataOptions data = options.data;
  data.needs_target = true;
  data.csv.find_types = true;
  data.csv.keep_missing = !data.csv.impute;
  data.csv.labels = target_labels(options.task);
  data.refuse.without_target = true;
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

template <typename Cell, typename Read>
std::vector<Cell> column_of_files(const DataOptions& data, const Read& read) {
  std::vector<Cell> cells;
  for (const std::string& file : file_list(data.data)) {
    for (Cell& cell : read(file)) cells.push_back(std::move(cell));
  }
  return cells;
}

// Classes are no strata: where a row goes must not depend on how many others have its class, or the
// calibration rows would not be like new ones.
SplitColumns split_columns(const FitRequest& options, const DataOptions& data) {
  SplitColumns columns;
  const auto text = [&](const std::string& name) {
    return column_of_files<std::string>(
        data, [&](const std::string& file) { return read_csv_column(file, name, data.csv); });
  };
  if (!options.group.empty()) {
    columns.groups = text(options.group);
  } else if (!options.time.empty()) {
    columns.times = column_of_files<double>(data, [&](const std::string& file) {
      return read_time_column(file, options.time, data.csv);
    });
  }
  return columns;
}

void check_parts(const std::vector<std::vector<size_t>>& parts, const DataOptions& data,
                 size_t rows) {
  if (rows < kLeastRows) {
    fail(data.data, ": ", rows, " rows with a target, expected at least ", kLeastRows);
  }
  for (const std::vector<size_t>& part : parts) {
    if (part.size() < 2) {
      fail(data.data, ": ", parts[0].size(), " rows to train, ", parts[1].size(),
           " to calibrate and ", parts[2].size(), " to test, expected at least 2 of each");
    }
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

bool varies(const Array& y) {
  const auto other = [&](float value) { return value != y.values[0]; };
  return std::any_of(y.values.begin(), y.values.end(), other);
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

constexpr size_t kFolds = 10;  // of cross-fitting

// Comparisons that each row of a crossed classifier costs: its calibration rows times its classes.
constexpr size_t kMostComparisons = 20'000;

constexpr size_t kUnknownClasses = 1;  // labels without names, of which an array has any number

// Whether one side or a support is asked for, to which the score of crossed rows does not keep.
bool asks_for_ends(const MethodRequest& method) {
  const ScoreOptions score = resolve(method).score;
  return score.side != BoundSide::kBoth || score.integer || !score.support.empty();
}

// Whether the rows that train calibrate as well; classes: 0 of numbers.
bool crosses(const FitRequest& options, size_t targets, size_t classes, size_t rows) {
  constexpr size_t kFewRows = 1000;
  const bool apart = !options.group.empty() || !options.time.empty();
  if (options.calibration == FitCalibration::kCross) {
    if (targets != 1) {
      fail_option("calibration", "cross takes one target, found ", targets, "; take split");
    }
    if (classes == kUnknownClasses) {
      fail_option("calibration", "cross of classes takes a CSV file, which tells them; take split");
    }
    if (classes * rows > kMostComparisons) {
      fail_option("calibration", "cross of ", classes, " classes and ", rows,
                  " rows is too large, expected a product of at most ", kMostComparisons,
                  "; take split");
    }
    if (apart) {
      fail_option("calibration", "cross deals rows into folds at random, not by ",
                  options.group.empty() ? "time" : "group", "; take split");
    }
    if (options.method.score != kAutoScore) {
      fail_option("calibration", "cross has a score of its own, which the score ",
                  options.method.score, " contradicts");
    }
    if (asks_for_ends(options.method)) {
      fail_option("calibration", "cross gives both ends of intervals, anywhere; side, support and ",
                  "integer take split");
    }
    if (rows < kFolds) {
      fail_option("calibration", "cross takes at least ", kFolds,
                  " rows besides those of the test, found ", rows);
    }
    return true;
  }
  const bool open = options.calibration == FitCalibration::kAuto && options.shares.empty() &&
                    options.method.score == kAutoScore && !asks_for_ends(options.method);
  return open && targets == 1 && !apart && rows >= kFolds && rows < kFewRows &&
         classes != kUnknownClasses && classes * rows <= kMostComparisons;
}

// What the target seems to be limited to, as flags; empty where nothing is seen. The training rows
// tell, which calibration does not use.
std::string support_hint(const Array& y) {
  const auto [least, most] = std::minmax_element(y.values.begin(), y.values.end());
  const bool integer = std::all_of(y.values.begin(), y.values.end(),
                                   [](float value) { return value == std::floor(value); });
  std::string hint;
  if (y.values.empty() || !(*least >= 0)) return integer && !y.values.empty() ? "--integer" : hint;
  hint = *most <= 1 && !integer ? "--support 0:1"
         : *most == 100         ? "--support 0:100"
                                : "--support 0:";
  return integer ? hint + " --integer" : hint;
}

void suggest_support(const TableRows& training, const FitRequest& options, const Context& context) {
  const bool given = options.method.flag("integer") || !options.method.text("support").empty();
  if (given) return;
  const std::string hint = support_hint(training.y());
  if (hint.empty()) return;
  context.observer->note(concat("the target of all training rows fits ", hint,
                                ": where that holds for new rows too, it cuts intervals to it"));
}

void join_parts(std::vector<size_t>& all, const std::vector<size_t>& more) {
  all.insert(all.end(), more.begin(), more.end());
  std::sort(all.begin(), all.end());
}

void train_and_calibrate(RowSource& training, RowSource& calibration, const TabularOptions& train,
                         const DataOptions& data, const FitRequest& options, const Context& context,
                         FitOutcome& result) {
  const TabularResult trained = train_table(training, train, /*heads=*/true, context);
  result.holdout = trained.error;
  CalibrateSettings settings;
  settings.method = options.method;
  settings.level = options.level;
  settings.data_name = data.data;
  settings.provenance = {
      {"network", "trained by fcp fit"},
      {"ensemble", ensemble_text(train.members, trained.tree_share, trained.log_target)},
      {"calibration data", data_file_names(data)},
      {"training rows", std::to_string(result.training_rows)}};
  result.calibrated =
      begin_calibration(trained.graph, calibration, settings, context, {.known_apart = true})
          .result;
  const size_t part = result.calibration_rows;
  result.calibration_rows = result.calibrated.artifact.rows.count();
  result.selection_rows = part - result.calibration_rows;
}

void calibrate_crossed(RowSource& training, const TabularOptions& train, const DataOptions& data,
                       const FitRequest& options, const Context& context, FitOutcome& result) {
  const CrossFit trained = train_crossed_table(training, train, kFolds, context);
  result.holdout = trained.error;
  CalibrationArtifact& artifact = result.calibrated.artifact;
  artifact.network = trained.graph;
  sort_cross_rows(artifact.network);
  if (train.loss == Loss::kCrossEntropy) {
    artifact.method.score = CrossLabelsOptions{.allow_empty = options.method.flag("allow_empty")};
  } else {
    artifact.method.score = CrossOptions{};
  }
  artifact.method.calibration = CrossFoldOptions{.folds = kFolds};
  artifact.outputs = 1;
  result.calibration_rows = trained.calibrating.size();
  for (size_t rank = 1; rank <= result.calibration_rows; ++rank) {
    artifact.rows.scores.push_back(static_cast<double>(rank));
  }
  artifact.provenance = {{"fcp", FCP_VERSION},
                         {"score", artifact.method.score.name()},
                         {"calibration", artifact.method.calibration.name()},
                         {"network", "trained by fcp fit"},
                         {"ensemble", ensemble_text(train.members * static_cast<int64_t>(kFolds),
                                                    trained.tree_share, trained.log_target)},
                         {"calibration data", data_file_names(data)},
                         {"training rows", std::to_string(result.training_rows)},
                         {"calibration rows", std::to_string(result.calibration_rows)},
                         {"folds", std::to_string(kFolds)},
                         {"guarantee", "1 - 2 alpha, less a little for the folds (CV+)"},
                         {"seed", std::to_string(context.seed)},
                         {"target", data.target}};
  result.calibrated.warnings = level_warnings(artifact, options.level);
}

}  // namespace

FitCalibration fit_calibration_named(const std::string& name) {
  if (name == "auto") return FitCalibration::kAuto;
  if (name == SplitOptions::kName) return FitCalibration::kSplit;
  if (name == CrossFoldOptions::kName) return FitCalibration::kCross;
  fail_option("calibration", "found '", name, "', expected split, cross or auto");
}

Task task_named(const std::string& name) {
  if (name == "auto") return Task::kAuto;
  if (name == "regression" || name == "numbers") return Task::kNumbers;
  if (name == "classification" || name == "classes") return Task::kClasses;
  fail_option("task", "found '", name, "', expected regression, classification or auto");
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

FitOutcome fit_table(const FitRequest& options, const Context& context) {
  FitOutcome result;
  const DataOptions data = fit_data(options);
  if (data.target.empty()) fail_option("target", "is required");
  if (!options.group.empty() && !options.time.empty()) {
    fail_option("time", "and group cannot both split the rows");
  }
  const size_t rows = settle_rows(data, context, result);
  // Which task it is decides how rows are split, and the split decides what is learned.
  const auto whole = open_rows(data.data, data.target, data.csv);
  const bool classes = !whole->class_names().empty();
  const std::vector<double> shares =
      options.shares.empty() ? usual_shares(rows, options.level) : options.shares;
  if (shares.size() != 3) fail_option("shares", "found ", shares.size(), ", expected 3");
  auto parts = split_rows(rows, shares, context.seed, split_columns(options, data));
  check_parts(parts, data, rows);
  const size_t known =
      options.task == Task::kClasses && !classes ? kUnknownClasses : whole->class_names().size();
  result.crossed =
      crosses(options, whole->target_count(), known, parts[0].size() + parts[1].size());
  if (result.crossed) join_parts(parts[0], parts[1]);
  const auto source = open_learned(data, parts[0], rows, *context.observer);
  if (options.task == Task::kAuto) result.reason = reason_of(*whole, data);
  Rows all = read_all(*source);
  const bool numbered = options.task == Task::kClasses && !classes;
  const int64_t labels = numbered ? mark_unknown_labels(all.y, parts[0]) : 0;
  TableRows training(*source, all, parts[0]), calibration(*source, all, parts[1]),
      test(*source, all, parts[2]);
  TabularOptions train = training_options(options, *source, context);
  if (numbered) train.classes = labels;
  train.may_be_constant = varies(all.y);
  result.task = train.loss == Loss::kCrossEntropy ? Task::kClasses : Task::kNumbers;
  result.training_rows = parts[0].size();
  result.calibration_rows = parts[1].size();
  result.test_rows = parts[2].size();
  if (result.task == Task::kNumbers && source->target_count() == 1) {
    suggest_support(training, options, context);
  }
  if (result.crossed) {
    calibrate_crossed(training, train, data, options, context, result);
  } else {
    train_and_calibrate(training, calibration, train, data, options, context, result);
  }
  result.report = evaluate(result.calibrated.artifact, test,
                           {.level = options.level, .all_levels = options.all_levels}, context);
  result.report.provenance.emplace_back("test data", data_file_names(data));
  if (result.task == Task::kClasses) warn_of_unknown(calibration, test, result);
  result.report.title = concat(data_file_names(data), ": ", data.target);
  return result;
}

}  // namespace fcp
