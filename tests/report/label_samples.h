// A report on label sets for the tests: a noisy classifier, its sets by two scores.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fcp/base/random.h"
#include "fcp/conformal/quantile.h"
#include "fcp/evaluate/measures/coverage.h"
#include "fcp/evaluate/measures/evaluation_report.h"

#include "tests/evaluate/measures/coverage_curve.h"

namespace fcp::testing {

// A grey PNG of one pixel.
inline std::string one_pixel_png() {
  const unsigned char bytes[] = {
      0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48,
      0x44, 0x52, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x00, 0x00,
      0x00, 0x3a, 0x7e, 0x9b, 0x55, 0x00, 0x00, 0x00, 0x0a, 0x49, 0x44, 0x41, 0x54, 0x78,
      0xda, 0x63, 0x68, 0x00, 0x00, 0x00, 0x82, 0x00, 0x81, 0xda, 0x45, 0x08, 0x3b, 0x00,
      0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};
  return std::string(reinterpret_cast<const char*>(bytes), sizeof(bytes));
}

inline std::vector<std::string> sample_class_names(size_t classes) {
  std::vector<std::string> names = {"<b>cat</b>", "dog & fox"};
  for (size_t c = names.size(); c < classes; ++c) names.push_back("class " + std::to_string(c));
  return names;
}

// Logits are noise with the true one raised, less so for later classes: those are the hard ones.
inline std::vector<double> sample_probabilities(Random& random, size_t label, size_t classes) {
  std::vector<double> p(classes);
  double sum = 0;
  for (size_t c = 0; c < classes; ++c) {
    const double easy = 3 - 2 * static_cast<double>(label) / static_cast<double>(classes);
    p[c] = std::exp(random.normal() + (c == label ? easy : 0));
    sum += p[c];
  }
  for (double& value : p) value /= sum;
  return p;
}

// The score of a label: 1 − p (as `lac`), or the mass of the labels before it (as `aps`).
inline double sample_score(const std::vector<double>& p, size_t label, bool mass) {
  if (!mass) return 1 - p[label];
  double before = 0;
  for (double value : p) before += value > p[label] ? value : 0;
  return before;
}

inline MethodResult sample_label_method(std::string name, bool mass, size_t calibration,
                                        size_t rows, size_t classes) {
  Random random(11);
  MethodResult method;
  method.name = std::move(name);
  for (size_t i = 0; i < calibration; ++i) {
    const size_t label = random.below(classes);
    method.scores.push_back(
        sample_score(sample_probabilities(random, label, classes), label, mass));
  }
  const double radius = conformal_quantile(method.scores, Level(0.1));
  method.radius = radius;
  SetEvaluator evaluator(classes, {.class_names = sample_class_names(classes)});
  std::vector<double> test;
  for (size_t i = 0; i < rows; ++i) {
    const size_t label = random.below(classes);
    const std::vector<double> p = sample_probabilities(random, label, classes);
    std::vector<uint8_t> members;
    for (size_t c = 0; c < classes; ++c) members.push_back(sample_score(p, c, mass) <= radius);
    const std::vector<int64_t> truth = {static_cast<int64_t>(label)};
    evaluator.add({.members = members, .truth = truth});
    test.push_back(sample_score(p, label, mass));
  }
  method.evaluation = evaluator.finish();
  std::vector<Level> levels;
  for (uint64_t i = 1; i < 20; ++i) levels.push_back(Level::fraction(i, 20));
  method.curve = coverage_curve(sorted_scores(method.scores), test, levels);
  return method;
}

inline EvaluationReport sample_label_report(size_t calibration = 500, size_t rows = 1000,
                                            size_t classes = 20) {
  EvaluationReport report;
  report.title = "Animals <script>alert('x')</script> & \"more\"";
  report.calibration_rows = calibration;
  report.class_names = sample_class_names(classes);
  report.methods.push_back(sample_label_method("lac", false, calibration, rows, classes));
  report.methods.push_back(sample_label_method("aps", true, calibration, rows, classes));
  report.methods[0].top1 = 0.8125;
  report.methods[0].top5 = 0.9375;
  report.examples = {
      {"row 1 <img>", one_pixel_png(), true,
       LabelExample{"<b>cat</b>", "<b>cat</b>", {"<b>cat</b>"}}},
      {"row 2", "", false, LabelExample{"dog & fox", "class 3", {"class 3", "class 4"}}},
      {"row 3", one_pixel_png(), false, LabelExample{"class 5", "class 5", {}}}};
  report.provenance = {{"model", "a<b>.onnx"}, {"seed", "11"}};
  report.notes = {"The temperature & the rank were chosen on a slice that was dropped."};
  return report;
}

}  // namespace fcp::testing
