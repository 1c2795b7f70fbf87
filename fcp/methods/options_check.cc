// Which options a request looks at, and which contradict each other.
#include <optional>

#include "fcp/base/error.h"
#include "fcp/calibration/options.h"
#include "fcp/scores/cross_labels.h"

namespace fcp {
namespace {

using ScopeNames = std::vector<std::string>;

void add_name(ScopeNames& terms, const ScopeNames& names, const std::string& what) {
  for (const std::string& name : names) terms.push_back(what + name);
}

bool contains(const ScopeNames& names, const std::string& name) {
  for (const std::string& each : names) {
    if (each == name) return true;
  }
  return false;
}

std::string paper_text(const ScoreOptions& score) {
  return score.name + (score.paper ? " with paper" : " without paper");
}

bool has_score(const OptionScope& scope, const ScoreOptions& score) {
  return contains(scope.scores, score.name) || contains(scope.scores, paper_text(score));
}

// The score as the scope would name it.
std::string found_score(const OptionScope& scope, const ScoreOptions& score) {
  for (const std::string& name : scope.scores) {
    if (name.starts_with(score.name + " ")) return paper_text(score);
  }
  return score.name;
}

// What keeps anything from looking at the option.
enum class Obstacle { kNone, kScore, kCalibration, kBound };

Obstacle obstacle_of(const Option& option, const MethodRequest& request) {
  const OptionScope& scope = option.scope;
  if (!contains(scope.calibrations, request.calibration.name)) {
    if (!scope.scores.empty() && !has_score(scope, request.score)) return Obstacle::kScore;
    if (scope.scores.empty() && !scope.calibrations.empty()) return Obstacle::kCalibration;
  }
  const bool bounded =
      scope.bounds.empty() || contains(scope.bounds, bound_name(request.score.bound.method));
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
      return only(scope_text(scope), "score", found_score(scope, request.score));
    case Obstacle::kCalibration:
      return only(scope_text(scope), "calibration", request.calibration.name);
    case Obstacle::kBound:
      return only("the bound " + scope.bounds[0], "bound", bound_name(request.score.bound.method));
    case Obstacle::kNone:
      break;
  }
  return std::nullopt;
}

void check_cut(const MethodRequest& request) {
  if (!std::holds_alternative<AutoCut>(request.cut)) return;
  const ScoreOptions& score = request.score;
  if (score.name == kAutoScore) return;  // it tries every cut anyway
  if (predicts_labels(score.name)) {
    fail_option("cut", "'auto' compares lengths of intervals; ", score.name,
                " is a score of labels");
  }
  if (searches_surrogate(score)) {
    fail_option("cut",
                "'auto' compares lengths at equal coverage, which a surrogate search does not "
                "promise");
  }
  if (!uses_features(score.name)) {
    fail_option("cut", "'auto' applies only to scores of features; the score is ", score.name);
  }
}

void check_group(const MethodRequest& request) {
  const std::string& group = request.calibration.group;
  if (request.calibration.name != "grouped") return;
  if (group.empty()) fail_option("group", "is needed by the calibration grouped");
  if (request.score.name == kAutoScore) return;  // whether it is one of labels is found out later
  if ((group == kByPrediction || group == kByLabel) && !predicts_labels(request.score.name)) {
    fail_option("group", "'", group, "' applies only to scores of labels; the score is ",
                request.score.name);
  }
}

}  // namespace

std::string scope_text(const OptionScope& scope) {
  ScopeNames terms;
  add_name(terms, scope.scores, "");
  add_name(terms, scope.calibrations, "the calibration ");
  std::string text;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (i > 0) text += i + 1 == terms.size() ? " and " : ", ";
    text += terms[i];
  }
  return text;
}

bool applies(const Option& option, const MethodRequest& request) {
  return obstacle_of(option, request) == Obstacle::kNone;
}

OpenValues open_values(const MethodRequest& request) {
  const auto looked_at = [&](const char* name) { return applies(find_option(name), request); };
  return {.steps = !request.steps && looked_at("steps"),
          .temperature = !request.temperature && looked_at("temperature"),
          .rank_term = !request.rank_weight && looked_at("rank_weight"),
          .bandwidth = !request.bandwidth && looked_at("bandwidth"),
          .cut = std::holds_alternative<AutoCut>(request.cut)};
}

void check_options(const MethodRequest& request) {
  for (const Option& option : option_table()) {
    const OptionValue value = option.get(request);
    if (value == default_value(option)) continue;
    check_value(option, value);
    const bool harmless = option.harmless && value == OptionValue(*option.harmless);
    if (harmless) continue;
    if (const auto complaint = refusal(option, request)) fail_option(option.name, *complaint);
  }
  if (!request.rank_weight && request.score.rank_free > 0) {
    fail_option("rank_free", "is chosen together with rank_weight; give both or neither");
  }
  if (is_cross_score(request.score.name) || request.calibration.name == kCrossScore) {
    fail_option(
        is_cross_score(request.score.name) ? "score" : "calibration",
        "cross calibrates a network by the rows that train it, as fcp fit does; take the score ",
        "auto for rows of their own");
  }
  check_cut(request);
  check_group(request);
}

}  // namespace fcp
