// One row of the option table (options.h), and the values that an option can have.
//
// Tested by tests/methods/options_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

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

  // By the field that the option is (typed_options.h); a row need not say them.
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

}  // namespace fcp
