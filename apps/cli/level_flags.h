// --alpha and --confidence: how often a region may miss, or is to hold, the truth.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "fcp/level.h"

#include "apps/cli/common.h"

namespace fcp::cli {

struct LevelFlags {
  std::vector<std::string> alpha{"0.1"};
  std::vector<std::string> confidence{};
  bool several = false;  // the verb takes more than one
};

void add_levels(CLI::App& verb, LevelFlags& flags, bool several = false);

// The levels in the order given, none twice.
std::vector<Level> levels_of(const LevelFlags& flags);

// For verbs whose results carry no warnings: says where a level lets most regions miss.
void say_lax_level(const CommonOptions& common, const Level& level);

// 1 − confidence, exactly: "0.9" is "0.1", "97.5%" is "0.025". Bad usage where it is none.
std::string alpha_of_confidence(const std::string& confidence);

}  // namespace fcp::cli
