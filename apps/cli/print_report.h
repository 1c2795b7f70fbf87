// Reports on stdout and in files.
#pragma once

#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "fcp/calibrate/calibrate.h"
#include "fcp/evaluate/measures/evaluation_report.h"
#include "fcp/fit/fit.h"

#include "apps/cli/common.h"

namespace fcp::cli {

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

// Says what was found and chosen, writes the artifact, removes the checkpoint, and prints what was
// calibrated with its radii: as JSON, into which `more` is merged, or in two lines.
void finish_calibration(const CalibrateResult& result, const CalibrateSettings& settings,
                        const std::string& out, const CommonOptions& common,
                        const nlohmann::ordered_json& more = nlohmann::ordered_json::object());

// What `fcp fit` found, for people and for programs.

// What came out, what to watch, how it was made, and what to type next: a line each.
std::string fit_text(const FitOutcome& result, const std::string& out, const std::string& report);

nlohmann::ordered_json fit_json(const FitOutcome& result, const std::string& out,
                                const std::string& report);

}  // namespace fcp::cli
