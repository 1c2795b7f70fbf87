// Reports for the tests: made of random intervals of known coverage, and the odd ones.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "fcp/base/random.h"
#include "fcp/base/special_numbers.h"
#include "fcp/conformal/quantile.h"
#include "fcp/evaluate/measures/coverage.h"
#include "fcp/evaluate/measures/evaluation_report.h"

#include "tests/evaluate/measures/coverage_curve.h"

namespace fcp::testing {

using fcp::kInfinity;
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// y = x + s(x) · noise, scores |y − x| / width(x): `scaled` knows s(x), the other one does not.
inline MethodResult sample_method(std::string name, bool scaled, size_t calibration, size_t rows,
                                  std::vector<Example>* sample = nullptr) {
  Random random(7);
  const Level level(0.1);
  const auto spread = [](double x) { return 0.2 + x * x; };
  const auto width = [&](double x) { return scaled ? spread(x) : 1.0; };
  MethodResult method;
  method.name = std::move(name);
  for (size_t i = 0; i < calibration; ++i) {
    const double x = random.uniform();
    method.scores.push_back(std::abs(spread(x) * random.normal()) / width(x));
  }
  const double radius = conformal_quantile(method.scores, level);
  method.radius = radius;
  std::vector<double> lower, upper, truth, test;
  std::vector<int64_t> groups;
  for (size_t i = 0; i < rows; ++i) {
    const double x = random.uniform();
    lower.push_back(x - radius * width(x));
    upper.push_back(x + radius * width(x));
    truth.push_back(x + spread(x) * random.normal());
    test.push_back(std::abs(truth.back() - x) / width(x));
    groups.push_back(static_cast<int64_t>(random.below(3)));
    method.lengths.push_back(upper.back() - lower.back());
    if (!sample) continue;
    const IntervalExample shown{x, lower.back(), upper.back(), truth.back()};
    sample->push_back(
        {.covered = Interval{shown.lower, shown.upper}.contains(shown.truth), .region = shown});
  }
  IntervalEvaluationOptions options;
  options.level = level;
  options.group_names = {"red", "<b>green</b>", "blue & white"};
  method.evaluation = evaluate_intervals(
      {.lower = lower, .upper = upper, .truth = truth, .weights = {}, .groups = groups}, 1,
      options);
  std::vector<Level> levels;
  for (uint64_t i = 1; i < 20; ++i) levels.push_back(Level::fraction(i, 20));
  method.curve = coverage_curve(sorted_scores(method.scores), test, levels);
  return method;
}

inline EvaluationReport sample_report(size_t calibration = 500, size_t rows = 1000) {
  EvaluationReport report;
  report.title = "Rentals <script>alert('x')</script> & \"more\"";
  report.response = "rentals";
  report.calibration_rows = calibration;
  report.methods.push_back(sample_method("nested", true, calibration, rows, &report.examples));
  report.methods.push_back(sample_method("residual", false, calibration, rows));
  report.provenance = {{"model", "a<b>.onnx"}, {"seed", "7"}};
  report.notes = {"Cut & floor chosen on a slice that was dropped."};
  return report;
}

// Three targets, of which the second has units of its own.
inline EvaluationReport targets_report() {
  const std::vector<double> lower(9, -1.0), upper(9, 1.0), truth = {0, 0, 2, 0, 0, 0, 1, 1, 5};
  const std::vector<double> prediction(9, 0.0);
  IntervalBatch rows;
  rows.lower = lower;
  rows.upper = upper;
  rows.truth = truth;
  rows.prediction = prediction;
  EvaluationReport report = sample_report();
  report.methods.resize(1);
  report.methods[0].evaluation = evaluate_intervals(rows, 3);
  report.responses = {"rentals", "<kg>", "2"};
  for (Example& example : report.examples) {
    example.others = {{.prediction = 1000, .lower = 900, .upper = 1100, .truth = 1200},
                      {.prediction = 1, .lower = 0, .upper = 2, .truth = 1}};
  }
  return report;
}

}  // namespace fcp::testing
