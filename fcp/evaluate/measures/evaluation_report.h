// What an evaluation found, whatever the regions are: intervals, sets of labels, or the bands or
// sets of all pixels of an image. `evaluate` (fcp/pipeline) fills it in; the console, JSON and the
// page (fcp/report) read it, and none of them knows how the numbers came about.
//
// What all kinds share stands in the structures themselves; what differs, in two variants: the
// evaluation of a method and the region of an example. All methods and examples of a report are of
// one kind. A further figure of one method is a new optional member of MethodResult.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "fcp/evaluate/measures/conditional.h"
#include "fcp/evaluate/measures/coverage.h"
#include "fcp/evaluate/measures/interval_evaluation.h"
#include "fcp/evaluate/measures/probability_evaluation.h"
#include "fcp/evaluate/measures/set_evaluation.h"
#include "fcp/interval.h"
#include "fcp/level.h"

namespace fcp {

// Which columns a prediction and the length of its region depend on; plain numbers
// (fcp/evaluate/explain.h makes them). What is said of the length of an interval is said of the
// size of a set of labels too.

struct ColumnImportance {
  std::string column;
  double prediction = 0;  // intervals: root mean squared change of the prediction where the column
                          // is shuffled; labels: share of rows whose answer changes
  double length = 0;      // mean change of the region's length, without sign
};

struct WidenedRow {
  struct Reason {
    std::string column;
    double by = 0;  // length less that where the column has its mean: above 0, it widens the region
  };
  std::string name;  // "line 7", "row 5"
  double length = 0;
  std::vector<Reason> reasons;  // the largest first
};

struct Explanation {
  size_t rows = 0;
  bool labels = false;
  bool scaled = false;    // several outputs: changes are in standard deviations of each
  bool training = false;  // means are those of the training rows; else of the rows at hand
  double mean_length = 0;
  std::string level;                      // α
  std::vector<ColumnImportance> columns;  // by the change of the prediction, the largest first
  std::vector<WidenedRow> widest;         // the rows with the longest regions
};

// Coverage and mean length, or size, at one level, from sums that batches of rows add up to: what a
// report shows at levels besides its own. Exact counts of regions, not readings of a curve.
// Tested by tests/evaluate/measures/evaluation_report_test.cc.

struct LevelResult {
  Level level;
  Coverage coverage;
  double size = 0;            // mean length, +∞ if any is infinite; of sets the mean size
  double infinite_share = 0;  // of intervals
};

struct LevelSums {
  size_t rows = 0;
  size_t covered = 0;
  LengthSums sizes;

  void add(const LevelSums& other);
  LevelResult result(const Level& level, double confidence = 0.95) const;  // of at least one row
};

// A row is covered if all of its outputs are; with `each` every output counts as a row.
LevelSums level_sums(const IntervalBatch& batch, size_t outputs, bool each = false);
LevelSums level_sums(const LabelSetBatch& batch, size_t classes);

// For sending them between ranks (distributed/packing.h).
template <typename Archive>
void visit_fields(Archive& archive, LevelSums& sums) {
  archive(sums.rows, sums.covered, sums.sizes.finite_sum, sums.sizes.intervals, sums.sizes.infinite,
          sums.sizes.empty);
}

using Evaluation = std::variant<IntervalEvaluation, SetEvaluation, PixelEvaluation>;

// One method on the test rows. What is left empty is left out of the report.
struct MethodResult {
  std::string name;
  Evaluation evaluation;
  std::optional<double> radius;   // none where it differs from row to row
  std::vector<double> scores;     // of the calibration rows, in any order
  std::vector<double> lengths;    // of the test intervals, all or a sample
  std::vector<CurvePoint> curve;  // coverage at several levels
  // Coverage and size at several levels, by ascending α, the report's own among them: what the
  // page's slider shows.
  std::vector<LevelResult> levels = {};

  // False where the regions are others than those whose coverage is guaranteed, as in the paper's
  // surrogate search; `detection` is then the coverage of the guaranteed ones.
  bool guaranteed = true;
  std::optional<Coverage> detection;

  // Labels: how often the network's first label, or one of its first five, is the true one. They
  // say nothing about the sets.
  std::optional<double> top1;
  std::optional<double> top5;

  std::optional<ConditionalCoverage> conditional = {};
  std::optional<DistributionEvaluation> distribution = {};
  std::optional<ProbabilityEvaluation> probabilities = {};  // of labels

