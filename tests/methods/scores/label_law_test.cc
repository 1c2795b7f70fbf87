// The law k ∈ region(v, r) ⟺ score(v, k) ≤ r for the scores of labels, over random heads.
#include <gtest/gtest.h>

#include "fcp/methods/method.h"

#include "tests/methods/scores/heads.h"
#include "tests/methods/scores/label_heads.h"

namespace fcp {
namespace {

constexpr std::array kLabelNorms = {Norm::kInf, Norm::kTwo, Norm::kOne};

// Every other head with a rank term, of a size that matters.
int label_law(ScoreOptions options, int heads, int64_t rows, size_t radii, uint64_t seed) {
  Random random(seed);
  int pairs = 0;
  for (int i = 0; i < heads && !testing::Test::HasFailure(); ++i) {
    const double rank_weight = i % 2 == 0 ? 0 : std::pow(10, 4 * random.uniform() - 3);
    if (Norm* norm = options.find(field::norm)) *norm = kLabelNorms[static_cast<size_t>(i % 3)];
    if (bool* randomized = options.find(field::randomized)) *randomized = i % 4 < 2;
    if (double* own = options.find(field::temperature)) *own = std::pow(2, i % 3 - 1);
    if (double* weight = options.find(field::rank_weight)) *weight = rank_weight;
    if (int64_t* free = options.find(field::rank_free)) *free = i % 3;
    options.set(field::allow_empty, i % 5 < 2);
    const auto head = network_of(wild_head(random, 2 + static_cast<int64_t>(random.below(6))));
    const torch::Tensor features =
        random_normal(random, {rows, head->inputs()[0].shape[1]}) * std::pow(10, random.uniform());
    pairs += expect_label_law(*make_score(options, head), features, random, radii);
  }
  return pairs;
}

TEST(LabelLaw, Lac) { EXPECT_GT(label_law(LacOptions{}, 60, 20, 10, 1), 50000); }

TEST(LabelLaw, Aps) { EXPECT_GT(label_law(ApsOptions{}, 60, 20, 10, 2), 50000); }

TEST(LabelLaw, Raps) { EXPECT_GT(label_law(RapsOptions{}, 60, 20, 10, 3), 50000); }

TEST(LabelLaw, Saps) { EXPECT_GT(label_law(SapsOptions{}, 60, 20, 10, 8), 50000); }

// Sets that rank their labels in several rounds, with equal logits among them.
TEST(LabelLaw, ManyClasses) {
  constexpr int64_t kClasses = 300;
  Random random(7);
  const torch::Tensor features = (random_normal(random, {4, kClasses}) * 4).round() / 2;
  int pairs = 0;
  for (const char* name : {"lac", "aps", "raps", "saps"}) {
    for (const bool randomized : {false, true}) {
      ScoreOptions options(name);
      options.set(field::allow_empty, randomized);
      if (bool* drawn = options.find(field::randomized)) *drawn = randomized;
      if (double* weight = options.find(field::rank_weight)) *weight = 0.01;
      if (int64_t* free = options.find(field::rank_free)) *free = 5;
      pairs += expect_label_law(*make_score(options, logits_as_features(kClasses)), features,
                                random, 20);
    }
  }
  EXPECT_GT(pairs, 400000);
}

// A quarter of the heads are linear; the others go through bounds.
TEST(LabelLaw, FeatureMarginByIbp) {
  EXPECT_GT(label_law(FeatureMarginOptions{}, 40, 10, 4, 4), 8000);
}

TEST(LabelLaw, FeatureMarginByCrown) {
  EXPECT_GT(
      label_law(FeatureMarginOptions{.bound = {.method = BoundMethod::kCrownIbp, .outward = false}},
                2, 2, 1, 5),
      40);
}

TEST(LabelLaw, FeatureMarginOfOneLayer) {
  Random random(6);
  int pairs = 0;
  for (int i = 0; i < 60; ++i) {
    const int64_t classes = 2 + static_cast<int64_t>(random.below(40));
    const auto head = network_of(
        linear_head(random_normal(random, {classes, 5}), random_normal(random, {classes})));
    const ScoreOptions options =
        FeatureMarginOptions{.norm = kLabelNorms[static_cast<size_t>(i % 3)],
                             .rank_weight = i % 2 * 0.3,
                             .rank_free = i % 3,
                             .allow_empty = i % 5 < 2};
    pairs +=
        expect_label_law(*make_score(options, head), random_normal(random, {20, 5}), random, 5);
  }
  EXPECT_GT(pairs, 200000);
}

}  // namespace
}  // namespace fcp
