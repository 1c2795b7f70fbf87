// The curve of rows that are all there at once.
#pragma once

#include <span>
#include <vector>

#include "fcp/evaluate/measures/coverage.h"

namespace fcp {

// By the scores of calibration, ascending, and of test rows.
inline std::vector<CurvePoint> coverage_curve(std::span<const double> calibration,
                                              std::span<const double> test,
                                              std::span<const Level> levels) {
  const std::vector<double> radii = curve_radii(calibration, levels);
  return curve_of_counts(levels, radii, count_scores(test, radii), test.size());
}

// By the p-values of test rows.
inline std::vector<CurvePoint> coverage_curve(std::span<const double> p_values,
                                              std::span<const Level> levels) {
  return curve_of_counts(levels, {}, count_p_values(p_values, levels), p_values.size());
}

}  // namespace fcp
