// What a caller asks of a calibration, and the option table: every option of a score and of a
// calibration, once. From the table come the flags of the program, the settings of the artifact,
// Python's parameters, the manual page, and the check that no option is given that nothing looks
// at. An option of one score is a row beside that score (`rows()` of its options), an option that
// several have in common a row in options.cc.
//
// Tested by tests/methods/options_test.cc; tests/python/test_options.py holds the program and
// Python against it.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "fcp/methods/method.h"
#include "fcp/methods/option.h"

namespace fcp {

struct DefaultCut {  // two layers before the output
  bool operator==(const DefaultCut&) const = default;
};
struct AutoCut {  // the cut whose intervals are shortest on the slice, and its floor
  bool operator==(const AutoCut&) const = default;
};
// The name of a tensor or a node, or a number of layers as text: cut.h.
using CutRequest = std::variant<DefaultCut, AutoCut, std::string>;

// What is promised of several outputs: all at once by one radius, each by its own, all at once in
// an ellipsoid, or the smaller region for all at once.
inline constexpr char kJointAll[] = "all";
inline constexpr char kJointEach[] = "each";
inline constexpr char kJointVolume[] = "volume";
inline constexpr char kJointAuto[] = "auto";

inline constexpr char kByIntervalScore[] = "interval-score";
inline constexpr char kByLength[] = "length";

// As probabilities of labels (fcp/conformal/venn_abers.h).
inline constexpr char kVennAbers[] = "venn-abers";

// As a calibration: split, of a score that a learned quantile of itself evens out (rectified.h).
inline constexpr char kRectified[] = "rectified";

struct MethodRequest {
  std::string score = kAutoScore;
  std::string calibration = SplitOptions::kName;
  CutRequest cut{};
  std::map<std::string, OptionValue> values{};  // of the other options; left out: the default
  std::vector<double> scale{};                  // of the cut that is kept, where the score has one
  size_t memory = 0;                            // of bounds: BoundOptions

  // By the name of an option. Those of a type fail where the value is of another, or left open.
  OptionValue value(const std::string& option) const;
  double number(const std::string& option) const;
  uint64_t whole(const std::string& option) const { return std::get<uint64_t>(value(option)); }
  bool flag(const std::string& option) const { return std::get<bool>(value(option)); }
  std::string text(const std::string& option) const { return option_text(value(option)); }
  bool is_auto(const std::string& option) const {
    return std::holds_alternative<AutoValue>(value(option));
  }

  // Not checked.
  void put(const std::string& option, const OptionValue& value);
  void set(const std::string& option, std::integral auto value) {
    put(option, static_cast<uint64_t>(value));
  }
  void set(const std::string& option, bool value) { put(option, value); }
  void set(const std::string& option, double value) { put(option, value); }
  void set(const std::string& option, const std::string& value) { put(option, value); }
  void set(const std::string& option, const char* value) { put(option, std::string(value)); }
  void set(const std::string& option, const std::vector<double>& value) { put(option, value); }

  bool operator==(const MethodRequest&) const = default;
};

// All options, in the order of the artifact.
const std::vector<Option>& option_table();

// An OptionError names an option that is not there.
const Option& find_option(const std::string& name);

// Puts a value, checked.
void set_option(MethodRequest& request, const Option& option, const OptionValue& value);

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

// The method with the values that are given; open ones keep their defaults. The score may be
// `auto`; the calibration `rectified` is split. The calibration shares seed and paper with the
// score.
Method resolve(const MethodRequest& request);

// A method as a request that leaves nothing open.
MethodRequest request_of(const Method& method);

// The score of another name with all the options that both have.
ScoreOptions as_score(const ScoreOptions& score, const std::string& name);

// The plain score beside which this one is shown, with one side and not rectified; nothing of a
// plain one, and of outputs with a radius each.
std::optional<ScoreOptions> baseline_of(const ScoreOptions& score);

}  // namespace fcp
