// The law of a share of pixels: the share of pixels in region(v, r) ≥ q ⟺ score(v, y) ≤ r.

#include "fcp/methods/scores/outputs.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/methods/method.h"

#include "tests/methods/scores/heads.h"
#include "tests/methods/scores/pixel_heads.h"

namespace fcp {
namespace {

TEST(Pixels, LeastNumber) {
  EXPECT_EQ(least_pixels(0.9, 10), 9);  // 0.9 · 10 is 9.000000000000002 by some roads
  EXPECT_EQ(least_pixels(0.9, 11), 10);
  EXPECT_EQ(least_pixels(0.99, 131072), 129762);
  EXPECT_EQ(least_pixels(1, 131072), 131072);
  EXPECT_EQ(least_pixels(1e-9, 5), 1);
  for (int64_t n = 1; n <= 1000; ++n) EXPECT_EQ(least_pixels(0.07, 100 * n), 7 * n);
}

TEST(Pixels, ShapeOfAnOutput) {
  EXPECT_EQ(pixel_shape(torch::zeros({2, 5, 3, 4})).channels, 5);
  EXPECT_EQ(pixel_shape(torch::zeros({2, 5, 3, 4})).count, 12);
  EXPECT_EQ(pixel_shape(torch::zeros({2, 7})).channels, 1);
  EXPECT_EQ(pixel_shape(torch::zeros({2, 7})).count, 7);
}

// Two channels of four pixels: a pixel is as unusual as its more unusual channel.
TEST(Pixels, QuantileByHand) {
  const torch::Tensor scores =
      torch::tensor({1.0, 9.0, 3.0, 2.0, 5.0, 1.0, 2.0, 2.5}, torch::kDouble).reshape({1, 8});
  const PixelShape shape{2, 4};  // pixels 5, 9, 3, 2.5
  const auto quantile = [&](double q) { return pixel_quantile(scores, shape, q).item<double>(); };
  EXPECT_EQ(quantile(0.25), 2.5);
  EXPECT_EQ(quantile(0.26), 3);
  EXPECT_EQ(quantile(0.75), 5);
  EXPECT_EQ(quantile(1), 9);
  EXPECT_TRUE(enough_pixels(scores <= 3, shape, 0.5).item<bool>());
  EXPECT_FALSE(enough_pixels(scores <= 3, shape, 0.51).item<bool>());
  torch::Tensor unknown = scores.clone();
  unknown[0][1] = std::nan("");
  EXPECT_TRUE(pixel_quantile(unknown, shape, 0.25).isnan().item<bool>());
}

// How many pixels have all channels inside, one after the other.
int64_t pixels_inside(const Regions& regions, const torch::Tensor& truth, int64_t row,
                      const PixelShape& shape) {
  const torch::Tensor lower = regions.lower[row].to(torch::kDouble).contiguous();
  const torch::Tensor upper = regions.upper[row].to(torch::kDouble).contiguous();
  const torch::Tensor truths = truth[row].to(torch::kDouble).contiguous();
  int64_t count = 0;
  for (int64_t pixel = 0; pixel < shape.count; ++pixel) {
    bool in = true;
    for (int64_t channel = 0; channel < shape.channels; ++channel) {
      const int64_t k = channel * shape.count + pixel;
      const double y = truths.data_ptr<double>()[k];
      in = in && lower.data_ptr<double>()[k] <= y && y <= upper.data_ptr<double>()[k];
    }
    count += in ? 1 : 0;
  }
  return count;
}

int expect_pixel_law(const ScoreOptions& options, const std::shared_ptr<const Network>& head,
                     const HeadRows& rows, const PixelShape& shape, Random& random) {
  const std::unique_ptr<Score> score = make_score(options, head);
  const std::vector<double> scores = score->score(rows.features, rows.truth);
  const int64_t least = least_pixels(options.pixels, shape.count);
  int pairs = 0;
  for (const double radius : exact_radii(random, scores, scores.size())) {
    const Regions regions = score->region(rows.features, radius);
    for (size_t i = 0; i < scores.size(); ++i, ++pairs) {
      const int64_t in = pixels_inside(regions, rows.truth, static_cast<int64_t>(i), shape);
      EXPECT_EQ(in >= least, scores[i] <= radius)
          << options.name() << ", row " << i << ": " << in << " of " << shape.count
          << ", asked for " << least << ", score " << scores[i] << ", radius " << radius;
    }
  }
  return pairs;
}

TEST(PixelLaw, ResidualAndNestedByIbp) {
  Random random(31);
  int pairs = 0;
  for (int i = 0; i < 8; ++i) {
    const auto head = network_of(pixel_head(random, 3, 1 + i % 3));
    const HeadRows rows = pixel_rows(random, *head, 3);
    for (const char* name : {"residual", "nested"}) {
      for (const double share : {0.05, 0.5, 0.9, 1.0}) {
        ScoreOptions options(name);
        options.pixels = share;
        pairs += expect_pixel_law(options, head, rows, {1 + i % 3, 36}, random);
      }
    }
  }
  EXPECT_GT(pairs, 1500);
}

// A bound that need not grow searches each output by itself; here outputs are pixels.
TEST(PixelLaw, NestedByCrown) {
  Random random(32);
  const auto head = network_of(wild_head(random, 5));
  const HeadRows rows = wild_rows(random, *head, 4);
  ScoreOptions options;
  options.find(field::bound)->method = BoundMethod::kCrownIbp;
  options.pixels = 0.6;
  EXPECT_GT(expect_pixel_law(options, head, rows, {1, 5}, random), 40);
}

TEST(Pixels, AllOfThemIsTheWhole) {
  Random random(33);
  const auto head = network_of(pixel_head(random, 3, 2));
  const HeadRows rows = pixel_rows(random, *head, 4);
  for (const char* name : {"residual", "nested"}) {
    const ScoreOptions whole(name), all(name, {.pixels = 1});
    EXPECT_EQ(make_score(whole, head)->score(rows.features, rows.truth),
              make_score(all, head)->score(rows.features, rows.truth));
  }
}

TEST(Pixels, RefusesWhatHasNone) {
  Random random(34);
  const auto head = network_of(pixel_head(random, 2, 2));
  ScoreOptions options = SurrogateOptions{};
  options.set(field::steps, 1);
  options.pixels = 0.9;
  EXPECT_THAT([&] { make_score(options, head); },
              testing::ThrowsMessage<Error>("surrogate: a share of the pixels (0.9) can be asked "
                                            "of residual, nested and lac alone"));
  options = ScoreOptions("nested", options);
  options.pixels = 1.5;
  EXPECT_THAT([&] { make_score(options, head); },
              testing::ThrowsMessage<Error>("nested: the share of pixels is 1.5, expected more "
                                            "than 0 and at most 1"));
}

// The same network with its feature divided by 8 and the next weights multiplied by 8: nested gives
// the same bands, bit by bit, while ten steps of the surrogate search move the feature as far as
// before, although 8 times less would do, and the band is another.
TEST(Pixels, NestedDoesNotSeeTheScaleOfFeatures) {
  Random random(35);
  Graph graph = pixel_head(random, 3, 2);
  const auto head = network_of(graph);
  graph.initializers["w1"] = graph.initializers["w1"].tensor() * 8;
  const auto scaled = network_of(graph);
  const HeadRows rows = pixel_rows(random, *head, 12);
  const torch::Tensor small = rows.features / 8;
  ASSERT_TRUE(torch::equal(head->forward(rows.features), scaled->forward(small)));
  const auto mean_length = [&](const Score& score, const torch::Tensor& features) {
    std::vector<double> scores = score.score(features, rows.truth);
    std::sort(scores.begin(), scores.end());
    const Regions regions = score.region(features, scores[10]);
    return (regions.upper - regions.lower).mean().item<double>();
  };
  for (const double share : {0.9, 1.0}) {
    ScoreOptions options;
    options.pixels = share;
    const auto before = make_score(options, head), after = make_score(options, scaled);
    const std::vector<double> scores = before->score(rows.features, rows.truth);
    const std::vector<double> small_scores = after->score(small, rows.truth);
    for (size_t i = 0; i < scores.size(); ++i) EXPECT_EQ(scores[i], 8 * small_scores[i]);
    const Regions wide = before->region(rows.features, scores[4]);
    const Regions same = after->region(small, scores[4] / 8);
    EXPECT_TRUE(torch::equal(wide.lower, same.lower));
    EXPECT_TRUE(torch::equal(wide.upper, same.upper));
    EXPECT_EQ(mean_length(*before, rows.features), mean_length(*after, small));
  }
  ScoreOptions paper = SurrogateOptions{};
  paper.set(field::steps, 10);
  paper.set(field::step_rate, 1e-4);
  const double before = mean_length(*make_score(paper, head), rows.features);
  const double after = mean_length(*make_score(paper, scaled), small);
  EXPECT_GT(after, 10 * before);
}

}  // namespace
}  // namespace fcp
