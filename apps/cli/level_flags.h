// --alpha and --confidence: how often a region may miss, or is to hold, the truth.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "fcp/level.h"
#include "fcp/predictor/artifact.h"

#include "apps/cli/common.h"

namespace fcp::cli {

struct LevelFlags {
  std::vector<std::string>
      alpha{};  // neither is given: 0.1, or the level that the file was made for
  std::vector<std::string> confidence{};
  bool several = false;  // the verb takes more than one
};

void add_levels(CLI::App& verb, LevelFlags& flags, bool several = false);

// The levels in the order given, none twice.
std::vector<Level> levels_of(const LevelFlags& flags);

// The predictor of a file, with the levels of the flags or else the one for which `fcp fit` made
// it.
CalibrationArtifact read_artifact_at(const std::string& path, const LevelFlags& flags,
                                     std::vector<Level>& levels);

// For verbs whose results carry no warnings: says where a level lets most regions miss.
void say_lax_level(const CommonOptions& common, const Level& level);

// 1 − confidence, exactly: "0.9" is "0.1", "97.5%" is "0.025". Bad usage where it is none.
std::string alpha_of_confidence(const std::string& confidence);

}  // namespace fcp::cli
