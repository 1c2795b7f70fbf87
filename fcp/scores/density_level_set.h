// `density` with --union: all y where the learned density of the residual is high enough, possibly
// several intervals for a row (Regions::parts).
//
//   score(v, y) = the length of the shortest gap between neighbouring quantiles that holds y, over
//                 scale_k; at the distance x beyond the outermost quantile s (1 + x/s)², with s as
//                 in density.h
//
// Gaps have equal mass, so this is one over the density, up to a factor: one threshold for all rows
// gives the least mean length if the learned density is right. Gaps that touch are one interval.
// Several outputs are compared in units of the option `scale`, which holds one number for each.
// The score is the least radius whose union holds y: the law is exact. Cost: O(Q) per row.
// Reference: CTI, conformal thresholded intervals (Luo and Zhou, 2024); here of the residual.
// Tested by tests/scores/law_test.cc, coverage_test.cc and density_test.cc.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "fcp/conformal/interval.h"
#include "fcp/scores/score.h"

namespace fcp {

// The intervals of one row and output, ascending and apart from each other.
std::vector<Interval> density_level_set(double center, std::span<const double> quantiles,
                                        double longest_gap);

std::unique_ptr<Score> make_density_level_set(const ScoreOptions& options,
                                              std::shared_ptr<const Network> head);

}  // namespace fcp
