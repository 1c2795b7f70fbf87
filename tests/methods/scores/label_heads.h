// Heads and truths for the tests of label scores, and the law they are held against.
#pragma once

#include <memory>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "fcp/base/random.h"
#include "fcp/methods/scores/score.h"
#include "fcp/nn/runtime/network.h"

#include "tests/methods/scores/heads.h"

namespace fcp {

// The features are the logits.
inline std::shared_ptr<const Network> logits_as_features(int64_t classes) {
  return network_of(linear_head(torch::eye(classes), torch::zeros({classes})));
}

// Labels drawn from softmax(logits): the largest of logit + Gumbel noise.
inline torch::Tensor drawn_labels(Random& random, const torch::Tensor& logits) {
  torch::Tensor noisy = logits.to(torch::kDouble).contiguous().clone();
  double* numbers = noisy.data_ptr<double>();
  for (int64_t i = 0; i < noisy.numel(); ++i) {
    numbers[i] -= std::log(-std::log(1 - random.uniform()));
  }
  return noisy.argmax(1, /*keepdim=*/true);
}

// score() of every label, [N, C].
inline torch::Tensor all_label_scores(const Score& score, const torch::Tensor& features) {
  std::vector<torch::Tensor> columns;
  for (int64_t label = 0; label < score.classes(); ++label) {
    const std::vector<double> scores = score.score(
        features, torch::full({features.size(0), 1}, static_cast<double>(label), torch::kDouble));
    columns.push_back(torch::tensor(scores, torch::kDouble));
  }
  return torch::stack(columns, 1);
}

// k ∈ region(v, r) ⟺ score(v, k) ≤ r: at `radii` scores and the doubles just below them for all
// rows, and with a radius for each label that is its own score, or just below it.
inline int expect_label_law(const Score& score, const torch::Tensor& features, Random& random,
                            size_t radii) {
  const torch::Tensor all = all_label_scores(score, features);
  EXPECT_FALSE(all.isnan().any().item<bool>());
  const auto check = [&](const torch::Tensor& radius) {
    const torch::Tensor members = score.region(features, radius).members;
    EXPECT_TRUE(torch::equal(members, all <= radius)) << "scores " << all << "\nradii " << radius;
    return static_cast<int>(members.numel());
  };
  const auto below = [](const torch::Tensor& radius) {
    return torch::nextafter(radius, torch::full_like(radius, -kForever));
  };
  const int64_t rows = features.size(0);
  int pairs = check(all) + check(below(all));
  for (const double radius : {-1.0, 0.0, kForever}) {
    pairs += check(torch::full({rows, 1}, radius, torch::kDouble));
  }
  for (size_t i = 0; i < radii; ++i) {
    const double radius =
        all.flatten()[static_cast<int64_t>(random.below(static_cast<uint64_t>(all.numel())))]
            .item<double>();
    const torch::Tensor column = torch::full({rows, 1}, radius, torch::kDouble);
    pairs += check(column) + check(below(column));
  }
  return pairs;
}

}  // namespace fcp
