// Tables and figures that several experiments on data sets share, from rows with `set`, `method`,
// `coverage`, `length` and, where a score has one, `detection_coverage`.
#pragma once

#include <string>
#include <vector>

#include "fcp/level.h"

#include "apps/experiments/experiment.h"
#include "apps/report/results.h"

namespace fcp {

// A line for each set and method: detection, interval coverage, worst third, length, what failed.
ResultTable coverage_table(const Json& rows);

// Mean length of each method divided by that of `base`, by set.
Figure relative_length_figure(const Json& rows, const std::string& base,
                              const std::vector<std::string>& methods);

// Interval coverage of each method by set, with its target.
Figure coverage_figure(const Json& rows, const std::vector<std::string>& methods,
                       const Level& level);

}  // namespace fcp
