// fcp show: what a calibrated predictor is and where it comes from.
#include <iostream>
#include <memory>

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

std::string radius_line(const ArtifactFacts& facts) {
  std::string line;
  for (const auto& [level, radius] : facts.radii) {
    if (radius.empty()) return "differs from row to row";
    line += (line.empty() ? "" : "   ") + format_target(level) + ":";
    for (const double side : radius) {
      line += ' ';
      line += format_number(side);
    }
  }
  return line;
}

// Of cross calibration, which promises less than it usually covers.
std::string guarantee_line(const ArtifactFacts& facts) {
  std::string line;
  for (const auto& [level, least] : facts.guaranteed) {
    line += (line.empty() ? "" : "   ") + format_target(level) + " target: at least ";
    line += format_percent(least);
  }
  return line;
}

std::string probability_line(const ArtifactFacts& facts) {
  size_t steps = 0;
  for (const size_t one : facts.probability_steps) steps += one;
  return steps == 0 ? facts.probabilities
                    : concat(facts.probabilities, ", ", format_count(steps), " steps");
}

void print_shown(const ArtifactFacts& facts, const std::string& sha256) {
  Table table({"", ""});
  const auto add = [&](const std::string& name, const std::string& text) {
    if (!text.empty()) table.add_row({name, text});
  };
  add("score", facts.score);
  add("calibration", facts.calibration);
  add("cut", facts.cut.empty() ? "the network's input" : facts.cut);
  add("rows", format_count(facts.rows));
  add("version", std::to_string(facts.version));
  add("radius", radius_line(facts));
  add("guaranteed", guarantee_line(facts));
  add("probabilities", probability_line(facts));
  add("groups", joined(facts.groups));
  add("inputs", joined(facts.inputs));
  add("outputs", joined(facts.outputs));
  add("heads", joined(facts.heads));
  add("columns", joined(facts.columns));
  add("settings", facts.settings);
  add("sha256", sha256);
  table.add_gap();
  for (const auto& [name, text] : facts.provenance) add(name, text);
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
