// fcp show: what a calibrated predictor is and where it comes from.
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/base/text_table.h"
#include "fcp/predictor/artifact_settings.h"

#include "apps/cli/common.h"
#include "apps/report/json.h"
#include "apps/report/results.h"

namespace fcp::cli {
namespace {

struct ShowFlags {
  CommonOptions common;
  std::string model;
};

using Json = nlohmann::ordered_json;

Json shown_json(const ArtifactFacts& facts, const std::string& sha256) {
  Json json = {{"score", facts.score},     {"calibration", facts.calibration},
               {"cut", facts.cut},         {"rows", facts.rows},
               {"version", facts.version}, {"inputs", facts.inputs},
               {"outputs", facts.outputs}, {"heads", facts.heads},
               {"groups", facts.groups},   {"columns", facts.columns}};
  if (!facts.kept_levels.empty()) json["levels"] = facts.kept_levels;
  if (!facts.probabilities.empty()) {
    json["probabilities"] = {{"method", facts.probabilities}};
    if (!facts.probability_steps.empty()) json["probabilities"]["steps"] = facts.probability_steps;
  }
  for (const auto& [level, radius] : facts.radii) {
    Json sides = Json::array();
    for (const double side : radius) sides.push_back(json_number(side));
    json["radius"][level.text()] = sides.empty() ? Json() : sides.size() == 1 ? sides[0] : sides;
  }
  for (const auto& [level, least] : facts.guaranteed) json["guaranteed"][level.text()] = least;
  json["settings"] = Json::parse(facts.settings);
  json["provenance"] = facts.provenance;
  json["sha256"] = sha256;
  return json;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

// The texts of these functions have a line per level.
std::string radius_text(const ArtifactFacts& facts) {
  std::string text;
  for (const auto& [level, radius] : facts.radii) {
    if (radius.empty()) return "differs from row to row";
    text += (text.empty() ? "" : "\n") + format_target(level) + ":";
    for (const double side : radius) text += " " + format_number(side);
  }
  return text;
}

// Of cross calibration, which promises less than it usually covers.
std::string guarantee_text(const ArtifactFacts& facts) {
  std::string text;
  for (const auto& [level, least] : facts.guaranteed) {
    text += (text.empty() ? "" : "\n") + format_target(level) + " target: at least ";
    text += format_percent(least);
  }
  return text;
}

std::string probability_line(const ArtifactFacts& facts) {
  size_t steps = 0;
  for (const size_t one : facts.probability_steps) steps += one;
  return steps == 0 ? facts.probabilities
                    : concat(facts.probabilities, ", ", format_count(steps), " steps");
}

// The lines of a text, none longer than kWidest where a blank can end it.
std::vector<std::string> lines_of(const std::string& text) {
  constexpr size_t kWidest = 52;  // with the names before it less than 80
  std::vector<std::string> lines(1);
  std::string word;
  const auto end_word = [&] {
    if (!lines.back().empty() && display_width(lines.back() + word) >= kWidest)
      lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
    word.clear();
  };
  for (const char c : text) {
    if (c != ' ' && c != '\n') {
      word += c;
      continue;
    }
    end_word();
    if (c == '\n') lines.emplace_back();
  }
  end_word();
  return lines;
}

// As "inf", "0.1", "yes", "north, south"; empty where nothing is set.
std::string setting_text(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::vector<std::string> words;
  for (const Json& one : value) words.push_back(setting_text(one));
  return joined(words);
}

void print_shown(const ArtifactFacts& facts, const std::string& sha256) {
  Table table({"", ""});
  std::set<std::pair<std::string, std::string>> shown;
  const auto add = [&](std::string name, const std::string& text) {
    if (text.empty() || !shown.emplace(name, text).second) return;
    for (const std::string& line : lines_of(text)) table.add_row({std::exchange(name, ""), line});
  };
  add("score", facts.score);
  add("calibration", facts.calibration);
  add("cut", facts.cut.empty() ? "the network's input" : facts.cut);
  add("rows", format_count(facts.rows));
  add("version", std::to_string(facts.version));
  add("radius", radius_text(facts));
  add("guaranteed", guarantee_text(facts));
  add("probabilities", probability_line(facts));
  add("groups", joined(facts.groups));
  add("inputs", joined(facts.inputs));
  add("outputs", joined(facts.outputs));
  add("heads", joined(facts.heads));
  add("columns", joined(facts.columns));
  add("sha256", sha256);
  table.add_gap();
  for (const auto& [name, text] : facts.provenance) add(name, text);
  table.add_gap();
  const Json settings = Json::parse(facts.settings);
  for (const auto& [name, value] : settings.items()) {
    if (!value.is_object()) {
      add(name, setting_text(value));
      continue;
    }
    for (const auto& [part, inner] : value.items()) add(name + "." + part, setting_text(inner));
  }
  std::cout << table;
}

void run_show(const ShowFlags& flags) {
  const ArtifactFacts facts = artifact_facts(read_artifact(flags.model));
  const std::string sha256 = file_sha256(flags.model);
  if (flags.common.json) {
    std::cout << json_text(shown_json(facts, sha256)) << '\n';
  } else {
    print_shown(facts, sha256);
  }
}

}  // namespace

void add_show(CLI::App& app) {
  auto flags = std::make_shared<ShowFlags>();
  CLI::App* verb =
      app.add_subcommand("show", "Show what a calibrated predictor is and where it comes from");
  verb->footer("Examples:\n  fcp show calibrated.onnx\n  fcp show calibrated.onnx --json");
  verb->add_option("model", flags->model, "Calibrated predictor")->required();
  add_common(*verb, flags->common, kTakesJson);
  verb->callback([flags] { run_show(*flags); });
}

}  // namespace fcp::cli
