#include "fcp/evaluate/measures/paired.h"

#include <cmath>

#include "fcp/base/error.h"

namespace fcp {
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
