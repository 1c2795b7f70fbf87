// What a report on prediction intervals is made of. The program fills it in, the reporters
// (one-page HTML, JSON) read it, and neither knows how the numbers came about.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fcp/conformal/level.h"
#include "fcp/evaluation/coverage.h"
#include "fcp/evaluation/interval_evaluation.h"

namespace fcp {

// One method on the test rows. What is left empty is left out of the report.
struct MethodResult {
  std::string name;
  IntervalEvaluation evaluation;
  std::optional<double> radius;   // none where it differs from row to row
  std::vector<double> scores;     // of the calibration rows, in any order
  std::vector<double> lengths;    // of the test intervals, all or a sample
  std::vector<CurvePoint> curve;  // coverage at several levels

  // False where the intervals are another set than the one whose coverage is guaranteed, as in the
  // paper's surrogate search; `detection` is then the coverage of the guaranteed one.
  bool guaranteed = true;
  std::optional<Coverage> detection;
};

// A test row to be drawn: its interval and its truth.
struct SampleRow {
  double prediction = 0;
  double lower = 0;
  double upper = 0;
  double truth = 0;
};

struct IntervalReport {
  std::string title = "Prediction intervals";
  std::string response = "y";  // the name of what is predicted
  Level level = Level(0.1);
  double confidence = 0.95;  // of the confidence intervals in the evaluations
  size_t calibration_rows = 0;
  std::vector<MethodResult> methods;  // the main one first; at least one
  std::vector<SampleRow> sample;      // of the main method; thinned to 300 rows when drawn
  std::vector<std::pair<std::string, std::string>> provenance;
  std::vector<std::string> notes;
};

}  // namespace fcp
