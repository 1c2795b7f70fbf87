// A method: everything that decides which interval or set a calibrated network gives, but for the
// calibration rows. It is what an artifact stores and what is passed around once all options are
// given or chosen.
//
//   Method method{.score = NestedOptions{.norm = Norm::kTwo}, .cut = "hidden"};
//   method.calibration = GroupedOptions{.group = "city"};
//
// options.h has what a caller asks for, which may leave values open.
#pragma once

#include <iosfwd>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "fcp/methods/calibrations/calibration_table.h"
#include "fcp/methods/option.h"
#include "fcp/methods/scores/score_table.h"

namespace fcp {

struct Method {
  ScoreOptions score{};
  CalibrationOptions calibration{};
  std::string cut{};  // tensor that is the feature; empty: the network's input

  bool operator==(const Method&) const = default;
};

// "nested norm=2 cut=hidden, grouped group=city": what differs from the defaults.
std::ostream& operator<<(std::ostream& out, const Method& method);

// Rows of the option table made of fields: the kind, the default, the reading and writing of an
// option, and the scores that look at it, all follow from the field that it is.

inline constexpr double kAnyNumber = std::numeric_limits<double>::infinity();  // as `most`
inline constexpr double kMostInt = std::numeric_limits<int>::max();

template <typename Field>
OptionValue value_of(const Field& field) {
  if constexpr (std::is_integral_v<Field> && !std::is_same_v<Field, bool>) {
    return static_cast<uint64_t>(field);
  } else {
    return field;
  }
}
inline OptionValue value_of(const Norm& norm) { return norm_name(norm); }
inline OptionValue value_of(const BoundMethod& method) { return bound_name(method); }
inline OptionValue value_of(const BoundSide& side) { return side_name(side); }

template <typename Field>
void put_value(const OptionValue& value, Field& field) {
  if constexpr (std::is_integral_v<Field> && !std::is_same_v<Field, bool>) {
    field = static_cast<Field>(std::get<uint64_t>(value));
  } else if constexpr (std::is_same_v<Field, double>) {
    const auto* whole = std::get_if<uint64_t>(&value);
    field = whole == nullptr ? std::get<double>(value) : static_cast<double>(*whole);
  } else {
    field = std::get<Field>(value);
  }
}
inline void put_value(const OptionValue& value, Norm& norm) {
  norm = parse_norm(std::get<std::string>(value));
}
inline void put_value(const OptionValue& value, BoundMethod& method) {
  method = parse_bound(std::get<std::string>(value));
}
inline void put_value(const OptionValue& value, BoundSide& side) {
  side = parse_side(std::get<std::string>(value));
}

template <typename Field>
constexpr OptionKind kind_of() {
  if constexpr (std::is_same_v<Field, bool>) return OptionKind::kFlag;
  if constexpr (std::is_integral_v<Field>) return OptionKind::kInteger;
  if constexpr (std::is_same_v<Field, double>) return OptionKind::kNumber;
  if constexpr (std::is_same_v<Field, std::vector<double>>) return OptionKind::kNumbers;
  return OptionKind::kText;
}

// The names of the structs that have the field; behind them those of which one form alone has it.
template <typename Variant, typename Field>
std::vector<std::string> names_with(Field, const std::string& option) {
  std::vector<std::string> whole, forms;
  for_each_options(std::type_identity<Variant>{}, [&](auto options) {
    if constexpr (std::is_invocable_v<Field, decltype(options)&>) {
      std::string form;
      if constexpr (requires { options.form_of(option); }) form = options.form_of(option);
      (form.empty() ? whole : forms).push_back(options.kName + form);
    }
  });
  whole.insert(whole.end(), forms.begin(), forms.end());
  return whole;
}

// The default of the first struct that has the field, or of what all share.
template <typename Options, typename Field>
OptionValue usual_value(Field field) {
  Options all;
  std::optional<OptionValue> usual;
  if constexpr (std::is_invocable_v<Field, Options&>) {
    usual = value_of(*field(all));
  } else {
    for_each_options(std::type_identity<typename Options::Own>{}, [&](auto options) {
      if constexpr (std::is_invocable_v<Field, decltype(options)&>) {
        if (!usual) usual = value_of(*field(options));
      }
    });
  }
  return *usual;
}

// The option that is a field of the part `part` of a method: its score or its calibration.
template <typename Field, typename Options>
Option typed_option(Options Method::*part, Field field, Option option) {
  using Type = std::remove_pointer_t<decltype(std::declval<Options&>().find(field))>;
  option.kind = option.choices.empty() ? kind_of<Type>() : OptionKind::kChoice;
  option.usual = usual_value<Options>(field);
  option.get = [part, field](const Method& method) -> std::optional<OptionValue> {
    const auto* found = (method.*part).find(field);
    if (found == nullptr) return std::nullopt;
    return value_of(*found);
  };
  option.put = [part, field](Method& method, const OptionValue& value) {
    if (auto* found = (method.*part).find(field)) put_value(value, *found);
  };
  return option;
}

template <typename Field>
Option score_option(Field field, Option option) {
  if constexpr (!std::is_invocable_v<Field, ScoreOptions&>) {
    if (option.access != OptionAccess::kLearned) {
      option.scope.scores = names_with<AnyScore>(field, option.name);
    }
  }
  return typed_option(&Method::score, field, std::move(option));
}

template <typename Field>
Option calibration_option(Field field, Option option) {
  option.of_calibration = true;
  if constexpr (!std::is_invocable_v<Field, CalibrationOptions&>) {
    if (option.access != OptionAccess::kLearned) {
      option.scope.calibrations = names_with<AnyCalibration>(field, option.name);
    }
  }
  return typed_option(&Method::calibration, field, std::move(option));
}

}  // namespace fcp
