#include "fcp/methods/options.h"

#include <algorithm>
#include <set>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/predictor/artifact_settings.h"

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
  return std::string(option.name == "support" ? "0:1e9" : "other");
}

// A score as it is asked for.
struct Asked {
  std::string name;
  bool paper = false;

  MethodRequest request() const {
    MethodRequest request{.score = name};
    if (paper) request.set("paper", true);
    return request;
  }
};

bool in_scope(const Option& option, const Asked& score) {
  const std::vector<std::string>& names = option.scope.scores;
  const std::string kin = score.name + (score.paper ? " with paper" : " without paper");
  return std::count(names.begin(), names.end(), score.name) +
             std::count(names.begin(), names.end(), kin) >
         0;
}

// All scores, and those that have them in the paper's form too.
std::vector<Asked> all_scores() {
  std::vector<Asked> scores;
  for (const std::string& name : score_names()) {
    scores.push_back({name});
    const Asked paper{name, true};
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
      request.put(option.name, value);
      EXPECT_EQ(request.value(option.name), value) << option.name;
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
    for (const Asked& score : all_scores()) {
      MethodRequest request = score.request();
      if (option.name == "paper" && score.paper) continue;
      const bool fits = in_scope(option, score);
      if (fits && !option.scope.bounds.empty()) {
        request.set("bound", option.scope.bounds[0]);
      }
      if (fits && option.name == "rank_free") request.set("rank_weight", 0.5);
      OptionValue value = other_value(option);
      // Of a score that is given.
      if (option.name == "joint")
        value = std::string(score.name == "ellipsoid" ? "volume" : "each");
      set_option(request, option, value);
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
  MethodRequest floor{.score = "residual", .values = {{"floor", 1.0}}};
  EXPECT_EQ(complaint(floor),
            "floor: applies only to nested, linearized and feature_cqr without paper; the score is "
            "residual");
  MethodRequest steps{.score = "feature_cqr", .values = {{"steps", uint64_t{3}}}};
  EXPECT_EQ(complaint(steps),
            "steps: applies only to surrogate, feature_sampled and feature_cqr with paper; the "
            "score is feature_cqr without paper");
  MethodRequest iterations;
  iterations.set("iterations", 3);
  EXPECT_EQ(complaint(iterations),
            "iterations: applies only to the bound alpha-crown; the bound is ibp");
  EXPECT_EQ(complaint({.values = {{"bandwidth", 1.0}}}),
            "bandwidth: applies only to the calibration localized; the calibration is split");
  EXPECT_EQ(complaint({.calibration = "localized", .values = {{"bandwidth", 1.0}}}), "");
  EXPECT_EQ(complaint({.score = "cqr", .cut = "h1"}),
            "cut: applies only to nested, linearized, surrogate, feature_cqr, feature_margin, "
            "feature_sampled, auto, spread, quantiles, density, ellipsoid and the calibration "
            "localized; the score is cqr");
  EXPECT_EQ(complaint({.score = "cqr", .calibration = "localized", .cut = "h"}), "");
}

TEST(Options, EveryPixelMayBeAskedOfAnyScore) {
  EXPECT_EQ(complaint({.score = "surrogate", .values = {{"pixels", 1.0}}}), "");
  EXPECT_EQ(complaint({.score = "surrogate", .values = {{"pixels", 0.5}}}),
            "pixels: applies only to nested, residual and lac; the score is surrogate");
}

TEST(Options, Contradictions) {
  EXPECT_EQ(complaint({.score = "surrogate", .cut = AutoCut{}}),
            "cut: 'auto' compares lengths at equal coverage, which a surrogate search does not "
            "promise");
  EXPECT_EQ(complaint({.score = "feature_margin", .cut = AutoCut{}}),
            "cut: 'auto' compares lengths of intervals; feature_margin is a score of labels");
  EXPECT_EQ(complaint({.score = "cqr", .calibration = "localized", .cut = AutoCut{}}),
            "cut: 'auto' applies only to scores of features; the score is cqr");
  EXPECT_EQ(complaint({.cut = AutoCut{}}), "");
  EXPECT_EQ(complaint({.calibration = "grouped"}), "group: is needed by the calibration grouped");
  EXPECT_EQ(complaint({.score = "nested",
                       .calibration = "grouped",
                       .values = {{"group", std::string("label")}}}),
            "group: 'label' applies only to scores of labels; the score is nested");
  EXPECT_EQ(complaint({.score = "raps", .values = {{"rank_free", uint64_t{2}}}}),
            "rank_free: is chosen together with rank_weight; give both or neither");
  EXPECT_EQ(complaint({.score = "nice"}).substr(0, 28), "score: found nice, expected ");
  const OptionValue upper = std::string("upper");
  EXPECT_EQ(complaint({.score = "cqr", .values = {{"side", upper}, {"asymmetric", true}}}),
            "side: one bound has no second side with a radius of its own; leave out asymmetric");
  EXPECT_EQ(complaint({.score = "density", .values = {{"side", upper}, {"union", true}}}),
            "side: a union of intervals has no one end; leave out union");
  EXPECT_EQ(complaint({.score = "residual", .values = {{"side", upper}, {"pixels", 0.5}}}),
            "side: does not apply to images");
  EXPECT_EQ(complaint({.score = "residual", .values = {{"support", std::string("5:1")}}}),
            "support: found 5:1, expected LOWER:UPPER with one or both of them, such as 0: or "
            "0:100");
  EXPECT_EQ(complaint({.score = "lac", .values = {{"integer", true}}}).substr(0, 28),
            "integer: applies only to nes");
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
  MethodRequest request{.score = "raps", .values = {{"temperature", AutoValue{}}}};
  EXPECT_TRUE(open_values(request).temperature);
  EXPECT_TRUE(open_values(request).rank_term);
  EXPECT_FALSE(open_values(request).steps);
  request.set("rank_weight", 0.25);
  request.set("temperature", 3.0);
  EXPECT_FALSE(open_values(request).rank_term);
  EXPECT_FALSE(open_values(request).temperature);
  EXPECT_EQ(resolve(request).score.value(field::rank_weight), 0.25);
  EXPECT_EQ(resolve(request).score.value(field::temperature), 3);
  request = {.score = "surrogate", .calibration = "localized"};
  request.set("paper", true);
  request.set("seed", 5);
  EXPECT_TRUE(open_values(request).steps);
  EXPECT_TRUE(open_values(request).bandwidth);
  EXPECT_TRUE(resolve(request).calibration.paper);
  EXPECT_EQ(resolve(request).calibration.seed, 5u);
  request.set("steps", 4);
  request.set("bandwidth", 2.0);
  EXPECT_FALSE(open_values(request).steps);
  EXPECT_EQ(resolve(request).score.value(field::steps), 4);
  EXPECT_EQ(resolve(request).calibration.value(field::bandwidth), 2);
}

// A score or calibration keeps of a request what it has, and a request of a method asks for it.
TEST(Options, AMethodIsWhatItsRequestSays) {
  MethodRequest request{.score = "nested", .calibration = "rectified", .cut = "h"};
  request.set("norm", "2");
  request.set("tail", 0.25);
  request.set("bandwidth", 2.0);
  request.scale = {1, 2};
  const Method method = resolve(request);
  const Method wanted{.score = NestedOptions{.norm = Norm::kTwo, .scale = {1, 2}}, .cut = "h"};
  EXPECT_EQ(method, wanted) << method << " is not " << wanted;
  EXPECT_EQ(resolve(request_of(method)), method);
  std::ostringstream text;
  text << method;
  EXPECT_EQ(text.str(), "nested cut=h norm=2, split");
  Method other = method;
  other.score.set(field::floor, 0.5);
  EXPECT_NE(other, method);
}

TEST(Options, AnotherScoreTakesWhatBothHave) {
  const ScoreOptions nested(NestedOptions{.norm = Norm::kTwo, .scale = {1, 2}, .floor = 0.5},
                            {.output = "y", .seed = 7});
  EXPECT_EQ(as_score(nested, "linearized"),
            ScoreOptions(LinearizedOptions({.norm = Norm::kTwo, .floor = 0.5}),
                         {.output = "y", .seed = 7}));
  EXPECT_EQ(as_score(nested, "residual"),
            ScoreOptions(ResidualOptions{}, {.output = "y", .seed = 7}));
  EXPECT_EQ(as_score(nested, "nested"), nested);
}

// Methods that together have every option, each with another value than the default.
std::vector<CalibrationArtifact> unusual_artifacts() {
  std::vector<CalibrationArtifact> artifacts;
  std::vector<std::string> scores = score_names();
  scores.insert(scores.end(), {CrossOptions::kName, CrossLabelsOptions::kName});
  for (size_t i = 0; i < scores.size(); ++i) {
    const std::vector<std::string> calibrations = {"split", "grouped", "localized", "weighted",
                                                   "cross"};
    CalibrationArtifact& artifact = artifacts.emplace_back();
    artifact.method.score = ScoreOptions(scores[i]);
    artifact.method.calibration = CalibrationOptions(calibrations[i % calibrations.size()]);
    for (const Option& option : option_table()) {
      // joint says what the score and its targets say.
      const bool name =
          option.name == "score" || option.name == "calibration" || option.name == "joint";
      if (option.put && !name) option.put(artifact.method, other_value(option));
    }
    if (size_t* folds = artifact.method.calibration.find(field::folds)) *folds = 10;
  }
  return artifacts;
}

Json json_of(const OptionValue& value) {
  return std::visit(
      [](const auto& plain) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(plain)>, AutoValue>) {
          return nullptr;
        } else {
          return plain;
        }
      },
      value);
}

