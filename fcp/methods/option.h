// One row of the option table (options.h), and the values that an option can have.
//
// Tested by tests/methods/options_test.cc.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "fcp/base/error.h"

namespace fcp {

struct Method;

enum class OptionKind { kFlag, kInteger, kNumber, kChoice, kText, kNumbers };

struct AutoValue {  // to be chosen on a slice of the rows
  bool operator==(const AutoValue&) const = default;
};
// bool, uint64_t, double, text (of choices too) and a list of numbers, by kind.
using OptionValue =
    std::variant<AutoValue, bool, uint64_t, double, std::string, std::vector<double>>;

// What has to be asked for so that an option is looked at. Empty lists: anything.
struct OptionScope {
  std::vector<std::string> scores{};        // a name, or "NAME with paper", or "NAME without paper"
  std::vector<std::string> calibrations{};  // beside scores: one of both is enough
  std::vector<std::string> bounds{};        // needed besides
};

// Where an option can be given.
enum class OptionAccess {
  kAsked,    // in all interfaces
  kImages,   // of images alone: `fcp segment`
  kSeed,     // a flag of every verb
  kLearned,  // nowhere: found or fixed by fcp, and kept in the artifact
};

// How the artifact keeps an option.
enum class OptionStorage {
  kNone,
  kAlways,
  kSince,  // always, but older files do not have it: the default
  kSet,    // where it differs from the default
  kOwn,    // where the method has it; older files do not: `earlier`
};

struct Option {
  std::string name;     // in C++, Python and errors; the program's flag has dashes for underscores
  OptionScope scope{};  // by default the scores or calibrations that have the field
  std::string help{};
  double least = 0;                  // of numbers
  double most = 0;                   // of numbers; infinite: any
  bool above = false;                // the least value is itself too small
  bool may_be_auto = false;          // AutoValue is allowed
  bool auto_by_default = false;      // and what is asked for where nothing is said
  std::optional<double> harmless{};  // a value that is not refused where nothing looks at it
  std::vector<std::string> choices{};
  std::vector<std::string> only_made{};  // more choices, of files that fcp fit makes; not offered
  OptionAccess access = OptionAccess::kAsked;
  OptionStorage storage = OptionStorage::kAlways;
  OptionValue earlier{};        // of files from before the option (kOwn)
  std::string key{};            // in the artifact; empty: the name
  std::string after{};          // the option behind which files have it; empty: the end so far
  bool of_calibration = false;  // kept among the calibration's settings

  // By the field that the option is (method.h); a row need not say them.
  OptionKind kind = OptionKind::kText;
  OptionValue usual{std::string()};  // of a method that says nothing
  // Nothing where the method's score or calibration has no such field.
  std::function<std::optional<OptionValue>(const Method&)> get{};
  // Not checked; without effect where there is no such field.
  std::function<void(Method&, const OptionValue&)> put{};

  const std::string& json_key() const { return key.empty() ? name : key; }
};

// What is asked for where nothing is said.
OptionValue default_value(const Option& option);

// The value of a method, or the usual one.
OptionValue value_in(const Option& option, const Method& method);

// An OptionError says what was found where that is not of the option's kind or out of its range. A
// whole number will do for a number.
void check_value(const Option& option, const OptionValue& value);

// The value of a text, as on the command line; an OptionError where it is not one.
OptionValue parse_option(const Option& option, const std::string& text);

// "auto", "0.01", "1,2", "true".
std::string option_text(const OptionValue& value);

// "a number of at least 0", "'auto' or a whole number from 1 to 2147483647", …; once the options
// are resolved, as in a file, nothing is 'auto', and what fcp fit alone makes is among the choices.
std::string expected_value(const Option& option, bool resolved = false);

// "nested, linearized and feature_cqr without paper"; empty: everything.
std::string scope_text(const OptionScope& scope);

// One of several structs of options, together with what all of them share: what ScoreOptions and
// CalibrationOptions are. Each struct has its name, `kName`, and in-class defaults.
//
// Code that treats several of them alike asks for a field: `score.find(field::floor)` points to the
// member `floor` of the options that have one, and is null for all others. A field of one name
// means the same wherever it is.

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