  const IntervalEvaluation& intervals() const { return std::get<IntervalEvaluation>(evaluation); }
  const SetEvaluation& sets() const { return std::get<SetEvaluation>(evaluation); }
  const PixelEvaluation& pixels() const { return std::get<PixelEvaluation>(evaluation); }
  // Of rows; of images, those with the share of pixels in that was asked for.
  const Coverage& coverage() const {
    return std::visit([](const auto& any) -> const Coverage& { return any.coverage; }, evaluation);
  }
};

struct IntervalAtLevel {
  Interval interval;
  bool covered = false;  // of a union: whether one of its parts holds the truth
};

// One output of a row.
struct IntervalExample {
  double prediction = 0;
  double lower = 0;
  double upper = 0;
  double truth = 0;
  std::vector<IntervalAtLevel> at_levels = {};  // at each of the method's levels
};

// A label with the last of the method's levels, by number, whose set holds it: sets shrink as α
// grows.
struct LabelAtLevels {
  std::string name;
  size_t last = 0;
};

struct LabelExample {
  std::string truth;
  std::string prediction;
  std::vector<std::string> members;           // of the set, in the order they are to be read
  std::vector<LabelAtLevels> at_levels = {};  // labels of any set, those of the smallest sets first
};

// An image of H · W pixels. Its pictures are the bytes of PNG files.
struct PixelExample {
  double pixel_share = 0;  // of the pixels that are in
  size_t height = 0, width = 0;
  std::vector<float> uncertainty = {};  // [H, W], in [0, 1]
  std::string truth = {};               // the classes in their colours
  std::string prediction = {};
  std::string missed = {};  // the pixels that are not in
};

// A test row to be shown with its region.
struct Example {
  std::string name = {};
  std::string png = {};  // the bytes of a PNG file; empty where there is no picture
  bool covered = false;
  std::variant<IntervalExample, LabelExample, PixelExample> region = {};
  std::vector<IntervalExample> others = {};  // intervals: of the outputs after the first

  const IntervalExample& interval() const { return std::get<IntervalExample>(region); }
  const LabelExample& labels() const { return std::get<LabelExample>(region); }
  const PixelExample& pixels() const { return std::get<PixelExample>(region); }
};

// A group, or a target, that has a radius of its own: coverage is guaranteed for it alone.
struct GuaranteedGroup {
  std::string name;
  size_t calibration_rows = 0;
  std::optional<Coverage> coverage = {};  // of the test rows, where they were told apart
};

// Coverage by what a column holds.
struct ColumnCoverage {
  std::string column;
  std::vector<GroupCoverage> parts = {};
};

// A column of the table and what became of it.
struct ColumnUse {
  std::string name, type;  // "number", "category", "date:dmy"
  std::string use;         // "feature", "target", or why it is left out
  size_t missing = 0;      // cells
};

// Where the test rows come from, as far as it is known: it decides what a surprising coverage
// means.
enum class RowsOrigin {
  kUnknown,
  kRandomSplit,      // dealt at random together with the calibration rows, by `fit` itself
  kNewGroups,        // likewise, but whole groups of rows
  kLater,            // the newest rows of a table in order of time
  kCalibrationRows,  // the very rows that calibrated
  kTrainingRows,     // rows that the network was trained on are among them
};

// A score that `auto` tried, with the mean interval score, length or size by which it was judged.
struct CandidateScore {
  std::string name;
  double size = 0;
  bool chosen = false;
};

struct EvaluationReport {
  std::string title = {};  // empty: by the kind of the regions
  std::string model = {};  // the file name of the predictor, where it has one
  // How the predictor was made, as a command to which options can be added; empty: it is not known.
  std::string command = {};
  std::string response = "y";  // intervals: the name of what is predicted, or of the first
  std::vector<std::string> responses = {};  // of several outputs: all names, in their order
  Level level = Level(0.1);
  double confidence = 0.95;  // of the confidence intervals in the evaluations
  size_t calibration_rows = 0;
  size_t folds = 0;  // cross: the training rows calibrate (conformal/cross_guarantee.h)
  std::vector<MethodResult> methods = {};  // the main one first; at least one
  std::vector<Example> examples = {};      // of the main method
  std::vector<GuaranteedGroup> guaranteed_groups = {};
  bool guaranteed_classes = false;            // the guaranteed groups are the true labels
  bool guaranteed_targets = false;            // each target has a coverage of its own
  std::vector<std::string> class_names = {};  // of class 0, 1, …
  std::vector<CandidateScore> candidates = {};
  bool candidates_scored = false;     // judged by the interval score, or that of sets
  bool candidates_by_volume = false;  // judged by the volume per dimension
  RowsOrigin origin = RowsOrigin::kUnknown;
  std::string split = {};               // how rows were split; empty: it is not known
  std::vector<ColumnUse> columns = {};  // of the table, where it was read for the first time
  std::vector<ColumnCoverage> by_column =
      {};  // of the most uneven columns of categories, worst first
  std::vector<GroupCoverage> over_time = {};  // where rows are in order of time: by period
  // How many rows of groups that are kept together tell as much as one independent row, by how
  // alike their coverage is (the design effect); 1: rows are independent.
  double rows_alike = 1;
  std::optional<Explanation> importance = {};  // of the columns, without the widest rows
  std::vector<std::pair<std::string, std::string>> provenance = {};
  std::vector<std::string> notes = {};
};

}  // namespace fcp
