// The exact range of small ReLU networks over a box, by enumeration: slow and obviously right.
//
// A ReLU network is linear on each cell of the input on which no unit changes sign, so it takes its
// extrema at the corners of the cells. With one input a cell is a segment, and the segments of a
// deep network are found layer by layer. With two inputs and one hidden layer the corners are where
// two of the units' lines, or a line and a side of the box, cross.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

namespace fcp::reference {

struct Layer {
  std::vector<std::vector<double>> weight;  // [out][in]
  std::vector<double> bias;
};

inline std::vector<double> apply_layer(const Layer& layer, const std::vector<double>& x) {
  std::vector<double> y = layer.bias;
  for (size_t i = 0; i < y.size(); ++i) {
    for (size_t j = 0; j < x.size(); ++j) y[i] += layer.weight[i][j] * x[j];
  }
  return y;
}

// Before the ReLU of the layer with this index.
inline std::vector<double> run_to(const std::vector<Layer>& layers, size_t last,
                                  std::vector<double> x) {
  for (size_t i = 0; i <= last; ++i) {
    x = apply_layer(layers[i], x);
    if (i < last) {
      for (double& value : x) value = std::max(value, 0.0);
    }
  }
  return x;
}

struct ExactRange {
  double lower = INFINITY, upper = -INFINITY;
  void add(double value) {
    lower = std::min(lower, value);
    upper = std::max(upper, value);
  }
};

// The range of output 0 over [l, u].
inline ExactRange range_in_one_dimension(const std::vector<Layer>& layers, double l, double u) {
  std::vector<double> ends = {l, u};
  for (size_t layer = 0; layer + 1 < layers.size(); ++layer) {
    std::vector<double> next = ends;
    for (size_t i = 0; i + 1 < ends.size(); ++i) {
      const std::vector<double> left = run_to(layers, layer, {ends[i]});
      const std::vector<double> right = run_to(layers, layer, {ends[i + 1]});
      for (size_t unit = 0; unit < left.size(); ++unit) {
        if (left[unit] * right[unit] >= 0) continue;
        const double share = left[unit] / (left[unit] - right[unit]);
        next.push_back(ends[i] + share * (ends[i + 1] - ends[i]));
      }
    }
    std::sort(next.begin(), next.end());
    ends = std::move(next);
  }
  ExactRange range;
  for (const double x : ends) range.add(run_to(layers, layers.size() - 1, {x})[0]);
  return range;
}

// The range of output 0 over the box, for one hidden layer.
inline ExactRange range_in_two_dimensions(const std::vector<Layer>& layers,
                                          const std::array<double, 2>& l,
                                          const std::array<double, 2>& u) {
  struct Line {
    double a, b, c;  // ax + by + c = 0
  };
  std::vector<Line> lines = {{1, 0, -l[0]}, {1, 0, -u[0]}, {0, 1, -l[1]}, {0, 1, -u[1]}};
  for (size_t i = 0; i < layers[0].bias.size(); ++i) {
    lines.push_back({layers[0].weight[i][0], layers[0].weight[i][1], layers[0].bias[i]});
  }
  ExactRange range;
  for (size_t i = 0; i < lines.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const auto [a, b, c] = lines[i];
      const auto [d, e, f] = lines[j];
      const double determinant = a * e - b * d;
      if (std::abs(determinant) < 1e-12) continue;
      const double x = (b * f - c * e) / determinant, y = (c * d - a * f) / determinant;
      const double slack = 1e-9;
      if (x < l[0] - slack || x > u[0] + slack || y < l[1] - slack || y > u[1] + slack) continue;
      range.add(run_to(layers, 1, {std::clamp(x, l[0], u[0]), std::clamp(y, l[1], u[1])})[0]);
    }
  }
  return range;
}

}  // namespace fcp::reference
