// Mondrian calibration: one radius per group, so that P(y ∈ region | group) ≥ 1 − α in each of
// them.
//
// A group that has fewer rows than the level needs, or none, gets an infinite radius: nothing
// smaller keeps the promise. Groups may be told by a column, by the label the network answers, or
// by the label itself: then every label k is held against the radius of its own class, and coverage
// holds class by class.
//
// Reference: Vovk, Conditional Validity of Inductive Conformal Predictors, 2012.
// Tested by tests/methods/calibrations/calibration_test.cc.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fcp/methods/calibrations/calibration.h"

namespace fcp {

inline constexpr char kByPrediction[] = "predicted";  // group: the label that the network answers
inline constexpr char kByLabel[] = "label";           // group: the label itself, class by class

struct GroupedOptions {
  static constexpr char kName[] = "grouped";

  std::string group{};  // what tells the group: a column, or one of the two above

  // Whether a column tells the group, which then comes with the rows.
  bool by_column() const { return group != kByPrediction && group != kByLabel; }

  static std::vector<Option> rows();
  bool operator==(const GroupedOptions&) const = default;
};

std::unique_ptr<Calibration> make_calibration(const GroupedOptions& options,
                                              const SharedCalibrationOptions& shared,
                                              const CalibrationScores& rows, int64_t classes);

// A line that names the groups whose radius is infinite at this level, how many rows they have and
// how many they need; at most `most` by name. Nothing where there is none.
std::optional<std::string> small_groups_warning(const CalibrationScores& rows, bool paper,
                                                const Level& level, size_t most = 5);

}  // namespace fcp
