// Everything there is to say about prediction intervals on rows whose truth is known.
//
// Rows come in batches of any size, so that a test set need not fit in memory:
//
//   IntervalEvaluator evaluator(outputs, {.level = Level(0.1)});
//   while (...) evaluator.add({.lower = lower, .upper = upper, .truth = truth});
//   IntervalEvaluation result = evaluator.finish();
//
// N rows of K outputs each. A row is covered if all of its K outputs lie inside their intervals, or
// its truth in the region that they are a box around. With options.each every output counts by
// itself, and coverage is the mean of theirs, as sure as that of N rows.
// Memory: 13 bytes per row where the mean response is a float32 number, else 17: thirds, strata and
// medians are those of all rows, whose borders are known only at the end. Of several outputs 8
// bytes more per interval unless options.medians is off; 8 more per row while it finishes.
// Tested by tests/evaluate/measures/interval_evaluation_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fcp/conformal/bound_side.h"
#include "fcp/evaluate/measures/coverage.h"
#include "fcp/level.h"

namespace fcp {

// Lengths of intervals: how much a covering region says.
//
// An infinite interval is legal and makes the mean length infinite, as it should; so that one such
// row does not hide all the others, the mean over the finite intervals stands beside it, and
// infinite and empty intervals are counted. An empty interval has length 0.
// Tested by tests/evaluate/measures/length_test.cc.

struct LengthSummary {
  double mean = 0;               // over all intervals; +∞ if any is infinite
  double mean_finite = 0;        // over the finite ones; +∞ if there is none
  std::optional<double> median;  // the midpoint of the two middle ones where their number is even
  double infinite_share = 0;
  double empty_share = 0;
};

// The running sums behind a LengthSummary.
struct LengthSums {
  double finite_sum = 0;
  size_t intervals = 0;
  size_t infinite = 0;
  size_t empty = 0;

  void add(double lower, double upper);
  // Of a length known as such, of one-sided bounds negative ones too; an empty interval has none.
  void add_length(double length, bool empty_interval);
  void add(const LengthSums& other);
  LengthSummary summary() const;  // without the median; at least one interval is required
};

// The median of at least one value, reordering them. Values may be infinite. O(n).
double median_of(std::span<double> values);

// The weights of the paper's weighted length, for rows of K pixels whose smoothed labels Y are in
// [0, 1]: w_j = |2 Y_j − 1| / Σ_j |2 Y_j − 1|, near zero where an object ends and Y is near 1/2. A
// row with Y = 1/2 throughout weighs all pixels equally. labels is [rows × outputs], row by row,
// and so is the result; each row of it sums to one.
std::vector<double> informative_weights(std::span<const double> labels, size_t outputs);

// A batch of rows. Interval ends may be infinite, the truth may not; a NaN is an error that names
// row and output. Groups and weights are given for all batches or for none.
struct IntervalBatch {
  std::span<const double> lower;         // [rows × outputs], row by row
  std::span<const double> upper;         // [rows × outputs]
  std::span<const double> truth;         // [rows × outputs]
  std::span<const double> weights = {};  // [rows × outputs], not negative, for the weighted length
  std::span<const int64_t> groups = {};  // [rows], for coverage by group
  // Unions of intervals: [rows × outputs × part_count × 2], lower and upper end of each part,
  // unused parts empty. Then lengths are sums and a truth between two parts is missed; lower and
  // upper are the ends of the whole. Empty: one interval each.
  std::span<const double> parts = {};
  size_t part_count = 0;
  std::span<const double> prediction = {};  // [rows × outputs], for the error; always or never
  // Of regions around which the ends are a box: whether the truth of each row is in, and the volume
  // of its region to the power 1/K, [rows]. Empty: the box is the region.
  std::span<const uint8_t> inside = {};
  std::span<const double> volumes = {};
  // One-sided bounds: the length is how far the bound lies beyond the prediction, which is needed.
  BoundSide side = BoundSide::kBoth;
};

// One interval of a batch, or the union at its place: then the length is the sum of its parts.
struct MeasuredRegion {
  double length = 0;
  double cost = 0;      // the length, of a one-sided bound how far it lies beyond the truth
  double distance = 0;  // of the truth from the interval, or from the nearest part
  bool inside = false;
  bool empty = false;
};
MeasuredRegion measure_region(const IntervalBatch& batch, size_t at);

// cost + (2/α) · distance, Winkler's; of a one-sided bound cost + (1/α) · distance, the
// pinball loss of the bound over α. Both are least, in the mean, for the true quantiles.
double region_score(const MeasuredRegion& region, const Level& level, BoundSide side);

// The error of the prediction beside the spread of the truth, in the unit of both.
struct PointError {
  double rmse = 0;
  double mae = 0;
  double deviation = 0;  // standard deviation of the truth: the error of its mean
};

// The running sums behind a PointError. The spread is summed around the running mean (Welford).
struct PointSums {
  size_t rows = 0;
  double squares = 0, distances = 0;
  double mean = 0, spread = 0;  // of the truth; Σ (y − mean)²

