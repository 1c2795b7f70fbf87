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
#include "fcp/data/encoding_text.h"
#include "fcp/data/images/image_text.h"
#include "fcp/data/row_digest.h"
#include "fcp/training/tabular_heads.h"
#include "fcp/training/target_offset.h"

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

}  // namespace fcp
