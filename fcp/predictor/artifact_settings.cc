#include "fcp/predictor/artifact_settings.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <variant>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/base/hash.h"
#include "fcp/conformal/cross_guarantee.h"
#include "fcp/data/columns.h"
#include "fcp/methods/options.h"
#include "fcp/nn/graph/input_layout.h"

namespace fcp {
namespace {

// All scores, or those of a few levels: an older fcp refuses the second, which it would misread.
constexpr int kAllScores = 2;
constexpr int kSomeLevels = 3;
constexpr uint64_t kMostRows = uint64_t{1} << 53;

using Json = nlohmann::ordered_json;

struct JsonOfValue {
  Json operator()(const AutoValue&) const { return "auto"; }  // never of an artifact
  template <typename Value>
  Json operator()(const Value& value) const {
    return value;
  }
};

void write_options(const Method& method, bool of_calibration, Json& settings) {
  for (const Option& option : option_table()) {
    if (option.storage == OptionStorage::kNone || option.of_calibration != of_calibration) continue;
    const OptionValue value = value_in(option, method);
    if (option.storage == OptionStorage::kSet && value == option.usual) continue;
    if (option.storage == OptionStorage::kOwn && !option.get(method)) continue;
    settings[option.json_key()] = std::visit(JsonOfValue{}, value);
  }
}

Json calibration_of(const CalibrationArtifact& artifact) {
  const Method& method = artifact.method;
  Json json;
  write_options(method, true, json);
  json["group_names"] = artifact.rows.group_names;
  if (const size_t folds = method.calibration.value(field::folds)) json["folds"] = folds;
  for (const Level& level : artifact.rows.levels) {
    json["levels"].push_back(Level::parse(level.text()).text());  // a fraction has no such text
  }
  if (!artifact.rows.levels.empty()) json["rows"] = artifact.rows.total;
  return json;
}

[[noreturn]] void fail_setting(const Option& option, const Json& json) {
  fail("its '", option.json_key(), "' is ", json.dump(), ", expected ",
       expected_value(option, true));
}

// The value in a file, of the option's kind.
OptionValue setting_in(const Option& option, const Json& json) {
  const bool numbers = json.is_array() && std::all_of(json.begin(), json.end(),
                                                      [](const Json& j) { return j.is_number(); });
  switch (option.kind) {
    case OptionKind::kFlag:
      if (json.is_boolean()) return json.get<bool>();
      break;
    case OptionKind::kInteger:  // converting 1e99 would be undefined
      if (json.is_number_unsigned()) return json.get<uint64_t>();
      break;
    case OptionKind::kNumber:
      if (json.is_number()) return json.get<double>();
      break;
    case OptionKind::kNumbers:
      if (numbers) return json.get<std::vector<double>>();
      break;
    case OptionKind::kChoice:
    case OptionKind::kText:
      if (json.is_string()) return json.get<std::string>();
  }
  fail_setting(option, json);
}

// The names come first, so that the method has the fields of the options that follow.
void read_options(const Json& settings, bool of_calibration, Method& method) {
  static const Method untouched;
  for (const Option& option : option_table()) {
    if (option.storage == OptionStorage::kNone || option.of_calibration != of_calibration) continue;
    const auto found = settings.find(option.json_key());
    if (found == settings.end()) {
      if (option.storage == OptionStorage::kAlways) {
        fail("its calibration settings have no '", option.json_key(), "'");
      }
      if (option.storage == OptionStorage::kOwn) option.put(method, option.earlier);
      continue;
    }
    const OptionValue value = setting_in(option, *found);
    try {
      // What nothing looks at may be out of range, as 0 steps are.
      if (value != value_in(option, untouched)) check_value(option, value);
    } catch (const OptionError&) {
      fail_setting(option, *found);
    }
    option.put(method, value);
  }
}

void read_folds(const Json& settings, CalibrationOptions& calibration) {
  size_t* const kept = calibration.find(field::folds);
  if (kept == nullptr) return;
  const auto folds = settings.find("folds");
  if (folds == settings.end() || !folds->is_number_unsigned()) {
    fail("its number of folds is missing or not a number");
  }
  *kept = folds->get<uint64_t>();
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

}  // namespace

std::string settings_text(const CalibrationArtifact& artifact) {
  Json settings = {{"format", artifact.rows.levels.empty() ? kAllScores : kSomeLevels}};
  write_options(artifact.method, false, settings);
  settings["calibration"] = calibration_of(artifact);
  return settings.dump();
}

void read_settings(const std::string& text, CalibrationArtifact& artifact) {
  const Json settings = Json::parse(text);
  const Json& format = settings.at("format");
  if (!format.is_number_integer() || (format != kAllScores && format != kSomeLevels)) {
    fail("its calibration has format ", format.dump(), ", this fcp reads formats ", kAllScores,
         " and ", kSomeLevels);
  }
  const Json& calibration = settings.at("calibration");
  Method method;
  read_options(settings, false, method);
  read_options(calibration, true, method);
  artifact.method = method;
  calibration.at("group_names").get_to(artifact.rows.group_names);
  read_folds(calibration, artifact.method.calibration);
  if (format == kSomeLevels) read_levels(calibration, artifact.rows);
}

namespace {

constexpr char kHeadPrefix[] = "fcp.";

std::string tensor_text(const TensorInfo& info) {
  if (!info.known_rank) return info.name;
  std::string shape;
  for (const int64_t size : info.shape) {
    if (!shape.empty()) shape += ", ";
    shape += size == kDynamic ? std::string("?") : std::to_string(size);
  }
  return concat(info.name, " [", shape, "]");
}

std::vector<Level> usual_levels(const CalibrationArtifact& artifact) {
  if (!artifact.rows.levels.empty()) {
    return {artifact.rows.levels.rbegin(), artifact.rows.levels.rend()};
  }
  return {Level::parse("0.2"), Level::parse("0.1"), Level::parse("0.05"), Level::parse("0.01")};
}

}  // namespace

ArtifactFacts artifact_facts(const CalibrationArtifact& artifact) {
  ArtifactFacts facts;
  facts.score = artifact.method.score.name();
  facts.calibration = artifact.method.calibration.name();
  facts.cut = artifact.method.cut;
  facts.rows = artifact.rows.count();
  facts.groups = artifact.rows.group_names;
  if (artifact.method.score.traits().labels && artifact.method.score.pixels == 0) {
    facts.probabilities = artifact.method.score.probabilities;
  }
  for (const VennAbers& one : artifact.chances) {
    facts.probability_steps.push_back(one.steps().size());
  }
  facts.settings = settings_text(artifact);
  facts.provenance = artifact.facts();
  for (const TensorInfo& input : own_inputs(artifact.network)) {
    facts.inputs.push_back(tensor_text(input));
  }
  for (const TensorInfo& output : artifact.network.outputs) {
    (output.name.starts_with(kHeadPrefix) ? facts.heads : facts.outputs)
        .push_back(tensor_text(output));
  }
  for (const Level& level : artifact.rows.levels) facts.kept_levels.push_back(level.text());
  for (const Level& level : usual_levels(artifact)) {
    facts.radii.emplace_back(level, artifact.radius(level));
    const size_t folds = artifact.method.calibration.value(field::folds);
    if (folds == 0) continue;
    facts.guaranteed.emplace_back(level, cross_guarantee(level, artifact.rows.count(), folds));
  }
  const auto encoding = artifact.network.metadata.find(kEncodingKey);
  if (encoding != artifact.network.metadata.end()) {
    facts.columns = parse_encoding(encoding->second).columns;
  }
  const auto version = facts.provenance.find("version");
  if (version != facts.provenance.end()) {
    const std::string& text = version->second;
    std::from_chars(text.data(), text.data() + text.size(), facts.version);
  }
  return facts;
}

std::string file_sha256(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(path, ": cannot be read");
  Sha256 hash;
  std::string block(1 << 20, '\0');
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    hash.add(std::string_view(block).substr(0, static_cast<size_t>(file.gcount())));
  }
  return hash.hex();
}

}  // namespace fcp
