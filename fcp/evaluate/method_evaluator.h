// One calibrated score evaluated on a stream of rows: what `evaluate` does for the predictor and,
// beside it, for the plain score it is compared with. Ranks measure batches, and rank 0 takes them
// in their order, so that the figures are the same for any number of ranks.
//
// What is the same for all regions (p-values, the coverage curve, detection) is done here; what
// differs is one small class per kind: intervals, sets of labels, images of pixels.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fcp/data/images/image_transform.h"
#include "fcp/data/rows.h"
#include "fcp/distributed/packing.h"
#include "fcp/evaluate/evaluate.h"
#include "fcp/evaluate/judge.h"
#include "fcp/evaluate/measures/evaluation_report.h"

namespace fcp {

// Whose regions are evaluated, on which rows. What is referred to must outlive the evaluator.
struct EvaluatedMethod {
  const Judge& judge;
  const RowSource& source;
  const EvaluateOptions& options;
  const std::vector<std::string>& class_names;  // empty for intervals
  bool main = true;                             // not the plain score beside it

  const CalibrationArtifact& artifact() const { return judge.artifact(); }
};

// The regions of a batch at the level of the report and, where they are asked for, at others.
struct MeasuredRegions {
  Regions regions;
  std::vector<Regions> at_levels;  // of the evaluator's levels
};

class MethodEvaluator {
 public:
  explicit MethodEvaluator(const EvaluatedMethod& method);
  virtual ~MethodEvaluator() = default;

  // Packs what take() needs of these rows, which any judge of the same network ran, and returns
  // their regions.
  MeasuredRegions measure(const JudgedRows& rows, Packer& packer) const;

  // Groups are given always or never.
  void take(Unpacker& unpacker, std::span<const int64_t> groups);

  // With the coverage curve and, where the law does not hold, the coverage of detection. An Error
  // where there were no rows.
  MethodResult finish() const;

  // Row `i` of a batch, to be shown.
  virtual Example example(const Rows& rows, const MeasuredRegions& measured, size_t i) const = 0;
  // Of intervals: the length of row `i`; none for other regions.
  virtual std::optional<double> length(const Regions& regions, size_t i) const;

 protected:
  // Outputs with a coverage of their own, by which curves count, instead of whole rows.
  size_t targets() const { return static_cast<size_t>(method_.artifact().rows.targets); }

  virtual void measure_regions(const JudgedRows& rows, const Regions& regions,
                               Packer& packer) const = 0;
  virtual void take_regions(Unpacker& unpacker, std::span<const int64_t> groups) = 0;
  virtual void finish_regions(MethodResult& result) const = 0;
  // Coverage and size of these rows at another level; asked only where there is a curve.
  virtual LevelSums sums_at(const Rows& rows, const Regions& regions) const;
  // Images have none: a score of them costs as much as their regions.
  virtual bool has_curve() const { return true; }
  // Whether the curve is drawn from scores where one radius holds for all rows.
  virtual bool curve_of_scores() const { return false; }

  const EvaluatedMethod method_;
  const std::vector<Level> levels_;  // besides the report's own, with that among them; or none

 private:
  void measure_levels(const JudgedRows& rows, MeasuredRegions& measured, Packer& packer) const;
  void finish_levels(MethodResult& result) const;
  bool one_radius() const;
  bool all_scores() const { return method_.artifact().rows.levels.empty(); }

  // Rows within the radius of each level of the curve: by their scores where one radius holds for
  // all rows, by their p-values where it does not; where the radii of some levels alone are kept,
  // for each of these.
  std::vector<uint64_t> count_batch(const JudgedRows& rows, const Conformity& judged) const;
  bool by_scores() const { return curve_of_scores() && one_radius(); }

  const std::vector<double> radii_;  // of the curve's levels, where one holds for all rows
  std::vector<uint64_t> within_;
  std::vector<LevelSums> level_sums_;  // of levels_
  size_t detected_ = 0;                // rows whose scores are within their radii
  size_t rows_ = 0;
};

std::unique_ptr<MethodEvaluator> make_interval_evaluator(const EvaluatedMethod& method);
std::unique_ptr<MethodEvaluator> make_label_evaluator(const EvaluatedMethod& method);
// `method.source` has segmentation().
std::unique_ptr<MethodEvaluator> make_pixel_evaluator(const EvaluatedMethod& method);

// Whichever of them the rows and the artifact ask for.
std::unique_ptr<MethodEvaluator> make_evaluator(const EvaluatedMethod& method);

// The plain score that the predictor's own is compared with, on the same rows: calibrated by split.
// None for a plain score.
std::optional<CalibrationArtifact> baseline_predictor(const CalibrationArtifact& artifact);

}  // namespace fcp
