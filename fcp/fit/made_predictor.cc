#include "fcp/fit/made_predictor.h"

#include <cmath>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/calibrate/unfinished.h"
#include "fcp/data/table_rows.h"
#include "fcp/fit/row_weights.h"
#include "fcp/fit/train.h"
#include "fcp/methods/calibrations/grouped.h"
#include "fcp/methods/options.h"
#include "fcp/methods/scores/cross.h"
#include "fcp/predictor/levels.h"
#include "fcp/version.h"

namespace fcp {
namespace {

constexpr size_t kFolds = 10;  // of cross-fitting

// Comparisons that each row of a crossed classifier costs: its calibration rows times its classes.
constexpr size_t kMostComparisons = 20'000;

// Whether one side, a support, several targets or calibrated probabilities are asked for, which the
// score of crossed rows does not give.
bool asks_for_ends(const MethodRequest& method) {
  const ScoreOptions score = resolve(method).score;
  return score.side != BoundSide::kBoth || score.integer || !score.support.empty() ||
         method.text("joint") != kJointAll || score.probabilities == kVennAbers;
}

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

// ", ridge regression of weight 0.35"; empty where it has none.
std::string ridge_text(double share) {
  const double weight = std::round(100 * share) / 100;
  return weight > 0 ? concat(", ridge regression of weight ", weight) : std::string();
}

}  // namespace

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
                  "integer, joint and calibrated probabilities take split");
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

MadeRows train_and_calibrate(const MadeFrom& from, TabularOptions train, const DataOptions& data,
                             const FitRequest& options, const Context& context,
                             FitOutcome& result) {
  const TableSplit& split = from.split;
  train.row_weights = take_weights(from.weights, split.training);
  TableRows training(from.source, from.all, split.training),
      calibration(from.source, from.all, split.calibration);
  train.groups = take_groups(split.groups, split.training);
  narrow_layers(split.training.size(), train);
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
  if (!options.row_weights.empty()) {
    settings.provenance["row weights"] = weights_text(options.row_weights);
  }
  result.calibrated = std::move(
      *begin_calibration(trained.graph, calibration, settings, context, {.known_apart = true})
           .result);
  const size_t kept = result.calibrated.artifact.rows.count();
  return {split.training.size(), kept, split.calibration.size() - kept};
}

void calibrate_crossed(const MadeFrom& from, TabularOptions train, const DataOptions& data,
                       const FitRequest& options, const Context& context, FitOutcome& result) {
  TableRows training(from.source, from.all, from.split.training);
  train.row_weights = take_weights(from.weights, from.split.training);
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
                                                    trained.tree_share, trained.log_target) +
                                          ridge_text(trained.ridge_share)},
                         {"calibration data", data_file_names(data)},
                         {"rows split", result.split.text},
                         {"training rows", std::to_string(result.split.training.size())},
                         {"calibration rows", std::to_string(result.rows.calibration)},
                         {"folds", std::to_string(kFolds)},
                         {"guarantee", "1 - 2 alpha, less a little for the folds (CV+)"},
                         {"seed", std::to_string(context.seed)},
                         {"target", data.target}};
  if (!options.row_weights.empty()) {
    artifact.provenance["row weights"] = weights_text(options.row_weights);
  }
  result.calibrated.warnings = level_warnings(artifact, options.level);
}

}  // namespace fcp