  void add(double prediction, double truth);
  PointError error() const;
};

struct IntervalEvaluationOptions {
  Level level = Level(0.1);                   // for the interval score
  double confidence = 0.95;                   // of the confidence intervals of coverage
  uint32_t strata = 4;                        // of coverage by length
  BoundSide side = BoundSide::kBoth;          // of all batches
  bool medians = true;                        // costs 8 bytes an interval
  bool each = false;                          // each output has a coverage of its own
  std::vector<std::string> group_names = {};  // of group ids 0, 1, …
};

struct IntervalEvaluation {
  size_t rows = 0;
  size_t outputs = 0;
  BoundSide side = BoundSide::kBoth;
  Coverage coverage;  // of whole rows; with options.each the mean of the outputs, for N rows
  std::vector<double> output_coverage;       // [outputs], the share of each output alone
  std::optional<double> joint_coverage;      // of several outputs: the share of whole rows
  LengthSummary length;                      // over rows and outputs
  std::vector<LengthSummary> output_length;  // [outputs]
  std::vector<PointError> output_error;      // [outputs], where predictions are given
  std::optional<double> weighted_length;  // (1/N) Σ_i Σ_j w_ij · length_ij, where weights are given
  double interval_score = 0;              // mean over rows and outputs
  // Of several outputs: the volume of a row's region, mean of rows; and to the power 1/K, the side
  // of a cube of that volume.
  std::optional<double> volume, volume_per_dimension;

  // By thirds of the response; with several outputs, of their mean.
  std::vector<GroupCoverage> response_thirds;
  GroupCoverage worst_third;

  std::vector<GroupCoverage> groups;  // where groups are given
  std::optional<GroupCoverage> worst_group;

  // By the mean length of the row's intervals.
  std::vector<Stratum> length_strata;
};

// A growing list of numbers that takes four bytes for each as long as all are float32 numbers, and
// eight from the first on that is not: none is ever rounded.
class CompactNumbers {
 public:
  void add(double number) {
    if (are_floats_ && static_cast<double>(static_cast<float>(number)) != number) widen();
    if (are_floats_) {
      floats_.push_back(static_cast<float>(number));
    } else {
      doubles_.push_back(number);
    }
  }

  // Which of the two lists has them.
  bool are_floats() const { return are_floats_; }
  std::span<const float> floats() const { return floats_; }
  std::span<const double> doubles() const { return doubles_; }

 private:
  void widen() {
    doubles_.assign(floats_.begin(), floats_.end());
    floats_ = {};
    are_floats_ = false;
  }

  bool are_floats_ = true;
  std::vector<float> floats_;
  std::vector<double> doubles_;
};

class IntervalEvaluator {
 public:
  explicit IntervalEvaluator(size_t outputs, IntervalEvaluationOptions options = {});

  void add(const IntervalBatch& batch);

  // Throws fcp::Error where no row was added.
  IntervalEvaluation finish() const;

 private:
  void check_shape(const IntervalBatch& batch) const;
  void add_row(const IntervalBatch& batch, size_t row);
  double add_region(const IntervalBatch& batch, size_t at, bool& inside);

  size_t outputs_;
  IntervalEvaluationOptions options_;
  bool weighted_ = false;
  bool grouped_ = false;

  size_t rows_ = 0;
  std::vector<uint8_t> covered_;        // [rows]; with options_.each [rows × outputs], as the next
  CompactNumbers response_;             // [rows]
  std::vector<double> row_length_;      // [rows]
  std::vector<double> lengths_;         // [rows × outputs] of several outputs, if options_.medians
  std::vector<size_t> output_covered_;  // [outputs]
  std::vector<LengthSums> output_sums_;  // [outputs]
  std::vector<PointSums> output_error_;  // [outputs] where predictions are given
  GroupCounts groups_;
  double weighted_sum_ = 0;
  double score_sum_ = 0;
  double volume_sum_ = 0, side_sum_ = 0;
  size_t joint_ = 0;  // rows of which all outputs are in
};

// All rows at once.
IntervalEvaluation evaluate_intervals(const IntervalBatch& rows, size_t outputs,
                                      IntervalEvaluationOptions options = {});

// Two predictors on the same rows: the difference of a number, row by row, with a confidence
// interval, which is far narrower than that of two separate means.
//
//   mean d ± z · sd(d) / √n,   d_i = a_i − b_i,   z = 1.96 for 95 %
//
// by the central limit theorem; rows are independent. Infinite numbers have no difference: a pair
// with one is counted and left out.
// Tested by tests/evaluate/measures/paired_test.cc.

struct PairedDifference {
  double mean_a = 0, mean_b = 0;  // over the pairs that count
  double difference = 0;          // mean_a − mean_b
  double low = 0, high = 0;       // of the difference, 95 %
  size_t rows = 0;                // pairs that count
  size_t infinite_a = 0, infinite_b = 0;

  bool certain() const { return rows > 1 && (low > 0 || high < 0); }
};

// Lists of the same length; a NaN is an Error that names the row.
PairedDifference paired_difference(std::span<const double> a, std::span<const double> b);

}  // namespace fcp
