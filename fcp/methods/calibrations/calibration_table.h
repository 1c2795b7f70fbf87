// All calibrations: the one list of their options' types, what is known of each, and the
// calibration of a list of scores. A new calibration is a type in AnyCalibration and a row of the
// table in the table below, beside its own file pair and its test.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "fcp/methods/calibrations/calibration.h"
#include "fcp/methods/calibrations/grouped.h"
#include "fcp/methods/calibrations/localized.h"
#include "fcp/methods/calibrations/weighted.h"
#include "fcp/methods/option.h"

namespace fcp {

struct SplitOptions {
  static constexpr char kName[] = "split";
  bool operator==(const SplitOptions&) const = default;
};
std::unique_ptr<Calibration> make_calibration(const SplitOptions& options,
                                              const SharedCalibrationOptions& shared,
                                              const CalibrationScores& rows, int64_t classes);

// Of the scores of cross-fitting (fcp/methods/scores/cross.h).
struct CrossFoldOptions {
  static constexpr char kName[] = "cross";
  size_t folds = 0;  // of equal size
  bool operator==(const CrossFoldOptions&) const = default;
};
std::unique_ptr<Calibration> make_calibration(const CrossFoldOptions& options,
                                              const SharedCalibrationOptions& shared,
                                              const CalibrationScores& rows, int64_t classes);

using AnyCalibration =
    std::variant<SplitOptions, GroupedOptions, LocalizedOptions, WeightedOptions, CrossFoldOptions>;

// What is known of a calibration, whatever its options.
struct CalibrationTraits {
  bool one_radius = false;   // for all rows, of the sorted scores: a few levels can be kept alone
  bool by_group = false;     // asks for the group of each row
  bool by_weight = false;    // asks for the likelihood ratio of each row
  bool by_feature = false;   // keeps the features of its rows, and asks for which row a row is
  bool made_by_fit = false;  // comes with its network and cannot be asked of another one
};

// The table: a row for each calibration.
constexpr CalibrationTraits traits_of(const SplitOptions&) { return {.one_radius = true}; }
constexpr CalibrationTraits traits_of(const GroupedOptions&) { return {.by_group = true}; }
constexpr CalibrationTraits traits_of(const LocalizedOptions&) { return {.by_feature = true}; }
constexpr CalibrationTraits traits_of(const WeightedOptions&) { return {.by_weight = true}; }
constexpr CalibrationTraits traits_of(const CrossFoldOptions&) { return {.made_by_fit = true}; }

namespace field {
inline constexpr auto group = FCP_FIELD(group);
inline constexpr auto bandwidth = FCP_FIELD(bandwidth);
inline constexpr auto folds = FCP_FIELD(folds);
}  // namespace field

// Which calibration, and its options.
struct CalibrationOptions : OptionsOf<SharedCalibrationOptions, AnyCalibration> {
  CalibrationOptions() = default;
  template <typename Options>
  requires kIsOneOf<Options, AnyCalibration> CalibrationOptions(
      Options options, SharedCalibrationOptions shared = {})
      : OptionsOf{shared, AnyCalibration(std::in_place_type<Options>, std::move(options))} {}
  // With its defaults; an Error where there is no calibration of that name.
  explicit CalibrationOptions(const std::string& calibration, SharedCalibrationOptions shared = {});

  // Whether groups are told by a column; and by which one, "" where none has to.
  bool by_column() const;
  std::string group_column() const { return by_column() ? value(field::group) : ""; }

  bool operator==(const CalibrationOptions&) const = default;
};

// An Error where there is no calibration of that name.
inline CalibrationTraits calibration_traits(const std::string& calibration) {
  return CalibrationOptions(calibration).traits();
}

// The names of the calibrations that can be asked for.
std::vector<std::string> calibration_names();

// `rows` holds what the kind needs; an Error says what is missing. For groups that are labels,
// `classes` is their number.
std::unique_ptr<Calibration> make_calibration(const CalibrationOptions& options,
                                              const CalibrationScores& rows, int64_t classes = 0);

}  // namespace fcp
