#include "fcp/evaluate/measures/length.h"

#include <algorithm>
#include <cmath>

#include "fcp/base/error.h"
#include "fcp/base/infinity.h"
#include "fcp/interval.h"

namespace fcp {

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

}  // namespace fcp
