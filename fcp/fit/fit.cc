#include "fcp/fit/fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/calibrate/unfinished.h"
#include "fcp/conformal/rank.h"
#include "fcp/data/table_rows.h"
#include "fcp/evaluate/evaluate.h"
#include "fcp/fit/column_warnings.h"
#include "fcp/fit/train.h"
#include "fcp/methods/calibrations/grouped.h"
#include "fcp/methods/options.h"
#include "fcp/methods/scores/cross.h"
#include "fcp/predictor/levels.h"
#include "fcp/predictor/row_facts.h"

namespace fcp {
namespace {

constexpr size_t kLeastRows = 20;

// How the files are read: types inferred, rows without a target passed over.
DataOptions fit_data(const FitRequest& options) {
  DataOptions data = options.data;
  data.needs_target = true;
  data.csv.find_types = true;
  data.csv.keep_missing = !data.csv.impute;
  data.csv.labels = target_labels(options.task);
  data.refuse.without_target = true;
  const std::string& together = options.keep_together;
  const std::vector<std::string>& asked = data.csv.categorical;
  const bool feature = data.csv.types.contains(together) ||
                       std::find(asked.begin(), asked.end(), together) != asked.end();
  if (!together.empty() && !feature) data.csv.drop.push_back(together);
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

// Whether one side, a support or several targets are asked for, to which the score of crossed rows
// does not keep.
bool asks_for_ends(const MethodRequest& method) {
  const ScoreOptions score = resolve(method).score;
  return score.side != BoundSide::kBoth || score.integer || !score.support.empty() ||
         method.text("joint") != kJointAll;
}

// Whether the rows that train calibrate as well; classes: 0 of numbers.
bool crosses(const FitRequest& options, size_t targets, size_t classes, size_t rows) {
  constexpr size_t kFewRows = 1000;
  const bool apart =
      !options.keep_together.empty() || !options.time.empty() || !options.cover_each.empty();
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
    if (!options.cover_each.empty()) {
      fail_option("calibration", "cross has one guarantee for all rows, not one for each ",
                  options.cover_each == kByLabel ? "class" : "group", "; take split");
    }
    if (apart) {
      fail_option("calibration", "cross deals rows into folds at random, not by ",
                  !options.keep_together.empty() ? "group" : "time", "; take split");
    }
    if (options.method.score != kAutoScore) {
      fail_option("calibration", "cross has a score of its own, which the score ",
                  options.method.score, " contradicts");
    }
    if (asks_for_ends(options.method)) {
      fail_option("calibration", "cross gives both ends of one interval, anywhere; side, support, ",
                  "integer and joint take split");
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

// The column that tells for which groups coverage is to hold; empty where none does.
std::string group_column(const FitRequest& options) {
  const bool by_column = GroupedOptions{options.cover_each}.by_column();
  return by_column ? options.cover_each : "";
}

std::string periods_text(const TableSplit& split) {
  return concat("trained on ", period_text(split, split.training), ", calibrated on ",
                period_text(split, split.calibration), ", tested on ",
                period_text(split, split.test));
}

// What a predictor is made of.
struct MadeFrom {
  const RowSource& source;
  const Rows& all;
  const RowFacts& facts;  // of all rows
  const TableSplit& split;
};

// The score, and what coverage is to hold for.
MethodRequest method_of(const FitRequest& options) {
  MethodRequest method = options.method;
  const bool rectified = options.calibration == FitCalibration::kEvened;
  if (rectified && !options.cover_each.empty()) {
    fail_option("calibration",
                "rectified has one radius for all rows, and cover_each one for each "
                "group; take one of the two");
  }
  if (rectified) method.calibration = kRectified;
  if (!options.cover_each.empty()) {
    method.calibration = GroupedOptions::kName;
    method.set("group", options.cover_each);
  }
  return method;
}

MadeRows train_and_calibrate(const MadeFrom& from, TabularOptions train, const DataOptions& data,
                             const FitRequest& options, const Context& context,
                             FitOutcome& result) {
  const TableSplit& split = from.split;
  TableRows training(from.source, from.all, split.training),
      calibration(from.source, from.all, split.calibration);
  train.groups = take_groups(split.groups, split.training);
  const TabularResult trained = train_table(training, train, /*heads=*/true, context);
  result.holdout = trained.error;
  CalibrateSettings settings;
  settings.method = method_of(options);
  settings.level = options.level;
  settings.facts = take_facts(from.facts, split.calibration);
  settings.keep_together = take_groups(split.groups, split.calibration);
  settings.data_name = data.data;
  settings.provenance = {
      {"network", "trained by fcp fit"},
      {"ensemble", ensemble_text(train.members, trained.tree_share, trained.log_target)},
      {"calibration data", data_file_names(data)},
      {"rows split", split.text},
      {kUsualLevel, options.level.text()},
      {"training rows", std::to_string(split.training.size())}};
  result.calibrated =
      begin_calibration(trained.graph, calibration, settings, context, {.known_apart = true})
          .result;
  const size_t kept = result.calibrated.artifact.rows.count();
  return {split.training.size(), kept, split.calibration.size() - kept};
}

void calibrate_crossed(const MadeFrom& from, const TabularOptions& train, const DataOptions& data,
                       const FitRequest& options, const Context& context, FitOutcome& result) {
  TableRows training(from.source, from.all, from.split.training);
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
  result.rows = {result.split.training.size(), trained.calibrating.size()};
  for (size_t rank = 1; rank <= result.rows.calibration; ++rank) {
    artifact.rows.scores.push_back(static_cast<double>(rank));
  }
  artifact.provenance = {{"fcp", FCP_VERSION},
                         {kUsualLevel, options.level.text()},
                         {"score", artifact.method.score.name()},
                         {"calibration", artifact.method.calibration.name()},
                         {"network", "trained by fcp fit"},
                         {"ensemble", ensemble_text(train.members * static_cast<int64_t>(kFolds),
                                                    trained.tree_share, trained.log_target)},
                         {"calibration data", data_file_names(data)},
                         {"rows split", result.split.text},
                         {"training rows", std::to_string(result.split.training.size())},
                         {"calibration rows", std::to_string(result.rows.calibration)},
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
  if (name == kRectified) return FitCalibration::kEvened;
  fail_option("calibration", "found '", name, "', expected split, cross, rectified or auto");
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

namespace {

std::vector<ColumnUse> column_uses(const TableSchema& schema) {
  std::vector<ColumnUse> uses;
  for (const TableColumn& column : schema.columns) {
    const bool read = is_read(column.format.kind);
    uses.push_back({column.name, format_text(column.format),
                    column.target    ? "target"
                    : column.dropped ? "left out: dropped"
                    : read           ? "feature"
                                     : concat("left out: ", column.why),
                    column.missing});
  }
  return uses;
}

ColumnCheck column_check(const FitRequest& options, Task task) {
  const bool random = options.keep_together.empty() && options.time.empty();
  return {.groups = random, .time = random, .classes = task == Task::kClasses};
}

// Which rows are looked at, and by which parts coverage is shown besides.
EvaluateOptions evaluation_of(const FitRequest& options, const MadeFrom& from) {
  EvaluateOptions evaluation{.level = options.level, .all_levels = options.all_levels};
  evaluation.facts = take_facts(from.facts, from.split.test);
  evaluation.periods = test_periods(from.split);
  evaluation.together = take_groups(from.split.groups, from.split.test);
  evaluation.origin = !from.split.times.empty()    ? RowsOrigin::kLater
                      : !from.split.groups.empty() ? RowsOrigin::kNewGroups
                                                   : RowsOrigin::kRandomSplit;
  return evaluation;
}

// After the newest rows have told how a predictor does that is made on earlier ones: the predictor
// made again, so that the recent past counts.
void refit_by_time(const DataOptions& data, const FitRequest& options, const TabularOptions& train,
                   const Context& context, FitOutcome& result) {
  TableSplit split = refit_split(result.split);
  const auto source = open_learned(data, split.training, split.times.size(), *silent_observer());
  const Rows all = read_all(*source);
  const RowFacts facts = read_facts(data, {.group = group_column(options), .weights = {}});
  split.text = concat("by '", options.time, "': trained on ", period_text(split, split.training),
                      ", calibrated on ", period_text(split, split.calibration),
                      "; evaluated before by another predictor, ", periods_text(result.split));
  context.observer->note("training again on all rows but the newest, which calibrate");
  const HoldoutError holdout = result.holdout;
  std::vector<std::string> warnings = std::move(result.calibrated.warnings);
  TabularOptions again = train;
  if (again.loss == Loss::kCrossEntropy && !source->class_names().empty()) {
    again.classes = static_cast<int64_t>(source->class_names().size());
  }
  result.refit =
      train_and_calibrate({*source, all, facts, split}, again, data, options, context, result);
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
  if (!options.keep_together.empty() && !options.time.empty()) {
    fail_option("time", "and keep_together cannot both split the rows");
  }
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
  Rows all = read_all(*source);
  const bool numbered = options.task == Task::kClasses && !classes;
  const int64_t labels = numbered ? mark_unknown_labels(all.y, split.training) : 0;
  TabularOptions train = training_options(options, *source, context);
  if (numbered) train.classes = labels;
  train.may_be_constant = varies(all.y);
  result.task = train.loss == Loss::kCrossEntropy ? Task::kClasses : Task::kNumbers;
  result.test_rows = split.test.size();
  const RowFacts facts = read_facts(data, {.group = group_column(options), .weights = {}});
  const MadeFrom from{*source, all, facts, split};
  if (!split.times.empty()) split.text += concat(": ", periods_text(split));
  if (result.task == Task::kNumbers && source->target_count() == 1) {
    suggest_support(TableRows(*source, all, split.training), options, context);
  }
  if (result.crossed) {
    calibrate_crossed(from, train, data, options, context, result);
  } else {
    result.rows = train_and_calibrate(from, train, data, options, context, result);
  }
  TableRows test(*source, all, split.test);
  result.report = evaluate(result.calibrated.artifact, test, evaluation_of(options, from), context);
  result.report.provenance.emplace_back("test data", data_file_names(data));
  if (result.task == Task::kClasses) {
    warn_of_unknown(TableRows(*source, all, split.calibration), test, result);
  }
  result.report.title = concat(data_file_names(data), ": ", data.target);
  for (std::string& warning :
       column_warnings(data, source->schema(), all.y, column_check(options, result.task))) {
    result.report.notes.push_back(std::move(warning));
  }
  result.report.split = split.text;
  if (source->schema() != nullptr) result.report.columns = column_uses(*source->schema());
  if (!split.times.empty()) refit_by_time(data, options, train, context, result);
  return result;
}

}  // namespace fcp
