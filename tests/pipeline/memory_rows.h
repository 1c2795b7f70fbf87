// Rows in memory as a source, and small calibrated predictors for the tests of the pipeline.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fcp/base/random.h"
#include "fcp/calibration/artifact.h"
#include "fcp/data/rows.h"

#include "tests/network/graphs.h"

namespace fcp::testing {

class MemoryRows : public RowSource {
 public:
  MemoryRows(Array x, Array y) : x_(std::move(x)), y_(std::move(y)) {
    shape_.assign(x_.shape.begin() + 1, x_.shape.end());
  }

  bool next(size_t count, Rows& out) override {
    std::vector<size_t> wanted;
    for (size_t i = place_; i < std::min(place_ + count, x_.rows()); ++i) wanted.push_back(i);
    out = {take_rows(x_, wanted), y_.empty() ? Array() : take_rows(y_, wanted), place_};
    place_ += wanted.size();
    return !wanted.empty();
  }
  void rewind() override { place_ = 0; }
  std::optional<size_t> size() const override { return x_.rows(); }
  const std::vector<std::string>& column_names() const override { return no_names_; }
  const std::vector<std::string>& target_names() const override { return no_names_; }
  const std::vector<int64_t>& row_shape() const override { return shape_; }
  size_t target_count() const override { return y_.empty() ? 0 : y_.row_size(); }
  std::string row_place(size_t row) const override { return "row " + std::to_string(row); }

  const Array& x() const { return x_; }
  const Array& y() const { return y_; }

 private:
  Array x_, y_;
  std::vector<int64_t> shape_;
  std::vector<std::string> no_names_;
  size_t place_ = 0;
};

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
  artifact.score.name = "residual";
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
  artifact.score.name = "lac";
  for (size_t i = 0; i < rows.x().rows(); ++i) {
    artifact.rows.scores.push_back(class_score(rows, i, static_cast<size_t>(rows.y().values[i])));
  }
  std::sort(artifact.rows.scores.begin(), artifact.rows.scores.end());
  return artifact;
}

}  // namespace fcp::testing
