// What a report on label sets is made of: the twin of interval_report.h. The program fills it in,
// the reporters (one-page HTML, JSON) read it, and neither knows how the numbers came about.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fcp/conformal/level.h"
#include "fcp/evaluation/coverage.h"
#include "fcp/evaluation/set_evaluation.h"

namespace fcp {

// One method on the test rows. What is left empty is left out of the report.
struct LabelMethodResult {
  std::string name;
  SetEvaluation evaluation;
  std::optional<double> radius;   // none where it differs from row to row
  std::vector<double> scores;     // of the calibration rows, in any order
  std::vector<CurvePoint> curve;  // coverage at several levels

  // False where the sets are other sets than those whose coverage is guaranteed; `detection` is
  // then the coverage of the guaranteed ones.
  bool guaranteed = true;
  std::optional<Coverage> detection;

  // How often the network's first label, or one of its first five, is the true one. On the page
  // they are shown for the main method only: they say nothing about the sets.
  std::optional<double> top1;
  std::optional<double> top5;
};

// A test row to be shown with its set.
struct LabelExample {
  std::string name;
  std::string image_png;  // the bytes of a PNG file; empty where there is no picture
  std::string truth;
  std::string prediction;
  std::vector<std::string> members;  // of the set, in the order they are to be read
  bool covered = false;
};

struct LabelReport {
  std::string title = "Label sets";
  Level level = Level(0.1);
  double confidence = 0.95;  // of the confidence intervals in the evaluations
  size_t calibration_rows = 0;
  std::vector<LabelMethodResult> methods;  // the main one first; at least one
  std::vector<LabelExample> examples;      // of the main method; the first 24 are shown
  std::vector<std::pair<std::string, std::string>> provenance;
  std::vector<std::string> notes;
  std::vector<std::string> class_names;  // by class, as the evaluations were given them
};

}  // namespace fcp
