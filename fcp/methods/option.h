// The option table: every option of a score and of a calibration, once. From it come the flags of
// the program, the settings of the artifact, Python's parameters, the manual page, and the check
// that no option is given that nothing looks at. A new option is one entry in options.cc, and its
// use.
//
// Tested by tests/calibration/options_test.cc; tests/python/test_options.py holds the program and
// Python against it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "fcp/calibration/method_request.h"

namespace fcp {

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
};

struct Option {
  std::string name;  // in C++, Python and errors; the program's flag has dashes for underscores
  OptionScope scope{};
  std::string help{};
  double least = 0;                  // of numbers
  double most = 0;                   // of numbers; infinite: any
  bool above = false;                // the least value is itself too small
  bool may_be_auto = false;          // AutoValue is allowed
  std::optional<double> harmless{};  // a value that is not refused where nothing looks at it
  std::vector<std::string> choices{};
  std::vector<std::string> only_made{};  // more choices, of files that fcp fit makes; not offered
  OptionAccess access = OptionAccess::kAsked;
  OptionStorage storage = OptionStorage::kAlways;
  std::string key{};            // in the artifact; empty: the name
  bool of_calibration = false;  // kept among the calibration's settings

  // By the field that the option is; a new entry need not say them.
  OptionKind kind = OptionKind::kText;
  OptionValue (*get)(const MethodRequest&) = nullptr;
  void (*put)(MethodRequest&, const OptionValue&) = nullptr;  // of the kind; not checked

  const std::string& json_key() const { return key.empty() ? name : key; }
};

// All options, in the order of the artifact.
const std::vector<Option>& option_table();

// An OptionError names an option that is not there.
const Option& find_option(const std::string& name);

OptionValue default_value(const Option& option);

// An OptionError says what was found where that is not of the option's kind or out of its range. A
// whole number will do for a number.
void check_value(const Option& option, const OptionValue& value);

// Puts a value, checked.
void set_option(MethodRequest& request, const Option& option, const OptionValue& value);

// The value of a text, as on the command line; an OptionError where it is not one.
OptionValue parse_option(const Option& option, const std::string& text);

// "auto", "0.01", "1,2", "true".
std::string option_text(const OptionValue& value);

// "a number of at least 0", "'auto' or a whole number from 1 to 2147483647", …; once the options
// are resolved, as in a file, nothing is 'auto', and what fcp fit alone makes is among the choices.
std::string expected_value(const Option& option, bool resolved = false);

// "nested, linearized and feature_cqr without paper"; empty: everything.
std::string scope_text(const OptionScope& scope);

// Whether anything that is asked for looks at the option.
bool applies(const Option& option, const MethodRequest& request);

// An OptionError for a value that does not fit, for an option that differs from its default
// although nothing looks at it, and for options that contradict each other.
void check_options(const MethodRequest& request);

// What is left open and looked at, so that a slice of the rows has to choose it.
struct OpenValues {
  bool steps = false;
  bool temperature = false;
  bool rank_term = false;  // rank_weight and rank_free
  bool bandwidth = false;
  bool cut = false;
};
OpenValues open_values(const MethodRequest& request);

// The method of an artifact as a request that leaves nothing open.
MethodRequest resolved_request(const ScoreOptions& score, const CalibrationOptions& calibration,
                               const std::string& cut);

}  // namespace fcp
