#include "fcp/fit/train.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/calibrate/collect_scores.h"
#include "fcp/data/columns.h"
#include "fcp/data/images/image_transform.h"
#include "fcp/data/row_digest.h"
#include "fcp/data/row_sources.h"
#include "fcp/fit/table_split.h"
#include "fcp/methods/calibrations/grouped.h"
#include "fcp/methods/options.h"
#include "fcp/methods/scores/cross.h"
#include "fcp/predictor/levels.h"
#include "fcp/training/heads_graph.h"
#include "fcp/training/training_data.h"
#include "fcp/version.h"

namespace fcp {
namespace {

// What later steps ask a network: how its columns are read, the names of its targets, and which
// rows it has seen.
void describe_training(const RowSource& source, const Rows& rows, Graph& graph) {
  if (source.encoding() != nullptr) {
    graph.metadata[kEncodingKey] = encoding_text(*source.encoding());
  }
  if (!source.target_names().empty()) {
    graph.metadata[kTargetsKey] = nlohmann::json(source.target_names()).dump();
  }
  if (!source.class_names().empty()) {
    graph.metadata[kClassesKey] = class_names_text(source.class_names());
  }
  RowDigest digest;
  digest.add(rows.x, rows.y);
  RowSample sample;
  sample.add(row_codes(rows.x));
  graph.metadata[kTrainingFilterKey] = sample.filter();
  graph.metadata[kTrainingDigestKey] = digest.sha256();
}

// What the networks learn, float32: the targets, or what is left of them beside their offsets.
struct LearnedTargets {
  std::vector<double> offsets;
  Array y;

  LearnedTargets(const Rows& rows, Loss loss)
      : offsets(loss == Loss::kCrossEntropy ? std::vector<double>() : target_offsets(rows.y)),
        y(offsets.empty() ? rows.y : less_offsets(rows.y, offsets)) {
    y.exact.clear();
  }

