// Bringing data to unit scale as the paper does: x standardised by column, y divided by mean |y|.
// Fit on the training fold only; the calibration and test folds must not have been looked at.
//
// Tested by tests/data/scaling_test.cc.
#pragma once

#include <vector>

#include "fcp/data/array.h"

namespace fcp {

// x ↦ (x − mean) / deviation, column by column. The deviation is the population's (divided by N);
// a constant column has deviation 1.
struct Standardiser {
  std::vector<double> mean;
  std::vector<double> deviation;
};

Standardiser fit_standardiser(const Array& x);
Array standardise(const Standardiser& standardiser, Array x);

// Mean |y| over all rows and all outputs (one number, also where there are several outputs); 1
// where y is all zeros.
double target_scale(const Array& y);
Array divide(Array array, double scale);

}  // namespace fcp
