// From one table to a calibrated predictor and an evaluation of it: the rows are split, a network
// is trained on one part, calibrated on another and evaluated on the rest.
//
//   const FitOutcome fitted = fit_table({.data = {.data = "data.csv", .target = "y"}}, context);
//   write_artifact(fitted.calibrated.artifact, "model.onnx");
//
// What decides is kept apart: column types are found on all rows, because they are about how cells
// are written; categories and means are learned on the training rows alone.
//
// Tested by tests/fit/fit_test.cc and tests/cli/test_fit.py.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fcp/calibrate/calibrate.h"
#include "fcp/evaluate/measures/evaluation_report.h"
#include "fcp/fit/table_split.h"
#include "fcp/predictor/open_data.h"
#include "fcp/training/holdout_error.h"
#include "fcp/training/tabular.h"

namespace fcp {

// In the provenance: the level that was asked for, which later commands take where none is said.
inline constexpr char kUsualLevel[] = "alpha";

// How rows calibrate: apart from those that train, or by cross-fitting, where all rows but those of
// the test do both (fcp/training/cross_fit.h). kAuto crosses one target below 1,000 such rows.
// kEvened: apart, by a score that a learned quantile of itself evens out (scores/rectified.h).
enum class FitCalibration { kAuto, kSplit, kCross, kEvened };

enum class Task { kAuto, kNumbers, kClasses };

// By the names that users write, in every interface: auto, split, cross; auto, regression or
// numbers, classification or classes. An OptionError where there is no such name.
FitCalibration fit_calibration_named(const std::string& name);
Task task_named(const std::string& name);
TargetScale target_scale_named(const std::string& name);  // auto, identity, log
// How the target of such a task is read.
CsvLabels target_labels(Task task);

struct FitRequest {
  DataOptions data;  // CSV files, or arrays; the types of columns are inferred
  Task task = Task::kAuto;
  std::vector<double> shares{};  // training, calibration, test; empty: by the number of rows
  // A column whose groups stay together: in the parts, in the folds of training, in the rows of
  // heads and of choices. It is no feature, unless the types of columns or `categorical` name it.
  std::string keep_together{};
  // A column by which training comes first and test last. Afterwards the predictor is made again:
  // on all rows but the newest, which calibrate it.
  std::string time{};
  // A column, or an .npy file: weights of rows in training alone (TabularOptions::row_weights). It
  // is no feature. Calibration and evaluation stay unweighted: the guarantee is for a row like
  // those of the table.
  std::string row_weights{};
  // Coverage holds for each group of this column, or for each class: `label` (grouped
  // calibration).
  std::string cover_each{};
  TabularOptions training{.target_scale = TargetScale::kAuto,
                          .trees = true};  // its loss, classes and seed are settled here
  MethodRequest method{};                  // the score `auto`, unless it names another
  FitCalibration calibration = FitCalibration::kAuto;  // kCross: one target
  Level level = Level(0.1);
  bool all_levels = false;  // of the evaluation; see evaluate.h
};

// How many rows made a predictor.
struct MadeRows {
  size_t training = 0, calibration = 0;
  size_t selection = 0;  // of the calibration part, held out for choices and heads
};

struct FitOutcome {
  Task task = Task::kNumbers;
  std::string reason{};  // why this task, where it was inferred
  TableSplit split;      // of the rows that are read
  MadeRows rows;         // of the predictor that the report is about
  size_t test_rows = 0;
  std::optional<MadeRows> refit{};                    // by time: of the predictor in `calibrated`
  size_t without_target = 0, refused = 0;             // rows that were left out
  std::shared_ptr<const RefusedRows> refused_rows{};  // which ones
  HoldoutError holdout{};  // of the training rows, each predicted by a network that did not see it;
                           // the error on the test rows is in the report
  bool crossed = false;    // rows that train calibrate too
  CalibrateResult calibrated;
  EvaluationReport report;
};

// Types of columns by name, where no text was parsed: an OptionError where one is none.
void check_types(const std::map<std::string, std::string>& types);

// What a user should hear: of calibration, of the table and of the evaluation, each once.
std::vector<std::string> fit_warnings(const FitOutcome& outcome);

// An Error where there are too few rows for three parts.
FitOutcome fit_table(const FitRequest& options, const Context& context);

// Three fifths, one and one; of few rows more calibrate, because an interval at `level` needs them.
std::vector<double> usual_shares(size_t rows, const Level& level);

}  // namespace fcp
