#include "fcp/evaluate/method_evaluator.h"

#include <algorithm>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/evaluate/measures/coverage_law.h"
#include "fcp/methods/calibrations/kept_levels.h"
#include "fcp/methods/options.h"

namespace fcp {
namespace {

// Levels of the coverage curve, as exact fractions.
const std::vector<Level>& curve_levels() {
  static const std::vector<Level> kLevels = [] {
    std::vector<Level> levels;
    for (uint64_t percent = 2; percent <= 50; percent += 2) {
      levels.push_back(Level::fraction(percent, 100));
    }
    return levels;
  }();
  return kLevels;
}

// Levels that a reader of a report may want to see besides its own, by ascending α with that among
// them: the usual ones, or those whose radii are kept.
std::vector<Level> asked_levels(const EvaluatedMethod& method) {
  if (!method.main || !method.options.all_levels) return {};
  const Level& own = method.options.level;
  std::vector<Level> levels = method.artifact().rows.levels;
  if (levels.empty()) {
    for (const char* text : {"0.01", "0.02", "0.03", "0.04", "0.05", "0.06", "0.08", "0.1", "0.12",
                             "0.15", "0.2", "0.25", "0.3", "0.4", "0.5"}) {
      levels.push_back(Level::parse(text));
    }
  }
  if (std::find(levels.begin(), levels.end(), own) == levels.end()) levels.push_back(own);
  std::sort(levels.begin(), levels.end(),
            [](const Level& a, const Level& b) { return a.value() < b.value(); });
  return levels;
}

// Of the levels that are kept.
std::vector<CurvePoint> curve_of_kept(const CalibrationArtifact& artifact,
                                      std::span<const uint64_t> within, size_t rows) {
  std::vector<CurvePoint> curve;
  for (size_t i = 0; i < within.size(); ++i) {
    const Level& level = artifact.rows.levels[i];
    const std::vector<double> radius = artifact.radius(level);
    curve.push_back({level, radius.size() == 1 ? std::optional(radius[0]) : std::nullopt,
                     coverage_of(within[i], rows)});
  }
  return curve;
}

uint64_t count_of(const std::vector<bool>& in) {
  return static_cast<uint64_t>(std::count(in.begin(), in.end(), true));
}

// Those that are not marked; `marked` may be empty.
std::vector<double> without(const std::vector<bool>& marked, const std::vector<double>& numbers) {
  if (marked.size() != numbers.size()) return numbers;
  std::vector<double> kept;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (!marked[i]) kept.push_back(numbers[i]);
  }
  return kept;
}

}  // namespace

MethodEvaluator::MethodEvaluator(const EvaluatedMethod& method)
    : method_(method),
      levels_(asked_levels(method)),
      radii_(one_radius() && all_scores()
                 ? curve_radii(method.artifact().rows.scores, curve_levels())
                 : std::vector<double>()),
      level_sums_(levels_.size()) {}

LevelSums MethodEvaluator::sums_at(const Rows&, const Regions&) const { return {}; }

void MethodEvaluator::measure_levels(const JudgedRows& rows, MeasuredRegions& measured,
                                     Packer& packer) const {
  if (!has_curve()) return;
  for (const Level& level : levels_) {
    Regions regions = level == method_.options.level
                          ? measured.regions
                          : method_.judge.predictor().region(rows.inputs, level);
    packer(sums_at(rows.rows, regions));
    measured.at_levels.push_back(std::move(regions));
  }
}

// The report's own level says what the evaluation says, to the last bit.
void MethodEvaluator::finish_levels(MethodResult& result) const {
  if (!has_curve()) return;
  for (size_t i = 0; i < levels_.size(); ++i) {
    LevelResult at = level_sums_[i].result(levels_[i]);
    if (targets() > 1) at.coverage = worth(at.coverage, static_cast<double>(targets()));
    if (at.level == method_.options.level) {
      const auto* intervals = std::get_if<IntervalEvaluation>(&result.evaluation);
      at.coverage = result.coverage();
      at.size = intervals ? intervals->length.mean : result.sets().mean_size;
    }
    result.levels.push_back(at);
  }
}

std::optional<double> MethodEvaluator::length(const Regions&, size_t) const { return std::nullopt; }

