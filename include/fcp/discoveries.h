// Which of many p-values are discoveries, with how many false ones among them.
//
// The rule of Benjamini and Hochberg: of m p-values the k smallest are taken, k the largest number
// with p_(k) ≤ q k / m. The false discovery rate, the mean share of false ones among those taken
// (0 where none is), is then at most q · m₀ / m, m₀ being how many of the rows are not outliers.
// That holds for independent p-values and for conformal ones, which share their calibration rows:
// these depend on each other positively (PRDS). Weighted conformal p-values and those of localized
// calibration need not: for p-values of any dependence q is divided by 1 + 1/2 + … + 1/m, the rule
// of Benjamini and Yekutieli, which finds less.
//
// Cost: O(m log m). Reference: Benjamini, Hochberg, Controlling the false discovery rate, 1995;
// Benjamini, Yekutieli, The control of the false discovery rate in multiple testing under
// dependency, 2001; Bates, Candès, Lei, Romano, Sesia, Testing for outliers with conformal
// p-values, 2023, theorem 2; Jin, Candès, Model-free selective inference under covariate shift via
// weighted conformal p-values, 2023, on weights.
// Tested by tests/conformal/p_value_test.cc.
#pragma once

#include <span>
#include <vector>

#include "fcp/level.h"

namespace fcp {

enum class Dependence { kPositive, kAny };

// Whether each is a discovery at the rate q. p-values are in [0, 1]; others are an Error.
std::vector<bool> discoveries(std::span<const double> p_values, const Level& rate,
                              Dependence dependence = Dependence::kPositive);

}  // namespace fcp
