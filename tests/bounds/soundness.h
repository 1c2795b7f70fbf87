// No sampled or searched point of a ball leaves the band of any method.
#pragma once

#include <gtest/gtest.h>

#include "tests/bounds/heads.h"

namespace fcp {

struct SoundnessEffort {
  int samples = 20;  // batches of points
  int searches = 3;  // steps of gradient ascent for each output and end
  double radius = 0.5;
  int64_t copies = 1;  // points of each ball in a batch
};

// Each row of the tensor so many times, one after the other; an undefined tensor stays so.
inline torch::Tensor row_copies(const torch::Tensor& rows, int64_t copies) {
  return copies == 1 || !rows.defined() ? rows : rows.repeat_interleave(copies, 0);
}

// Counts the points tried. Also that α-CROWN is never looser than CROWN.
// What the network computes, and what it would compute without rounding (nearly: in double
// precision), must both be inside.
inline int64_t check_soundness(const NamedGraph& named, int64_t rows,
                               const SoundnessEffort& effort) {
  const auto head = head_of(named.graph);
  Graph exact_graph = named.graph;
  for (TensorInfo& input : exact_graph.inputs) input.type = ElementType::kDouble;
  for (auto& [name, value] : exact_graph.initializers) {
    if (value.is_floating_point()) value = value.tensor().to(torch::kDouble);
  }
  const auto exact = head_of(std::move(exact_graph));
  std::vector<int64_t> shape = head->inputs()[0].shape;
  shape[0] = rows;
  int64_t points = 0;
  for (const Norm norm : kAllNorms) {
    std::vector<int64_t> row(shape.begin() + 1, shape.end());
    const torch::Tensor scale = norm == Norm::kTwo ? torch::rand(row) + 0.5 : torch::Tensor();
    const Ball ball = {torch::randn(shape), torch::rand({rows}) * effort.radius, norm, scale};
    std::vector<Range> ranges;
    for (const BoundMethod method : kAllMethods) {
      BoundOptions options;
      options.method = method;
      options.iterations = 6;
      ranges.push_back(make_bounds(head, options)->ranges(ball)[0]);
    }
    const auto try_points = [&](const torch::Tensor& x) {
      const torch::Tensor y = head->forward(x).detach();
      const torch::Tensor true_y = exact->forward(x.detach().to(torch::kDouble)).detach();
      points += x.size(0);
      const int64_t copies = x.size(0) / rows;
      for (size_t i = 0; i < kAllMethods.size(); ++i) {
        const Range range = {row_copies(ranges[i].lower, copies),
                             row_copies(ranges[i].upper, copies)};
        EXPECT_TRUE(contains(range, y) && contains(range, true_y))
            << named.name << " " << bound_name(kAllMethods[i]) << " norm " << norm_name(norm);
      }
    };
    const Ball many = {row_copies(ball.center, effort.copies),
                       row_copies(ball.radius, effort.copies), norm, scale};
    for (int i = 0; i < effort.samples; ++i) try_points(sample_ball(many, i % 2));
    const int64_t outputs = std::min<int64_t>(ranges[0].lower.numel() / rows, 4);
    for (int64_t k = 0; k < outputs; ++k) {
      for (const double sign : {-1.0, 1.0}) {
        try_points(push(*head, ball, sample_ball(ball, 1), k, sign, effort.searches));
      }
    }
    const torch::Tensor slack = ranges[2].upper.abs() * 1e-5 + 1e-5;
    EXPECT_TRUE((ranges[3].upper <= ranges[2].upper + slack).all().item<bool>()) << named.name;
    EXPECT_TRUE((ranges[3].lower >= ranges[2].lower - slack).all().item<bool>()) << named.name;
  }
  return points;
}

}  // namespace fcp
