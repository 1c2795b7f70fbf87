#include "fcp/predictor/artifact_facts.h"

#include <charconv>
#include <fstream>

#include "fcp/base/error.h"
#include "fcp/base/sha256.h"
#include "fcp/conformal/cross_guarantee.h"
#include "fcp/data/encoding_text.h"
#include "fcp/nn/graph/input_layout.h"
#include "fcp/predictor/artifact_settings.h"

namespace fcp {
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
