#include "fcp/calibration/artifact_settings.h"

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"

namespace fcp {
namespace {

// All scores, or those of a few levels: an older fcp refuses the second, which it would misread.
constexpr int kAllScores = 2;
constexpr int kSomeLevels = 3;
constexpr uint64_t kMostRows = uint64_t{1} << 53;

using Json = nlohmann::ordered_json;

// Whole numbers alone: converting 1e99 to an int is undefined.
template <typename Integer>
void read_integer(const Json& settings, const char* name, Integer& value) {
  const Json& number = settings.at(name);
  if (!number.is_number_integer()) fail("its '", name, "' is not a whole number");
  number.get_to(value);
}

Json calibration_of(const CalibrationArtifact& artifact) {
  const CalibrationOptions& options = artifact.calibration;
  Json json = {{"name", options.name},           {"group", options.group},
               {"bandwidth", options.bandwidth}, {"seed", options.seed},
               {"paper", options.paper},         {"group_names", artifact.rows.group_names}};
  for (const Level& level : artifact.rows.levels) {
    json["levels"].push_back(Level::parse(level.text()).text());  // a fraction has no such text
  }
  if (!artifact.rows.levels.empty()) json["rows"] = artifact.rows.total;
  return json;
}

void read_levels(const Json& settings, CalibrationScores& rows) {
  for (const Json& text : settings.at("levels")) {
    const Level level = Level::parse(text.get<std::string>());
    if (!rows.levels.empty() && !(rows.levels.back().value() < level.value())) {
      fail("its levels are not in order");
    }
    rows.levels.push_back(level);
  }
  if (rows.levels.empty()) fail("its calibration keeps no level");
  const Json& total = settings.at("rows");
  if (!total.is_number_unsigned() || total.get<uint64_t>() > kMostRows) {
    fail("its number of rows is not one");
  }
  rows.total = total.get<uint64_t>();
}

void read_calibration(const Json& settings, CalibrationArtifact& artifact) {
  CalibrationOptions& options = artifact.calibration;
  settings.at("name").get_to(options.name);
  settings.at("group").get_to(options.group);
  settings.at("bandwidth").get_to(options.bandwidth);
  read_integer(settings, "seed", options.seed);
  settings.at("paper").get_to(options.paper);
  settings.at("group_names").get_to(artifact.rows.group_names);
}

bool reads_heads(const ScoreOptions& score) {
  return score.name == "spread" || score.name == "quantiles" || score.name == "density" ||
         !score.rectifier.empty();
}

// Of scores over heads on features alone: files of the others stay what they were.
void write_heads(const ScoreOptions& score, Json& settings) {
  if (!reads_heads(score)) return;
  settings["spread"] = score.spread;
  settings["quantiles"] = score.quantiles;
  settings["tail"] = score.tail;
  settings["level_set"] = score.level_set;
  settings["rectifier"] = score.rectifier;
}

void read_heads(const Json& settings, ScoreOptions& score) {
  score.spread = settings.value("spread", score.spread);
  score.quantiles = settings.value("quantiles", score.quantiles);
  score.tail = settings.value("tail", score.tail);
  score.level_set = settings.value("level_set", score.level_set);
  score.rectifier = settings.value("rectifier", score.rectifier);
}

Json settings_of(const CalibrationArtifact& artifact) {
  const ScoreOptions& score = artifact.score;
  return {{"format", artifact.rows.levels.empty() ? kAllScores : kSomeLevels},
          {"score", score.name},
          {"cut", artifact.cut},
          {"output", score.output},
          {"normalize", score.normalize},
          {"low", score.low},
          {"high", score.high},
          {"asymmetric", score.asymmetric},
          {"norm", norm_name(score.norm)},
          {"bound", bound_name(score.bound.method)},
          {"iterations", score.bound.iterations},
          {"rate", score.bound.rate},
          {"outward", score.bound.outward},
          {"pixels", score.pixels},
          {"floor", score.floor},
          {"slope", score.slope},
          {"steps", score.steps},
          {"step_rate", score.step_rate},
          {"adam", score.adam},
          {"paper", score.paper},
          {"loss_weights", score.loss_weights},
          {"temperature", score.temperature},
          {"double_log", score.double_log},
          {"randomized", score.randomized},
          {"rank_weight", score.rank_weight},
          {"rank_free", score.rank_free},
          {"samples", score.samples},
          {"seed", score.seed},
          {"calibration", calibration_of(artifact)}};
}

}  // namespace

std::string settings_text(const CalibrationArtifact& artifact) {
  Json settings = settings_of(artifact);
  write_heads(artifact.score, settings);
  return settings.dump();
}

void read_settings(const std::string& text, CalibrationArtifact& artifact) {
  const Json settings = Json::parse(text);
  int format = 0;
  read_integer(settings, "format", format);
  if (format != kAllScores && format != kSomeLevels) {
    fail("its calibration has format ", format, ", this fcp reads formats ", kAllScores, " and ",
         kSomeLevels);
  }
  settings.at("cut").get_to(artifact.cut);
  ScoreOptions& score = artifact.score;
  settings.at("score").get_to(score.name);
  settings.at("output").get_to(score.output);
  settings.at("normalize").get_to(score.normalize);
  settings.at("low").get_to(score.low);
  settings.at("high").get_to(score.high);
  settings.at("asymmetric").get_to(score.asymmetric);
  score.norm = parse_norm(settings.at("norm").get<std::string>());
  score.bound.method = parse_bound(settings.at("bound").get<std::string>());
  read_integer(settings, "iterations", score.bound.iterations);
  settings.at("rate").get_to(score.bound.rate);
  settings.at("outward").get_to(score.bound.outward);
  score.pixels = settings.value("pixels", 0.0);  // older files have neither
  score.double_log = settings.value("double_log", false);
  settings.at("floor").get_to(score.floor);
  settings.at("slope").get_to(score.slope);
  read_integer(settings, "steps", score.steps);
  settings.at("step_rate").get_to(score.step_rate);
  settings.at("adam").get_to(score.adam);
  settings.at("paper").get_to(score.paper);
  settings.at("loss_weights").get_to(score.loss_weights);
  settings.at("temperature").get_to(score.temperature);
  settings.at("randomized").get_to(score.randomized);
  settings.at("rank_weight").get_to(score.rank_weight);
  read_integer(settings, "rank_free", score.rank_free);
  read_integer(settings, "samples", score.samples);
  read_integer(settings, "seed", score.seed);
  read_heads(settings, score);
  read_calibration(settings.at("calibration"), artifact);
  if (format == kSomeLevels) read_levels(settings.at("calibration"), artifact.rows);
}

}  // namespace fcp
