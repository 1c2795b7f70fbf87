#include "fcp/data/scaling.h"

#include <cmath>

#include "fcp/base/error.h"

namespace fcp {

Standardiser fit_standardiser(const Array& x) {
  const size_t rows = x.rows(), columns = x.row_size();
  if (rows == 0) fail("cannot standardise: the training fold has no rows");
  const double n = static_cast<double>(rows);
  Standardiser fitted{std::vector<double>(columns), std::vector<double>(columns)};
  // The mean is taken of differences from the first row, which are exactly 0 for a constant column.
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) {
      fitted.mean[j] += (static_cast<double>(x.values[i * columns + j]) - x.values[j]) / n;
    }
  }
  for (size_t j = 0; j < columns; ++j) fitted.mean[j] += x.values[j];
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) {
      const double difference = x.values[i * columns + j] - fitted.mean[j];
      fitted.deviation[j] += difference * difference / n;
    }
  }
  for (double& value : fitted.deviation) value = value > 0 ? std::sqrt(value) : 1.0;
  return fitted;
}

Array standardise(const Standardiser& standardiser, Array x) {
  const size_t columns = x.row_size();
  if (columns != standardiser.mean.size()) {
    fail("cannot standardise rows of ", columns, " numbers, expected ", standardiser.mean.size());
  }
  for (size_t i = 0; i < x.values.size(); ++i) {
    const size_t j = i % columns;
    x.values[i] =
        static_cast<float>((x.values[i] - standardiser.mean[j]) / standardiser.deviation[j]);
  }
  return x;
}

double target_scale(const Array& y) {
  if (y.values.empty()) fail("cannot scale the target: there are no values");
  double sum = 0;
  for (const float value : y.values) sum += std::fabs(value);
  return sum > 0 ? sum / static_cast<double>(y.values.size()) : 1.0;
}

Array divide(Array array, double scale) {
  for (float& value : array.values) value = static_cast<float>(value / scale);
  return array;
}

}  // namespace fcp