bool MethodEvaluator::one_radius() const {
  return method_.artifact().method.calibration.traits().one_radius &&
         method_.artifact().rows.sides == 1;
}

MeasuredRegions MethodEvaluator::measure(const JudgedRows& rows, Packer& packer) const {
  MeasuredRegions measured{method_.judge.regions(rows, method_.options.level), {}};
  packer.add(uint64_t{rows.count()});
  measure_regions(rows, measured.regions, packer);
  measure_levels(rows, measured, packer);
  if (!has_curve() && method_.artifact().method.score.obeys_law()) return measured;
  const Conformity judged = method_.judge.judge(rows, has_curve() && all_scores() && !by_scores());
  packer.add(has_curve() ? count_batch(rows, judged) : std::vector<uint64_t>());
  packer.add(count_of(method_.judge.within(rows, judged.scores, method_.options.level)));
  return measured;
}

std::vector<uint64_t> MethodEvaluator::count_batch(const JudgedRows& rows,
                                                   const Conformity& judged) const {
  if (!all_scores()) {
    std::vector<uint64_t> counts;
    for (const Level& level : method_.artifact().rows.levels) {
      counts.push_back(count_of(method_.judge.within(rows, judged.scores, level)));
    }
    return counts;
  }
  // No radius takes a label that is none of the classes: such rows count as rows alone.
  const std::vector<bool> foreign = method_.judge.predictor().foreign_labels(rows.truth);
  return by_scores() ? count_scores(without(foreign, judged.scores), radii_)
                     : count_p_values(without(foreign, judged.p_values), curve_levels());
}

void MethodEvaluator::take(Unpacker& unpacker, std::span<const int64_t> groups) {
  rows_ += unpacker.number();
  take_regions(unpacker, groups);
  for (size_t i = 0; has_curve() && i < levels_.size(); ++i) {
    LevelSums sums;
    unpacker(sums);
    level_sums_[i].add(sums);
  }
  if (!has_curve() && method_.artifact().method.score.obeys_law()) return;
  const std::vector<uint64_t> within = unpacker.numbers<uint64_t>();
  within_.resize(within.size());
  for (size_t i = 0; i < within.size(); ++i) within_[i] += within[i];
  detected_ += unpacker.number();
}

MethodResult MethodEvaluator::finish() const {
  if (rows_ == 0) fail("the data has no rows to evaluate");
  const CalibrationArtifact& artifact = method_.artifact();
  MethodResult result;
  result.name = artifact.method.score.name();
  finish_regions(result);
  finish_levels(result);
  if (one_radius()) result.radius = artifact.radius(method_.options.level)[0];
  if (has_curve()) {
    if (one_radius() && all_scores()) result.scores = artifact.rows.scores;
    const size_t counted = rows_ * targets();
    result.curve = !all_scores() ? curve_of_kept(artifact, within_, counted)
                                 : curve_of_counts(curve_levels(),
                                                   by_scores() ? radii_ : std::vector<double>(),
                                                   within_, counted);
  }
  result.guaranteed = artifact.method.score.obeys_law();
  if (!result.guaranteed) result.detection = coverage_of(detected_, rows_);
  return result;
}

std::unique_ptr<MethodEvaluator> make_evaluator(const EvaluatedMethod& method) {
  if (method.source.segmentation()) return make_pixel_evaluator(method);
  if (method.artifact().method.score.traits().labels) return make_label_evaluator(method);
  return make_interval_evaluator(method);
}

std::optional<CalibrationArtifact> baseline_predictor(const CalibrationArtifact& artifact) {
  const std::optional<ScoreOptions> score = baseline_of(artifact.method.score);
  const CalibrationScores& rows = artifact.rows;
  // Where all radii are infinite, levels keep nothing of it.
  const bool empty_list =
      !rows.levels.empty() && SideRanks{.rows = rows.total}.ranks(rows.levels).empty();
  if (!score || (artifact.baseline.empty() && !empty_list)) return std::nullopt;
  CalibrationArtifact plain;
  plain.network = artifact.network;
  plain.method.cut = artifact.method.cut;
  plain.method.score = *score;
  plain.rows.scores = artifact.baseline;
  plain.rows.levels = rows.levels;
  plain.rows.total = rows.total;
  return plain;
}

}  // namespace fcp
