#include "fcp/calibration/options.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/calibration/artifact_settings.h"

namespace fcp {
namespace {

using Json = nlohmann::ordered_json;

std::string complaint(const MethodRequest& request) {
  try {
    check_options(request);
  } catch (const OptionError& error) {
    return error.what();
  }
  return "";
}

// A value that is allowed and not the default.
OptionValue other_value(const Option& option) {
  const OptionValue usual = default_value(option);
  switch (option.kind) {
    case OptionKind::kFlag:
      return !std::get<bool>(usual);
    case OptionKind::kInteger:
      return uint64_t{7};
    case OptionKind::kNumber:
      return option.most < 10 ? option.most / 2 : 2.5;
    case OptionKind::kNumbers:
      return std::vector<double>{2, 0.5};
    case OptionKind::kChoice:
      if (!option.only_made.empty()) return option.only_made.back();
      return option.choices.back() == option_text(usual) ? option.choices[0]
                                                         : option.choices.back();
    case OptionKind::kText:
      break;
  }
  return std::string("other");
}

bool in_scope(const Option& option, const ScoreOptions& score) {
  const std::vector<std::string>& names = option.scope.scores;
  const std::string kin = score.name + (score.paper ? " with paper" : " without paper");
  return std::count(names.begin(), names.end(), score.name) +
             std::count(names.begin(), names.end(), kin) >
         0;
}

// All scores, and those that have them in the paper's form too.
std::vector<ScoreOptions> all_scores() {
  std::vector<ScoreOptions> scores;
  for (const std::string& name : score_names()) {
    scores.push_back({.name = name});
    ScoreOptions paper = scores.back();
    paper.paper = true;
    if (in_scope(find_option("paper"), paper)) scores.push_back(paper);
  }
  return scores;
}

TEST(Options, EveryEntryIsComplete) {
  std::set<std::string> names, keys;
  const std::vector<std::string>& scores = find_option("score").choices;
  const std::vector<std::string>& calibrations = find_option("calibration").choices;
  const std::vector<std::string>& bounds = find_option("bound").choices;
  for (const Option& option : option_table()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name << " is there twice";
    if (option.storage != OptionStorage::kNone) {
      const std::string key = option.json_key() + (option.of_calibration ? " calibration" : "");
      EXPECT_TRUE(keys.insert(key).second) << key << " is there twice";
    }
    EXPECT_EQ(option.help.empty(), option.access == OptionAccess::kLearned) << option.name;
    EXPECT_FALSE(option.help.ends_with('.')) << option.name;
    for (const std::string& name : option.scope.scores) {
      EXPECT_TRUE(std::count(scores.begin(), scores.end(), name.substr(0, name.find(' ')))) << name;
    }
    for (const std::string& name : option.scope.calibrations) {
      EXPECT_TRUE(std::count(calibrations.begin(), calibrations.end(), name)) << name;
    }
    for (const std::string& name : option.scope.bounds) {
      EXPECT_TRUE(std::count(bounds.begin(), bounds.end(), name)) << name;
    }
  }
  EXPECT_THROW(find_option("colour"), OptionError);
}

TEST(Options, DefaultsAndOtherValuesSurviveText) {
  for (const Option& option : option_table()) {
    EXPECT_EQ(parse_option(option, option_text(other_value(option))), other_value(option))
        << option.name;
    for (const OptionValue& value : {default_value(option), other_value(option)}) {
      MethodRequest request;
      option.put(request, value);
      EXPECT_EQ(option.get(request), value) << option.name;
    }
    EXPECT_NE(other_value(option), default_value(option)) << option.name;
    EXPECT_NO_THROW(check_value(option, other_value(option))) << option.name;
  }
  EXPECT_EQ(complaint({}), "");
}

TEST(Options, AnOptionThatNoScoreLooksAtIsRefused) {
  size_t refused = 0, taken = 0;
  for (const Option& option : option_table()) {
    if (option.scope.scores.empty()) continue;
    for (const ScoreOptions& score : all_scores()) {
      MethodRequest request{.score = score};
      if (option.name == "paper" && score.paper) continue;
      const bool fits = in_scope(option, score);
      if (fits && !option.scope.bounds.empty()) {
        request.score.bound.method = parse_bound(option.scope.bounds[0]);
      }
      if (fits && option.name == "rank_free") request.rank_weight = 0.5;
      set_option(request, option, other_value(option));
      const std::string said = complaint(request);
      if (fits) {
        EXPECT_EQ(said, "") << option.name << " of " << score.name;
      } else {
        const std::string wanted =
            option.name + ": applies only to " + scope_text(option.scope) + "; the score is ";
        EXPECT_TRUE(said.starts_with(wanted + score.name)) << said;
      }
      ++(fits ? taken : refused);
    }
  }
  EXPECT_GT(taken, 40u);
  EXPECT_GT(refused, 100u);
}

TEST(Options, SentencesOfRefusals) {
  MethodRequest floor{.score = {.name = "residual", .floor = 1}};
  EXPECT_EQ(complaint(floor),
            "floor: applies only to nested, linearized and feature_cqr without paper; the score is "
            "residual");
  MethodRequest steps{.score = {.name = "feature_cqr"}, .steps = 3};
  EXPECT_EQ(complaint(steps),
            "steps: applies only to surrogate, feature_sampled and feature_cqr with paper; the "
            "score is feature_cqr without paper");
  MethodRequest iterations;
  iterations.score.bound.iterations = 3;
  EXPECT_EQ(complaint(iterations),
            "iterations: applies only to the bound alpha-crown; the bound is ibp");
  EXPECT_EQ(complaint({.bandwidth = 1.0}),
            "bandwidth: applies only to the calibration localized; the calibration is split");
  EXPECT_EQ(complaint({.calibration = {.name = "localized"}, .bandwidth = 1.0}), "");
  EXPECT_EQ(complaint({.score = {.name = "cqr"}, .cut = "h1"}),
            "cut: applies only to nested, linearized, surrogate, feature_cqr, feature_margin, "
            "feature_sampled, auto, spread, quantiles, density and the calibration localized; the "
            "score is cqr");
  EXPECT_EQ(complaint({.score = {.name = "cqr"}, .calibration = {.name = "localized"}, .cut = "h"}),
            "");
}

TEST(Options, EveryPixelMayBeAskedOfAnyScore) {
  EXPECT_EQ(complaint({.score = {.name = "surrogate", .pixels = 1}}), "");
  EXPECT_EQ(complaint({.score = {.name = "surrogate", .pixels = 0.5}}),
            "pixels: applies only to nested, residual and lac; the score is surrogate");
}

TEST(Options, Contradictions) {
  EXPECT_EQ(complaint({.score = {.name = "surrogate"}, .cut = AutoCut{}}),
            "cut: 'auto' compares lengths at equal coverage, which a surrogate search does not "
            "promise");
  EXPECT_EQ(complaint({.score = {.name = "feature_margin"}, .cut = AutoCut{}}),
            "cut: 'auto' compares lengths of intervals; feature_margin is a score of labels");
  EXPECT_EQ(
      complaint({.score = {.name = "cqr"}, .calibration = {.name = "localized"}, .cut = AutoCut{}}),
      "cut: 'auto' applies only to scores of features; the score is cqr");
  EXPECT_EQ(complaint({.cut = AutoCut{}}), "");
  EXPECT_EQ(complaint({.calibration = {.name = "grouped"}}),
            "group: is needed by the calibration grouped");
  EXPECT_EQ(complaint({.score = {.name = "nested"},
                       .calibration = {.name = "grouped", .group = "label"}}),
            "group: 'label' applies only to scores of labels; the score is nested");
  EXPECT_EQ(complaint({.score = {.name = "raps", .rank_free = 2}}),
            "rank_free: is chosen together with rank_weight; give both or neither");
  EXPECT_EQ(complaint({.score = {.name = "nice"}}).substr(0, 28), "score: found nice, expected ");
}

// A file of fcp fit may have them, and a request that has them says who makes them.
TEST(Options, WhatFitAloneMakesIsReadAndNotOffered) {
  for (const auto& [name, made] : std::vector<std::pair<std::string, std::string>>{
           {"score", "cross"}, {"score", "cross_labels"}, {"calibration", "cross"}}) {
    const Option& option = find_option(name);
    EXPECT_EQ(std::count(option.choices.begin(), option.choices.end(), made), 0) << made;
    EXPECT_EQ(expected_value(option).find("cross"), std::string::npos);
    EXPECT_NO_THROW(check_value(option, made));
    MethodRequest request;
    set_option(request, option, made);
    EXPECT_NE(complaint(request).find(name + ": cross calibrates a network by the rows that train"),
              std::string::npos)
        << complaint(request);
  }
  EXPECT_THROW(check_value(find_option("score"), "crossed"), OptionError);
}

TEST(Options, ValuesOutOfRange) {
  const auto said = [](const char* name, const std::string& text) -> std::string {
    try {
      parse_option(find_option(name), text);
    } catch (const OptionError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(said("floor", "-1"), "floor: found -1, expected a number of at least 0");
  EXPECT_EQ(said("floor", "nan"), "floor: found nan, expected a number of at least 0");
  EXPECT_EQ(said("floor", "auto"), "floor: found auto, expected a number of at least 0");
  EXPECT_EQ(said("rate", "0"), "rate: found 0, expected a number above 0");
  EXPECT_EQ(said("selection", "1"), "selection: found 1, expected a number from 0 to 0.9");
  EXPECT_EQ(said("pixels", "0"), "pixels: found 0, expected a number above 0 and up to 1");
  EXPECT_EQ(said("steps", "0"),
            "steps: found 0, expected 'auto' or a whole number from 1 to 2147483647");
  EXPECT_EQ(said("steps", "auto"), "");
  EXPECT_EQ(said("norm", "3"), "norm: found 3, expected inf, 2 or 1");
  EXPECT_EQ(said("loss_weights", "1,x"),
            "loss_weights: found 1,x, expected a list of numbers, each of at least 0");
  EXPECT_EQ(said("cut", "h\x80"), "cut: found h\x80, expected UTF-8");
}

TEST(Options, WhatIsLeftOpen) {
  MethodRequest request{.score = {.name = "raps"}, .temperature = std::nullopt};
  EXPECT_TRUE(open_values(request).temperature);
  EXPECT_TRUE(open_values(request).rank_term);
  EXPECT_FALSE(open_values(request).steps);
  request.rank_weight = 0.25;
  request.temperature = 3;
  EXPECT_FALSE(open_values(request).rank_term);
  EXPECT_FALSE(open_values(request).temperature);
  EXPECT_EQ(requested_score(request).rank_weight, 0.25);
  EXPECT_EQ(requested_score(request).temperature, 3);
  request = {.score = {.name = "surrogate", .paper = true, .seed = 5},
             .calibration = {.name = "localized"}};
  EXPECT_TRUE(open_values(request).steps);
  EXPECT_TRUE(open_values(request).bandwidth);
  EXPECT_TRUE(requested_calibration(request).paper);
  EXPECT_EQ(requested_calibration(request).seed, 5u);
  request.steps = 4;
  request.bandwidth = 2;
  EXPECT_FALSE(open_values(request).steps);
  EXPECT_EQ(requested_score(request).steps, 4);
  EXPECT_EQ(requested_calibration(request).bandwidth, 2);
}

// The settings of an artifact whose every option has another value than the default.
CalibrationArtifact unusual_artifact() {
  MethodRequest method = resolved_request({}, {}, "");
  for (const Option& option : option_table()) option.put(method, other_value(option));
  CalibrationArtifact artifact;
  artifact.score = requested_score(method);
  artifact.calibration = method.calibration;
  artifact.calibration.bandwidth = *method.bandwidth;
  artifact.calibration.folds = 10;
  artifact.cut = std::get<std::string>(method.cut);
  return artifact;
}

TEST(Options, SettingsKeepEveryOption) {
  for (const CalibrationArtifact& artifact : {CalibrationArtifact(), unusual_artifact()}) {
    const std::string text = settings_text(artifact);
    CalibrationArtifact again;
    read_settings(text, again);
    EXPECT_EQ(settings_text(again), text);
  }
  const Json settings = Json::parse(settings_text(unusual_artifact()));
  for (const Option& option : option_table()) {
    if (option.storage == OptionStorage::kNone) continue;
    const Json& part = option.of_calibration ? settings.at("calibration") : settings;
    const Json& kept = part.at(option.json_key());
    const OptionValue value = other_value(option);
    const Json wanted = std::visit(
        [](const auto& plain) -> Json {
          if constexpr (std::is_same_v<std::decay_t<decltype(plain)>, AutoValue>) {
            return nullptr;
          } else {
            return plain;
          }
        },
        value);
    EXPECT_EQ(kept, wanted) << option.name;
  }
}

TEST(Options, WrongSettingsNameTheOption) {
  const std::string text = settings_text(unusual_artifact());
  for (const Option& option : option_table()) {
    if (option.storage == OptionStorage::kNone) continue;
    const Json& wrong = option.kind == OptionKind::kText ? Json(3) : Json::object();
    Json settings = Json::parse(text);
    (option.of_calibration ? settings["calibration"] : settings)[option.json_key()] = wrong;
    CalibrationArtifact artifact;
    try {
      read_settings(settings.dump(), artifact);
      ADD_FAILURE() << option.name << " may be " << wrong;
    } catch (const OptionError&) {
      ADD_FAILURE() << option.name << ": would be taken for a flag";
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()), "its '" + option.json_key() + "' is " + wrong.dump() +
                                               ", expected " + expected_value(option, true));
    }
  }
}

// Files from before an option was there, and files with more than this fcp knows.
TEST(Options, OlderSettingsAreRead) {
  Json settings = Json::parse(settings_text(unusual_artifact()));
  for (const Option& option : option_table()) {
    if (option.storage == OptionStorage::kSince) settings.erase(option.json_key());
  }
  CalibrationArtifact artifact;
  read_settings(settings.dump(), artifact);
  EXPECT_EQ(artifact.score.pixels, 0);
  EXPECT_FALSE(artifact.score.double_log);
  settings.erase("floor");
  EXPECT_THROW(read_settings(settings.dump(), artifact), Error);
}

}  // namespace
}  // namespace fcp
