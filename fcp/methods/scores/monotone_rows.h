// Scores whose region is one interval for each row and output, with ends that are monotone in the
// radius as computed. The score is then the least radius at which the interval holds y, so that the
// law is exact to the last bit; several outputs are joined by the largest.
//
// A `Rows` has
//   torch::Tensor prediction                        [N, K] doubles on the CPU
//   Row row(int64_t n, int64_t k) const             what one output of one row answers
// and a Row
//   bool valid() const                              false where the network answered NaN
//   Interval at(double radius) const                for finite radii; grows with the radius
//   double guess(double y) const                    about the radius at which y enters
// Of a one-sided bound (one_sided.h) one end of `at` is looked at, which grows by itself.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <torch/types.h>

#include "fcp/base/special_numbers.h"
#include "fcp/interval.h"
#include "fcp/methods/scores/least_radius.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/methods/scores/score.h"

namespace fcp {

// A tensor as a matrix of doubles on the CPU, one after the other.
inline torch::Tensor plain_matrix(const torch::Tensor& tensor) {
  return output_matrix(tensor).to(torch::kCPU).contiguous();
}

// The interval, or the half line behind the end that is the bound.
template <typename Row>
Interval interval_at(const Row& row, double radius, BoundSide side) {
  const Interval both = row.at(radius);
  if (side == BoundSide::kUpper) return {-kInfinity, both.upper};
  return side == BoundSide::kLower ? Interval{both.lower, kInfinity} : both;
}

template <typename Row>
double monotone_score(const Row& row, double y, BoundSide side) {
  if (!row.valid() || std::isnan(y)) return std::numeric_limits<double>::quiet_NaN();
  return least_radius([&](double radius) { return interval_at(row, radius, side).contains(y); },
                      row.guess(y));
}

template <typename Rows>
std::vector<double> monotone_scores(const Rows& rows, const torch::Tensor& truth,
                                    BoundSide side = BoundSide::kBoth) {
  const torch::Tensor y = truth_matrix(truth.to(torch::kCPU), rows.prediction).contiguous();
  const int64_t count = y.size(0), outputs = y.size(1);
  const double* truths = y.data_ptr<double>();
  std::vector<double> scores;
  scores.reserve(static_cast<size_t>(count));
  for (int64_t n = 0; n < count; ++n) {
    double largest = -std::numeric_limits<double>::infinity();
    for (int64_t k = 0; k < outputs; ++k) {
      const double own = monotone_score(rows.row(n, k), truths[n * outputs + k], side);
      largest = std::isnan(own) || std::isnan(largest) ? std::nan("") : std::max(largest, own);
    }
    scores.push_back(largest);
  }
  return scores;
}

// Nothing at −∞ and everything at +∞, whatever the row says.
template <typename Row>
Interval monotone_interval(const Row& row, double radius, BoundSide side) {
  if (radius == kInfinity) return {};
  if (radius == -kInfinity) return {kInfinity, -kInfinity};
  const double nan = std::nan("");
  return row.valid() ? interval_at(row, radius, side) : Interval{nan, nan};
}

template <typename Rows>
Regions monotone_regions(const Rows& rows, const torch::Tensor& radius,
                         BoundSide side = BoundSide::kBoth) {
  const torch::Tensor column = radius_column(radius, rows.prediction).contiguous();
  Regions regions{rows.prediction,
                  torch::empty_like(rows.prediction),
                  torch::empty_like(rows.prediction),
                  {},
                  {},
                  side};
  const int64_t count = rows.prediction.size(0), outputs = rows.prediction.size(1);
  for (int64_t n = 0; n < count; ++n) {
    for (int64_t k = 0; k < outputs; ++k) {
      const Interval interval =
          monotone_interval(rows.row(n, k), column.data_ptr<double>()[n], side);
      regions.lower.data_ptr<double>()[n * outputs + k] = interval.lower;
      regions.upper.data_ptr<double>()[n * outputs + k] = interval.upper;
    }
  }
  return regions;
}

}  // namespace fcp