TEST(Options, SettingsKeepEveryOption) {
  std::set<std::string> changed;
  for (const CalibrationArtifact& artifact : unusual_artifacts()) {
    const std::string text = settings_text(artifact);
    CalibrationArtifact again;
    read_settings(text, again);
    EXPECT_EQ(settings_text(again), text);
    EXPECT_EQ(again.method, artifact.method) << again.method << " is not " << artifact.method;
    const Json settings = Json::parse(text);
    for (const Option& option : option_table()) {
      if (option.storage == OptionStorage::kNone) continue;
      const Json& part = option.of_calibration ? settings.at("calibration") : settings;
      const bool has_it = option.get(artifact.method).has_value();
      const bool own =
          option.storage == OptionStorage::kSet || option.storage == OptionStorage::kOwn;
      if (!has_it && own) {
        EXPECT_FALSE(part.contains(option.json_key())) << option.name;
        continue;
      }
      // What the method has not stands there as it usually is.
      const OptionValue wanted = has_it ? value_in(option, artifact.method) : option.usual;
      EXPECT_EQ(part.at(option.json_key()), json_of(wanted)) << option.name;
      if (wanted != option.usual) changed.insert(option.name);
    }
  }
  for (const Option& option : option_table()) {
    if (option.storage == OptionStorage::kNone) continue;
    EXPECT_TRUE(changed.contains(option.name)) << option.name;
  }
}

TEST(Options, WrongSettingsNameTheOption) {
  CalibrationArtifact whole;
  whole.method.score.rectifier = "r";
  const std::string text = settings_text(whole);
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
  CalibrationArtifact pixels;
  pixels.method.score = ScoreOptions(LacOptions{.double_log = true}, {.pixels = 0.5});
  Json settings = Json::parse(settings_text(pixels));
  for (const Option& option : option_table()) {
    const bool later =
        option.storage == OptionStorage::kSince || option.storage == OptionStorage::kOwn;
    if (later) settings.erase(option.json_key());
  }
  CalibrationArtifact artifact;
  read_settings(settings.dump(), artifact);
  EXPECT_EQ(artifact.method.score.pixels, 0);
  EXPECT_FALSE(artifact.method.score.value(field::double_log));
  EXPECT_FALSE(pixels.method.score.value(field::allow_empty));
  EXPECT_TRUE(artifact.method.score.value(field::allow_empty));  // as they were calibrated
  settings.erase("floor");
  EXPECT_THROW(read_settings(settings.dump(), artifact), Error);
}

}  // namespace
}  // namespace fcp
