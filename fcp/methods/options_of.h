// One of several structs of options, together with what all of them share: what ScoreOptions and
// CalibrationOptions are. Each struct has its name, `kName`, and in-class defaults.
//
// Code that treats several of them alike asks for a field: `score.find(field::floor)` points to the
// member `floor` of the options that have one, and is null for all others. A field of one name
// means the same wherever it is.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "fcp/base/error.h"

namespace fcp {

// A field by its path from the struct, `floor` or `bound.method`.
#define FCP_FIELD(path) [](auto& options) -> decltype(&options.path) { return &options.path; }

template <typename Own, typename Variant>
inline constexpr bool kIsOneOf = false;
template <typename Own, typename... Options>
inline constexpr bool kIsOneOf<Own, std::variant<Options...>> = (std::same_as<Own, Options> || ...);

// Calls visit(options), with their defaults, for every type of the variant.
template <typename Visit, typename... Options>
void for_each_options(std::type_identity<std::variant<Options...>>, const Visit& visit) {
  (visit(Options{}), ...);
}

// The options of that name, with their defaults.
template <typename Variant>
std::optional<Variant> named_options(const std::string& name) {
  std::optional<Variant> found;
  for_each_options(std::type_identity<Variant>{}, [&]<typename Options>(const Options& options) {
    if (options.kName == name) found.emplace(std::in_place_type<Options>);
  });
  return found;
}

// The names of the types whose traits are wanted, in the order of the variant.
template <typename Variant, typename Wanted>
std::vector<std::string> names_with_traits(const Wanted& wanted) {
  std::vector<std::string> names;
  for_each_options(std::type_identity<Variant>{}, [&](const auto& options) {
    if (wanted(traits_of(options))) names.emplace_back(options.kName);
  });
  return names;
}

// The type of a field: that of the first struct that has it.
template <typename Field, typename First, typename... Rest>
constexpr auto field_type(std::type_identity<std::variant<First, Rest...>>) {
  if constexpr (std::is_invocable_v<Field, First&>) {
    return std::type_identity<std::remove_pointer_t<std::invoke_result_t<Field, First&>>>{};
  } else {
    return field_type<Field>(std::type_identity<std::variant<Rest...>>{});
  }
}

template <typename Shared, typename Variant>
struct OptionsOf : Shared {
  using Own = Variant;
  Variant own{};

  std::string name() const {
    return std::visit([](const auto& options) -> std::string { return options.kName; }, own);
  }

  // What is known of the type, whatever the options.
  auto traits() const {
    return std::visit([](const auto& options) { return traits_of(options); }, own);
  }

  // The own options, where they are of that type.
  template <typename Options>
  const Options* as() const {
    return std::get_if<Options>(&own);
  }
  template <typename Options>
  Options* as() {
    return std::get_if<Options>(&own);
  }

  template <typename Field>
  auto find(Field field) {
    if constexpr (std::is_invocable_v<Field, Shared&>) {
      return field(static_cast<Shared&>(*this));
    } else {
      using Type = typename decltype(field_type<Field>(std::type_identity<Variant>{}))::type;
      return std::visit(
          [&](auto& options) -> Type* {
            if constexpr (std::is_invocable_v<Field, decltype(options)>) return field(options);
            return nullptr;
          },
          own);
    }
  }
  template <typename Field>
  auto find(Field field) const {
    auto* found = const_cast<OptionsOf*>(this)->find(field);
    return static_cast<const std::remove_pointer_t<decltype(found)>*>(found);
  }

  // The field's value, or that of nothing: 0, false, an empty text or list.
  template <typename Field>
  auto value(Field field) const {
    const auto* found = find(field);
    using Type = std::remove_cvref_t<decltype(*found)>;
    return found == nullptr ? Type{} : *found;
  }

  // An Error where there is no such field.
  template <typename Field, typename Value>
  void set(Field field, Value&& value) {
    auto* const found = find(field);
    if (found == nullptr) fail(name(), " has no such option");
    *found = std::forward<Value>(value);
  }

  bool operator==(const OptionsOf&) const = default;
};

}  // namespace fcp
