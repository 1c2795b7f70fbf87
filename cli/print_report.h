// Reports on stdout and in files.
#pragma once

#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "fcp/calibration/artifact.h"
#include "fcp/conformal/level.h"
#include "fcp/evaluation/evaluation_report.h"

#include "cli/common.h"

namespace fcp {

struct ReportFlags {
  std::string html;                  // a file; empty: none
  std::optional<double> fail_below;  // of the p-value of coverage
};

// --fail-below.
void add_fail_below(CLI::App& verb, ReportFlags& flags);

// The report of rank 0 in all the ways asked for: its notes on stderr, HTML, and JSON or text on
// stdout. Then, where coverage is less probable than asked for, an Alarm.
void tell_report(const EvaluationReport& report, const ReportFlags& flags,
                 const CommonOptions& common);

// The radius, or one per side; null where it differs from row to row.
nlohmann::ordered_json radius_json(const CalibrationArtifact& artifact, const Level& level);

}  // namespace fcp
