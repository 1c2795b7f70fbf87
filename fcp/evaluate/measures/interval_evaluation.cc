#include "fcp/evaluate/measures/interval_evaluation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/base/special_numbers.h"
#include "fcp/evaluate/measures/coverage_law.h"
#include "fcp/interval.h"

namespace fcp {
namespace {

// Fills in the median of each output and of all intervals. lengths is [rows × outputs].
void add_medians(std::vector<double> lengths, size_t outputs, IntervalEvaluation* result) {
  if (outputs == 1) {
    result->length.median = result->output_length[0].median = median_of(lengths);
    return;
  }
  std::vector<double> column(lengths.size() / outputs);
  for (size_t k = 0; k < outputs; ++k) {
    for (size_t row = 0; row < column.size(); ++row) column[row] = lengths[row * outputs + k];
    result->output_length[k].median = median_of(column);
  }
  result->length.median = median_of(lengths);
}

// The outputs of a row are not as many rows: what was counted K times is worth a K-th.
void count_rows_once(IntervalEvaluation& result) {
  const auto outputs = static_cast<double>(result.outputs);
  const auto once = [&](Coverage& coverage) { coverage = worth(coverage, outputs); };
  once(result.coverage);
  for (GroupCoverage& group : result.response_thirds) once(group.coverage);
  once(result.worst_third.coverage);
  for (GroupCoverage& group : result.groups) once(group.coverage);
  if (result.worst_group) once(result.worst_group->coverage);
  for (Stratum& stratum : result.length_strata) once(stratum.coverage);
}

}  // namespace

MeasuredRegion measure_region(const IntervalBatch& batch, size_t at) {
  const double y = batch.truth[at];
  if (batch.part_count == 0) {
    const Interval interval{batch.lower[at], batch.upper[at]};
    MeasuredRegion region{interval.length(), interval.length(),
                          std::max({interval.lower - y, y - interval.upper, 0.0}),
                          interval.contains(y), interval.empty()};
    if (batch.side != BoundSide::kBoth) {
      const bool upper = batch.side == BoundSide::kUpper;
      const double mean = batch.prediction[at];
      region.length = upper ? interval.upper - mean : mean - interval.lower;
      region.cost = upper ? interval.upper - y : y - interval.lower;
    }
    return region;
  }
  MeasuredRegion region{.distance = std::numeric_limits<double>::infinity(), .empty = true};
  for (size_t part = 0; part < batch.part_count; ++part) {
    const double* ends = batch.parts.data() + 2 * (at * batch.part_count + part);
    const Interval interval{ends[0], ends[1]};
    if (interval.empty()) continue;
    region.empty = false;
    region.length += interval.length();
    region.inside = region.inside || interval.contains(y);
    region.distance =
        std::min(region.distance, std::max({0.0, interval.lower - y, y - interval.upper}));
  }
  region.cost = region.length;
  return region;
}

double region_score(const MeasuredRegion& region, const Level& level, BoundSide side) {
  return region.cost + (side == BoundSide::kBoth ? 2 : 1) / level.value() * region.distance;
}

void PointSums::add(double prediction, double truth) {
  ++rows;
  squares += (prediction - truth) * (prediction - truth);
  distances += std::abs(prediction - truth);
  const double from_mean = truth - mean;
  mean += from_mean / static_cast<double>(rows);
  spread += from_mean * (truth - mean);
}

PointError PointSums::error() const {
  if (rows == 0) fail("the error of no predictions was asked for; expected at least one");
  const auto count = static_cast<double>(rows);
  return {std::sqrt(squares / count), distances / count, std::sqrt(spread / count)};
}

IntervalEvaluator::IntervalEvaluator(size_t outputs, IntervalEvaluationOptions options)
    : outputs_(outputs),
      options_(std::move(options)),
      output_covered_(outputs),
      output_sums_(outputs) {
  if (outputs == 0) fail("intervals of 0 outputs cannot be evaluated");
}

void IntervalEvaluator::check_shape(const IntervalBatch& batch) const {
  const size_t numbers = batch.truth.size();
  if (numbers % outputs_ != 0) {
    fail("found ", numbers, " true values; expected rows of ", outputs_);
  }
  if (batch.lower.size() != numbers || batch.upper.size() != numbers) {
    fail("found ", batch.lower.size(), " lower and ", batch.upper.size(), " upper ends for ",
         numbers, " true values");
  }
  if (batch.parts.size() != 2 * numbers * batch.part_count) {
    fail("found ", batch.parts.size(), " ends of parts; expected ", 2 * batch.part_count,
         " for each of ", numbers, " true values");
  }
  const bool first = covered_.empty();
  const bool weighted = first ? !batch.weights.empty() : weighted_;
  const bool grouped = first ? !batch.groups.empty() : grouped_;
  const bool predicted = first ? !batch.prediction.empty() : !output_error_.empty();
  const size_t weights = weighted ? numbers : 0;
  const size_t groups = grouped ? numbers / outputs_ : 0;
  if (batch.prediction.size() != (predicted ? numbers : 0)) {
    fail("found ", batch.prediction.size(), " predictions; expected ", predicted ? numbers : 0);
  }
  if (batch.side != options_.side || (batch.side != BoundSide::kBoth && !predicted)) {
    fail("a batch of the side ", side_name(batch.side), predicted ? "" : " without predictions",
         "; expected ", side_name(options_.side), " with them");
  }
  if (batch.weights.size() != weights) {
    fail("found ", batch.weights.size(), " weights; expected ", weights);
  }
  if (batch.groups.size() != groups) {
    fail("found ", batch.groups.size(), " group ids; expected ", groups);
  }
}

void IntervalEvaluator::add(const IntervalBatch& batch) {
  check_shape(batch);
  if (covered_.empty()) {
    weighted_ = !batch.weights.empty();
    grouped_ = !batch.groups.empty();
    if (!batch.prediction.empty()) output_error_.resize(outputs_);
  }
  const size_t rows = batch.truth.size() / outputs_;
  for (size_t row = 0; row < rows; ++row) add_row(batch, row);
}

double IntervalEvaluator::add_region(const IntervalBatch& batch, size_t at, bool& inside) {
  const MeasuredRegion region = measure_region(batch, at);
  inside = region.inside;
  output_sums_[at % outputs_].add_length(region.length, region.empty);
  score_sum_ += region_score(region, options_.level, options_.side);
  if (!output_error_.empty()) {
    output_error_[at % outputs_].add(batch.prediction[at], batch.truth[at]);
  }
  return region.length;
}

void IntervalEvaluator::add_row(const IntervalBatch& batch, size_t row) {
  bool covered = true;
  double response = 0;
  double row_length = 0;
  double volume = 1, side = 1;
  const double root = 1 / static_cast<double>(outputs_);
  const size_t first = covered_.size();
  for (size_t k = 0; k < outputs_; ++k) {
    const size_t at = row * outputs_ + k;
    const Interval interval{batch.lower[at], batch.upper[at]};
    const double y = batch.truth[at];
    if (std::isnan(interval.lower) || std::isnan(interval.upper) || !std::isfinite(y)) {
      fail("row ", rows_, ", output ", k, ": interval [", interval.lower, ", ", interval.upper,
           "] and true value ", y, "; expected no NaN and a finite true value");
    }
    bool inside = false;
    const double length = add_region(batch, at, inside);
    covered = covered && inside;
    response += y;
    row_length += length;
    volume = length == 0 || volume == 0 ? 0 : volume * length;  // an empty side empties the row
    side = length == 0 || side == 0 ? 0 : side * std::pow(length, root);
    output_covered_[k] += inside;
    if (options_.each) covered_.push_back(inside);
    if (options_.medians && outputs_ > 1) lengths_.push_back(length);
    if (weighted_) {
      const double weight = batch.weights[at];
      if (!(weight >= 0) || std::isinf(weight)) {
        fail("row ", rows_, ", output ", k, ": weight ", weight,
             "; expected a finite number, not negative");
      }
      if (weight > 0) weighted_sum_ += weight * length;  // an infinite length may weigh nothing
    }
  }
  if (!batch.inside.empty()) covered = batch.inside[row] != 0;
  if (!batch.volumes.empty()) {
    side = batch.volumes[row];
    volume = std::pow(side, static_cast<double>(outputs_));
  }
  if (!options_.each) covered_.push_back(covered);
  ++rows_;
  joint_ += covered;
  volume_sum_ += volume;
  side_sum_ += side;
  for (size_t i = first; i < covered_.size(); ++i) {
    if (grouped_) groups_.add(batch.groups[row], covered_[i] != 0);
    response_.add(response / static_cast<double>(outputs_));
    row_length_.push_back(row_length / static_cast<double>(outputs_));
  }
}

IntervalEvaluation IntervalEvaluator::finish() const {
  if (covered_.empty()) fail("no rows to evaluate");
  const double rows = static_cast<double>(rows_);
  const double confidence = options_.confidence;
  IntervalEvaluation result;
  result.rows = rows_;
  result.outputs = outputs_;
  result.side = options_.side;
  size_t covered = 0;
  for (const uint8_t mark : covered_) covered += mark;
  result.coverage = coverage_of(covered, covered_.size(), confidence);

  LengthSums all;
  for (size_t k = 0; k < outputs_; ++k) {
    result.output_coverage.push_back(static_cast<double>(output_covered_[k]) / rows);
    result.output_length.push_back(output_sums_[k].summary());
    all.add(output_sums_[k]);
  }
  result.length = all.summary();
  for (const PointSums& sums : output_error_) result.output_error.push_back(sums.error());
  if (options_.medians) {
    add_medians(outputs_ > 1 ? lengths_ : row_length_, outputs_, &result);
  }
  if (weighted_) result.weighted_length = weighted_sum_ / rows;
  if (outputs_ > 1) result.joint_coverage = static_cast<double>(joint_) / rows;
  if (outputs_ > 1 && options_.side == BoundSide::kBoth) {
    result.volume = volume_sum_ / rows;
    result.volume_per_dimension = side_sum_ / rows;
  }
  result.interval_score = score_sum_ / (rows * static_cast<double>(outputs_));

  result.response_thirds = response_.are_floats()
                               ? coverage_by_thirds(response_.floats(), covered_, confidence)
                               : coverage_by_thirds(response_.doubles(), covered_, confidence);
  result.worst_third = worst_group(result.response_thirds);
  if (grouped_) {
    result.groups = group_coverage(groups_, options_.group_names, confidence);
    result.worst_group = worst_group(result.groups);
  }
  result.length_strata = coverage_by_size(row_length_, covered_, options_.strata, confidence);
  if (options_.each) count_rows_once(result);
  return result;
}

IntervalEvaluation evaluate_intervals(const IntervalBatch& rows, size_t outputs,
                                      IntervalEvaluationOptions options) {
  IntervalEvaluator evaluator(outputs, std::move(options));
  evaluator.add(rows);
  return evaluator.finish();
}

void LengthSums::add(double lower, double upper) {
  const Interval interval{lower, upper};
  add_length(interval.length(), interval.empty());
}

void LengthSums::add_length(double length, bool empty_interval) {
  ++intervals;
  empty += empty_interval;
  if (std::isinf(length)) {
    ++infinite;
  } else {
    finite_sum += length;
  }
}

void LengthSums::add(const LengthSums& other) {
  finite_sum += other.finite_sum;
  intervals += other.intervals;
  infinite += other.infinite;
  empty += other.empty;
}

LengthSummary LengthSums::summary() const {
  if (intervals == 0) fail("the length of no intervals was asked for; expected at least one");
  const double all = static_cast<double>(intervals);
  const double finite = static_cast<double>(intervals - infinite);
  LengthSummary result;
  result.mean = infinite > 0 ? kInfinity : finite_sum / all;
  result.mean_finite = finite > 0 ? finite_sum / finite : kInfinity;
  result.infinite_share = static_cast<double>(infinite) / all;
  result.empty_share = static_cast<double>(empty) / all;
  return result;
}

double median_of(std::span<double> values) {
  if (values.empty()) fail("the median of no values was asked for; expected at least one");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  const double below = *std::max_element(values.begin(), middle);
  return below == *middle ? below : below / 2 + *middle / 2;
}

std::vector<double> informative_weights(std::span<const double> labels, size_t outputs) {
  if (outputs == 0 || labels.size() % outputs != 0) {
    fail("found ", labels.size(), " labels; expected rows of ", outputs);
  }
  std::vector<double> weights(labels.size());
  for (size_t start = 0; start < labels.size(); start += outputs) {
    double sum = 0;
    for (size_t k = start; k < start + outputs; ++k) {
      if (!(labels[k] >= 0 && labels[k] <= 1)) {
        fail("label of row ", start / outputs, ", output ", k - start, " is ", labels[k],
             "; expected 0 to 1");
      }
      weights[k] = std::abs(2 * labels[k] - 1);
      sum += weights[k];
    }
    for (size_t k = start; k < start + outputs; ++k) {
      weights[k] = sum > 0 ? weights[k] / sum : 1 / static_cast<double>(outputs);
    }
  }
  return weights;
}

namespace {

constexpr double kNormal95 = 1.959963984540054;

}  // namespace

PairedDifference paired_difference(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size()) fail("found ", a.size(), " and ", b.size(), " numbers to compare");
  PairedDifference result;
  double mean = 0, squares = 0;  // of the differences, by Welford
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) || std::isnan(b[i])) fail("row ", i, " (from 0) is NaN");
    result.infinite_a += std::isinf(a[i]) ? 1 : 0;
    result.infinite_b += std::isinf(b[i]) ? 1 : 0;
    if (std::isinf(a[i]) || std::isinf(b[i])) continue;
    ++result.rows;
    const auto count = static_cast<double>(result.rows);
    result.mean_a += (a[i] - result.mean_a) / count;
    result.mean_b += (b[i] - result.mean_b) / count;
    const double difference = a[i] - b[i], off = difference - mean;
    mean += off / count;
    squares += off * (difference - mean);
  }
  const auto count = static_cast<double>(result.rows);
  const double error = result.rows > 1 ? kNormal95 * std::sqrt(squares / (count - 1) / count) : 0;
  result.difference = mean;
  result.low = mean - error;
  result.high = mean + error;
  return result;
}

}  // namespace fcp
