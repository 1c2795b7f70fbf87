// Fields of MethodRequest as values of options, and back: what the entries of the table are made
// of.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "fcp/calibration/options.h"

namespace fcp {

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
inline OptionValue value_of(const CutRequest& cut) {
  if (std::holds_alternative<AutoCut>(cut)) return AutoValue{};
  const auto* named = std::get_if<std::string>(&cut);
  return named == nullptr ? std::string() : *named;
}
template <typename Field>
OptionValue value_of(const std::optional<Field>& field) {
  return field ? value_of(*field) : OptionValue(AutoValue{});
}

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
inline void put_value(const OptionValue& value, CutRequest& cut) {
  const auto* named = std::get_if<std::string>(&value);
  cut = DefaultCut{};
  if (named == nullptr) cut = AutoCut{};
  if (named != nullptr && !named->empty()) cut = *named;
}
template <typename Field>
void put_value(const OptionValue& value, std::optional<Field>& field) {
  field.reset();
  if (!std::holds_alternative<AutoValue>(value)) put_value(value, field.emplace());
}

template <typename Field>
constexpr OptionKind kind_of() {
  if constexpr (std::is_same_v<Field, bool>) return OptionKind::kFlag;
  if constexpr (std::is_integral_v<Field>) return OptionKind::kInteger;
  if constexpr (std::is_same_v<Field, double>) return OptionKind::kNumber;
  if constexpr (std::is_same_v<Field, std::optional<int>>) return OptionKind::kInteger;
  if constexpr (std::is_same_v<Field, std::optional<double>>) return OptionKind::kNumber;
  if constexpr (std::is_same_v<Field, std::vector<double>>) return OptionKind::kNumbers;
  return OptionKind::kText;
}

// The option that is the field at the end of a path of members.
template <auto... Path>
Option field(Option option) {
  using Field = std::decay_t<decltype((std::declval<MethodRequest&>().*....*Path))>;
  option.kind = option.choices.empty() ? kind_of<Field>() : OptionKind::kChoice;
  option.get = [](const MethodRequest& request) { return value_of((request.*....*Path)); };
  option.put = [](MethodRequest& request, const OptionValue& value) {
    put_value(value, (request.*....*Path));
  };
  return option;
}

}  // namespace fcp
