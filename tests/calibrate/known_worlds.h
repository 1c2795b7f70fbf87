// Small sets of rows with known answers, and predictors calibrated on them by hand.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "fcp/base/random.h"
#include "fcp/predictor/artifact.h"

#include "tests/calibrate/memory_rows.h"
#include "tests/nn/graphs.h"

namespace fcp::testing {

// y = 2 x0 − x1 + noise · scale.
inline MemoryRows line_rows(size_t rows, uint64_t seed, double scale = 1) {
  Random random(seed);
  const auto n = static_cast<int64_t>(rows);
  Array x = zeros({n, 2}), y = zeros({n, 1});
  for (float& value : x.values) value = static_cast<float>(random.normal());
  for (size_t i = 0; i < rows; ++i) {
    y.values[i] =
        static_cast<float>(2 * x.values[2 * i] - x.values[2 * i + 1] + scale * random.normal());
  }
  return {std::move(x), std::move(y)};
}

inline double line_residual(const MemoryRows& rows, size_t i) {
  const std::span<const float> x = rows.x().row(i);
  return std::abs(double{rows.y().values[i]} - double{2 * x[0] - x[1]});
}

// The network that knows the line, calibrated by its residuals on these rows.
inline CalibrationArtifact line_artifact(const MemoryRows& rows) {
  CalibrationArtifact artifact;
  artifact.network = make_mlp({2, 1});
  artifact.network.initializers["w1"] = torch::tensor({{2.0f, -1.0f}});
  artifact.network.initializers["b1"] = torch::zeros({1});
  artifact.method.score = ScoreOptions("residual");
  for (size_t i = 0; i < rows.x().rows(); ++i) {
    artifact.rows.scores.push_back(line_residual(rows, i));
  }
  std::sort(artifact.rows.scores.begin(), artifact.rows.scores.end());
  return artifact;
}

// Four classes; the logits are x, and the largest of x plus noise is the label.
inline MemoryRows class_rows(size_t rows, uint64_t seed) {
  Random random(seed);
  const auto n = static_cast<int64_t>(rows);
  Array x = zeros({n, 4}), y = zeros({n, 1});
  for (float& value : x.values) value = static_cast<float>(2 * random.normal());
  for (size_t i = 0; i < rows; ++i) {
    double best = -1e9;
    for (size_t k = 0; k < 4; ++k) {
      const double value = x.values[4 * i + k] + 2 * random.normal();
      if (value > best) best = value, y.values[i] = static_cast<float>(k);
    }
  }
  return {std::move(x), std::move(y)};
}

// 1 − the probability of label k: the score of `lac`.
inline double class_score(const MemoryRows& rows, size_t i, size_t k) {
  double sum = 0;
  for (const float logit : rows.x().row(i)) sum += std::exp(double{logit});
  return 1 - std::exp(double{rows.x().row(i)[k]}) / sum;
}

inline CalibrationArtifact class_artifact(const MemoryRows& rows) {
  CalibrationArtifact artifact;
  artifact.network = make_mlp({4, 4});
  artifact.network.initializers["w1"] = torch::eye(4);
  artifact.network.initializers["b1"] = torch::zeros({4});
  artifact.method.score = ScoreOptions("lac");
  for (size_t i = 0; i < rows.x().rows(); ++i) {
    artifact.rows.scores.push_back(class_score(rows, i, static_cast<size_t>(rows.y().values[i])));
  }
  std::sort(artifact.rows.scores.begin(), artifact.rows.scores.end());
  return artifact;
}

}  // namespace fcp::testing
