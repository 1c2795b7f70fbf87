// Mondrian calibration: one radius per group, so that P(y ∈ region | group) ≥ 1 − α in each of
// them.
//
// A group that has fewer rows than the level needs, or none, gets an infinite radius: nothing
// smaller keeps the promise. Groups may be told by a column, by the label the network answers, or
// by the label itself: then every label k is held against the radius of its own class, and coverage
// holds class by class.
//
// Reference: Vovk, Conditional Validity of Inductive Conformal Predictors, 2012.
// Tested by tests/calibration/calibration_test.cc.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "fcp/calibration/calibration.h"

namespace fcp {

std::unique_ptr<Calibration> make_grouped(const CalibrationOptions& options,
                                          const CalibrationScores& rows, int64_t classes);

// A line that names the groups whose radius is infinite at this level, how many rows they have and
// how many they need; at most `most` by name. Nothing where there is none.
std::optional<std::string> small_groups_warning(const CalibrationOptions& options,
                                                const CalibrationScores& rows, const Level& level,
                                                size_t most = 5);

}  // namespace fcp
