// fcp evaluate --calibration online: rows in the order of time, each judged at a level that follows
// the truths of those before it.
#pragma once

#include <cstddef>
#include <string>

#include <CLI/CLI.hpp>

#include "fcp/data/rows.h"
#include "fcp/monitoring/adaptive_level.h"
#include "fcp/predictor/artifact.h"
#include "fcp/predictor/open_data.h"

#include "apps/cli/common.h"

namespace fcp::cli {

struct OnlineFlags {
  std::string calibration{};  // "online", or "": as the file has it
  AdaptOptions adapt{};
  size_t window = 0;
};

void add_online(CLI::App& verb, OnlineFlags& flags);

void evaluate_online(const CalibrationArtifact& artifact, RowSource& source, const Level& level,
                     RowFacts facts, const OnlineFlags& flags, const CommonOptions& common,
                     const Context& context);

}  // namespace fcp::cli
