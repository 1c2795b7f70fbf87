#include "fcp/methods/method.h"

#include <algorithm>
#include <optional>
#include <ostream>

#include "fcp/base/error.h"
#include "fcp/methods/options.h"
#include "fcp/methods/scores/support.h"

namespace fcp {

std::ostream& operator<<(std::ostream& out, const Method& method) {
  const auto changes = [&](bool of_calibration) {
    for (const Option& option : option_table()) {
      if (option.of_calibration != of_calibration || !option.get) continue;
      const OptionValue value = value_in(option, method);
      const bool name = option.name == "score" || option.name == "calibration";
      if (!name && value != option.usual) out << ' ' << option.name << '=' << option_text(value);
    }
  };
  out << method.score.name();
  changes(false);
  out << ", " << method.calibration.name();
  changes(true);
  return out;
}

// Which options a request looks at, and which contradict each other.

namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string paper_text(const MethodRequest& request) {
  return request.score + (request.flag("paper") ? " with paper" : " without paper");
}

bool has_score(const OptionScope& scope, const MethodRequest& request) {
  return contains(scope.scores, request.score) || contains(scope.scores, paper_text(request));
}

// The score as the scope would name it.
std::string found_score(const OptionScope& scope, const MethodRequest& request) {
  for (const std::string& name : scope.scores) {
    if (name.starts_with(request.score + " ")) return paper_text(request);
  }
  return request.score;
}

// What keeps anything from looking at the option.
enum class Obstacle { kNone, kScore, kCalibration, kBound };

Obstacle obstacle_of(const Option& option, const MethodRequest& request) {
  const OptionScope& scope = option.scope;
  if (!contains(scope.calibrations, request.calibration)) {
    if (!scope.scores.empty() && !has_score(scope, request)) return Obstacle::kScore;
    if (scope.scores.empty() && !scope.calibrations.empty()) return Obstacle::kCalibration;
  }
  const bool bounded = scope.bounds.empty() || contains(scope.bounds, request.text("bound"));
  return bounded ? Obstacle::kNone : Obstacle::kBound;
}

// "applies only to …; the score is …", where nothing looks at the option.
std::optional<std::string> refusal(const Option& option, const MethodRequest& request) {
  const OptionScope& scope = option.scope;
  const auto only = [](const std::string& to, const char* what, const std::string& found) {
    return concat("applies only to ", to, "; the ", what, " is ", found);
  };
  switch (obstacle_of(option, request)) {
    case Obstacle::kScore:
      return only(scope_text(scope), "score", found_score(scope, request));
    case Obstacle::kCalibration:
      return only(scope_text(scope), "calibration", request.calibration);
    case Obstacle::kBound:
      return only("the bound " + scope.bounds[0], "bound", request.text("bound"));
    case Obstacle::kNone:
      break;
  }
  return std::nullopt;
}

void check_cut(const MethodRequest& request) {
  if (!std::holds_alternative<AutoCut>(request.cut)) return;
  const ScoreOptions score = resolve(request).score;
  if (score.as<AutoOptions>() != nullptr) return;  // it tries every cut anyway
  if (score.traits().labels) {
    fail_option("cut", "'auto' compares lengths of intervals; ", score.name(),
                " is a score of labels");
  }
  if (score.searches()) {
    fail_option("cut",
                "'auto' compares lengths at equal coverage, which a surrogate search does not "
                "promise");
  }
  if (!score.traits().uses_features) {
    fail_option("cut", "'auto' applies only to scores of features; the score is ", score.name());
  }
}

void check_group(const MethodRequest& request) {
  const Method method = resolve(request);
  const auto* grouped = method.calibration.as<GroupedOptions>();
  if (grouped == nullptr) return;
  if (grouped->group.empty()) fail_option("group", "is needed by the calibration grouped");
  // Whether a score that is still to be chosen is one of labels turns out later.
  if (grouped->by_column() || method.score.as<AutoOptions>() != nullptr) return;
  if (!method.score.traits().labels) {
    fail_option("group", "'", grouped->group, "' applies only to scores of labels; the score is ",
                method.score.name());
  }
}

void check_ends(const MethodRequest& request) {
  const Method method = resolve(request);
  parse_support(method.score.support, method.score.integer);
  if (method.score.side == BoundSide::kBoth) return;
  if (method.score.value(field::asymmetric)) {
    fail_option("side", "one bound has no second side with a radius of its own; leave out ",
                "asymmetric");
  }
  if (method.score.value(field::level_set)) {
    fail_option("side", "a union of intervals has no one end; leave out union");
  }
  if (method.score.pixels > 0) fail_option("side", "does not apply to images");
}

void check_joint(const MethodRequest& request) {
  const std::string joint = request.text("joint");
  const bool open = request.score == kAutoScore;
  const bool ellipsoid = request.score == EllipsoidOptions::kName || joint == kJointVolume;
  if (joint == kJointVolume && !open && request.score != EllipsoidOptions::kName) {
    fail_option("joint", "volume is the score ellipsoid; the score is ", request.score);
  }
  if (joint == kJointAuto && !open) {
    fail_option("joint", "auto chooses the score; the score is ", request.score);
  }
  if (joint == kJointEach && ellipsoid) {
    fail_option("joint", "an ellipsoid is of all targets at once; take volume");
  }
  if (joint == kJointEach && resolve(request).score.value(field::level_set)) {
    fail_option("joint", "each gives one interval for each target; leave out union");
  }
  const bool two_sided = request.text("side") == side_name(BoundSide::kBoth);
  if ((ellipsoid || joint == kJointAuto) && !two_sided) {
    fail_option("side", "an ellipsoid has no one end; take joint all or each");
  }
}

}  // namespace

bool applies(const Option& option, const MethodRequest& request) {
  return obstacle_of(option, request) == Obstacle::kNone;
}

OpenValues open_values(const MethodRequest& request) {
  const auto open = [&](const char* name) {
    return request.is_auto(name) && applies(find_option(name), request);
  };
  return {.steps = open("steps"),
          .temperature = open("temperature"),
          .rank_term = open("rank_weight"),
          .bandwidth = open("bandwidth"),
          .cut = request.is_auto("cut")};
}

void check_options(const MethodRequest& request) {
  for (const Option& option : option_table()) {
    const OptionValue value = request.value(option.name);
    if (value == default_value(option)) continue;
    check_value(option, value);
    const bool harmless = option.harmless && value == OptionValue(*option.harmless);
    if (harmless) continue;
    if (const auto complaint = refusal(option, request)) fail_option(option.name, *complaint);
  }
  if (request.is_auto("rank_weight") && request.whole("rank_free") > 0) {
    fail_option("rank_free", "is chosen together with rank_weight; give both or neither");
  }
  const bool crossed = score_traits(request.score).made_by_fit;
  if (crossed || resolve(request).calibration.traits().made_by_fit) {
    fail_option(
        crossed ? "score" : "calibration",
        "cross calibrates a network by the rows that train it, as fcp fit does; take the score ",
        "auto for rows of their own");
  }
  check_cut(request);
  check_group(request);
  check_ends(request);
  check_joint(request);
}

}  // namespace fcp