  // Beside an offset the logarithm is a straight line.
  void settle(TabularOptions& options) const {
    if (!offsets.empty()) options.target_scale = TargetScale::kIdentity;
  }
  void add_to(Graph& graph) const {
    if (!offsets.empty()) add_offsets(graph, offsets);
  }
};

// All rows, whose classes must be those that were learned: of several files, those of the first.
Rows read_training(RowSource& source) {
  Rows rows = read_exact_targets(source);
  for (size_t i = 0; !source.class_names().empty() && i < rows.y.values.size(); ++i) {
    if (!std::isinf(rows.y.values[i])) continue;
    fail(rows.place(i), ": its class is none of the ", source.class_names().size(),
         " classes of the first file; put a file that has all of them first");
  }
  return rows;
}

// What is known of the features of a table: levels of one category, and dates.
void describe_columns(const RowSource& source, TabularOptions& options) {
  options.target_names = source.target_names();
  if (source.encoding() == nullptr) return;
  const CsvEncoding& encoding = *source.encoding();
  int64_t first = 0;
  for (size_t i = 0; i < encoding.columns.size(); ++i) {
    const auto width = static_cast<int64_t>(encoding.width_of(i));
    if (encoding.is_category(i)) options.categories.push_back({first, width});
    if (encoding.format(i).kind == ColumnKind::kDate) options.dates.push_back(first);
    first += width;
  }
}

std::vector<SegmentationSample> read_samples(const SegmentationSet& set, std::array<int, 2> size,
                                             const Context& context) {
  Stage stage(context, "read", set.pairs.size());
  std::vector<SegmentationSample> samples;
  for (size_t i = 0; i < set.pairs.size(); ++i) {
    check_interrupted();
    samples.push_back(read_segmentation(set, i, size));
    const Image &image = samples.back().image, &first = samples.front().image;
    if (image.height != first.height || image.width != first.width) {
      fail(set.pairs[i].image, ": ", image.width, " x ", image.height, " pixels, expected ",
           first.width, " x ", first.height, " as in ", set.pairs[0].image,
           ", or a size to which all are resized");
    }
    stage.advance(1);
  }
  return samples;
}

void note_missing_trees(const TabularOptions& options, const Context& context) {
  if (!options.trees || can_boost()) return;
  context.observer->note("this build has no XGBoost: networks are trained, no trees");
}

}  // namespace

// Unrounded features, which nobody needs, would be the larger part of the memory.
Rows read_exact_targets(RowSource& source) {
  constexpr size_t kTogether = 4096;
  source.rewind();
  Rows all, some;
  while (source.next(kTogether, some)) {
    some.x.exact.clear();
    all.append(some);
  }
  if (all.x.shape.empty()) all.x = some.x;  // no rows, but their shape
  if (all.y.shape.empty()) all.y = some.y;
  return all;
}

void narrow_layers(size_t rows, TabularOptions& options) {
  constexpr size_t kFewRows = 2500;
  if (rows >= kFewRows) return;
  for (int64_t& width : options.layers) width = std::max<int64_t>(1, width / 2);
}

std::string ensemble_text(int64_t networks, const std::vector<double>& share, bool log) {
  const std::string text = concat(networks, networks == 1 ? " network" : " networks");
  const char* scale = log ? ", of the target's logarithm" : "";
  if (share.empty()) return text + scale;
  const double sum = std::accumulate(share.begin(), share.end(), 0.0);
  const double mean = sum / static_cast<double>(share.size());
  return concat(text, " and boosted trees of weight ", std::round(100 * mean) / 100, scale);
}

TrainResult train_rows(RowSource& source, const TrainOptions& options, const Context& context) {
  const Rows rows = read_training(source);
  Stage stage(context, "train",
              static_cast<size_t>(most_train_steps(static_cast<int64_t>(rows.x.rows()), options)));
  TrainResult result = train_network(rows.x, rows.y, options, [&](const TrainStep& step) {
    stage.advance(1, [&] {
      return concat(step.fit.refit ? "refit, epoch " : "epoch ", step.fit.epoch, ", loss ",
                    step.fit.loss);
    });
  });
  describe_training(source, rows, result.graph);
  return result;
}

TabularResult train_table(RowSource& source, const TabularOptions& options, bool heads,
                          const Context& context) {
  const Rows rows = read_training(source);
  const LearnedTargets learned(rows, options.loss);
  std::optional<Stage> stage;  // how long it is becomes known with the first step
  int64_t done = 0;
  note_missing_trees(options, context);
  TabularOptions own = options;
  describe_columns(source, own);
  own.heads = heads && options.loss == Loss::kMse;
  learned.settle(own);
  TabularResult result = train_tabular(rows.x, learned.y, own, [&](const EnsembleStep& step) {
    if (!stage) stage.emplace(context, "train", static_cast<size_t>(step.steps));
    stage->advance(static_cast<size_t>(step.step - std::exchange(done, step.step)), [&] {
      return concat("epoch ", step.epoch, " of ", step.epochs, ", hold-out loss ", step.loss);
    });
  });
  stage.reset();
  if (own.heads) {
    const Stage fitting(context, "heads", 0);
    add_heads(learned.y, own, result);
  }
  learned.add_to(result.graph);
  for (const std::string& warning : result.warnings) context.observer->warning(warning);
  describe_training(source, rows, result.graph);
  return result;
}

CrossFit train_crossed_table(RowSource& source, const TabularOptions& options, int64_t folds,
                             const Context& context) {
  const Rows rows = read_training(source);
  const LearnedTargets learned(rows, options.loss);
  note_missing_trees(options, context);
  Stage stage(context, "train", static_cast<size_t>(folds));
  TabularOptions own = options;
  describe_columns(source, own);
  learned.settle(own);
  narrow_layers(rows.x.rows(), own);
  CrossFit result = train_crossed(rows.x, learned.y, own, folds, [&](int64_t fold) {
    stage.advance(1, [&] { return concat("fold ", fold + 1, " of ", folds); });
  });
  learned.add_to(result.graph);
  for (const std::string& warning : result.warnings) context.observer->warning(warning);
  describe_training(source, rows, result.graph);
  return result;
}

SegmenterResult train_segmentation(const SegmentationSet& set, const SegmenterOptions& options,
                                   std::array<int, 2> size, const Context& context) {
  const std::vector<SegmentationSample> samples = read_samples(set, size, context);
  Stage stage(context, "train", static_cast<size_t>(segmenter_steps(samples.size(), options)));
  return train_segmenter(samples, options, [&](const SegmenterStep& step) {
    stage.advance(1, [&] { return concat("epoch ", step.epoch, ", loss ", step.loss); });
  });
}

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
      fail_option("calibration", "cross takes classes from a CSV file only; take split");
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
