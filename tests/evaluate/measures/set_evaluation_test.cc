#include "fcp/evaluate/measures/set_evaluation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"

namespace fcp {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

struct SetTable {
  size_t rows, classes;
  std::vector<uint8_t> members;
  std::vector<int64_t> truth, groups;

  LabelSetBatch all() const { return {members, truth, groups}; }
};

// Sets from empty to full: each row has its own chance of membership.
SetTable random_sets(uint64_t seed, size_t rows, size_t classes) {
  Random random(seed);
  SetTable table{.rows = rows, .classes = classes, .members = {}, .truth = {}, .groups = {}};
  for (size_t row = 0; row < rows; ++row) {
    const double chance = 1.4 * random.uniform() - 0.2;
    for (size_t c = 0; c < classes; ++c) {
      table.members.push_back(random.uniform() < chance ? static_cast<uint8_t>(1 + c % 3) : 0);
    }
    table.truth.push_back(static_cast<int64_t>(random.below(classes)));
    table.groups.push_back(static_cast<int64_t>(random.below(3)) - 1);
  }
  return table;
}

TEST(SetEvaluation, UnknownLabelsAreMissesOfNoClass) {
  const std::vector<uint8_t> members(3 * 2, 1);
  const std::vector<int64_t> truth = {1, kUnknownLabel, 1};
  const SetEvaluation found = evaluate_sets({members, truth}, 2);
  EXPECT_EQ(found.coverage.covered, 2u);
  EXPECT_EQ(found.unknown_rows, 1u);
  ASSERT_EQ(found.class_coverage.size(), 1u);
  EXPECT_EQ(found.class_coverage[0].coverage.rows, 2u);
}

TEST(SetEvaluation, TellsTheSkillOfProbabilities) {
  const std::vector<uint8_t> members(4 * 2, 1);
  const std::vector<int64_t> truth = {0, 1, kUnknownLabel, 1}, answers = {0, 1, 0, 0};
  const std::vector<float> logs = {-0.1F, -2, -2, -0.1F, -1, -1, -0.5F, -1};
  const SetEvaluation found = evaluate_sets(
      {.members = members, .truth = truth, .prediction = answers, .log_probabilities = logs}, 2);
  EXPECT_NEAR(found.log_loss.value(), (0.1 + 0.1 + 1) / 3, 1e-7) << "without the unknown row";
  ASSERT_EQ(found.answers.size(), 2u);
  EXPECT_EQ(found.answers[1].auc.value(), 1);
  EXPECT_EQ(found.auc.value(), 1);
  const std::vector<float> short_of_one(7, -1.0F);
  EXPECT_THROW(
      evaluate_sets({.members = members, .truth = truth, .log_probabilities = short_of_one}, 2),
      Error);
  EXPECT_FALSE(evaluate_sets({members, truth}, 2).log_loss);
}

TEST(SetEvaluation, EqualsTheSlowVersion) {
  for (const size_t classes : {1u, 2u, 10u}) {
    for (const size_t rows : {1u, 30u, 300u}) {
      const SetTable table = random_sets(rows + classes, rows, classes);
      const SetEvaluation found = evaluate_sets(table.all(), classes, {.strata = 3});
      std::vector<double> sizes(rows);
      std::vector<uint8_t> covered(rows);
      GroupCounts by_class, by_group;
      double total = 0;
      for (size_t row = 0; row < rows; ++row) {
        for (size_t c = 0; c < classes; ++c) sizes[row] += table.members[row * classes + c] > 0;
        covered[row] = table.members[row * classes + static_cast<size_t>(table.truth[row])] > 0;
        by_class.add(table.truth[row], covered[row]);
        by_group.add(table.groups[row], covered[row]);
        total += sizes[row];
      }
      const double n = static_cast<double>(rows);
      EXPECT_EQ(found.rows, rows);
      EXPECT_EQ(found.classes, classes);
      EXPECT_EQ(found.coverage.covered, std::count(covered.begin(), covered.end(), 1));
      EXPECT_DOUBLE_EQ(found.mean_size, total / n);
      ASSERT_EQ(found.size_histogram.size(), classes + 1);
      for (size_t size = 0; size <= classes; ++size) {
        EXPECT_EQ(found.size_histogram[size],
                  std::count(sizes.begin(), sizes.end(), static_cast<double>(size)));
      }
      EXPECT_DOUBLE_EQ(found.empty_share, std::count(sizes.begin(), sizes.end(), 0) / n);
      EXPECT_DOUBLE_EQ(found.full_share, std::count(sizes.begin(), sizes.end(), classes) / n);

      const auto same = [](const auto& a, const auto& b) {
        ASSERT_EQ(a.size(), b.size());
        for (size_t i = 0; i < a.size(); ++i) {
          EXPECT_EQ(a[i].name, b[i].name);
          EXPECT_EQ(a[i].coverage.covered, b[i].coverage.covered);
          EXPECT_EQ(a[i].coverage.rows, b[i].coverage.rows);
        }
      };
      same(found.class_coverage, group_coverage(by_class));
      same(found.groups, group_coverage(by_group));
      EXPECT_EQ(found.worst_class.name, worst_group(found.class_coverage).name);
      EXPECT_EQ(found.worst_group->name, worst_group(found.groups).name);

      const std::vector<Stratum> strata = coverage_by_size(sizes, covered, 3);
      ASSERT_EQ(found.size_strata.size(), strata.size());
      for (size_t s = 0; s < strata.size(); ++s) {
        EXPECT_EQ(found.size_strata[s].low, strata[s].low);
        EXPECT_EQ(found.size_strata[s].high, strata[s].high);
        EXPECT_EQ(found.size_strata[s].coverage.covered, strata[s].coverage.covered);
        EXPECT_EQ(found.size_strata[s].coverage.rows, strata[s].coverage.rows);
      }
    }
  }
}

TEST(SetEvaluation, KnownExample) {
  const std::vector<uint8_t> members = {1, 0, 0,  //
                                        0, 0, 0,  //
                                        1, 1, 1,  //
                                        0, 1, 1};
  const std::vector<int64_t> truth = {0, 2, 2, 0};
  const SetEvaluation found = evaluate_sets({.members = members, .truth = truth}, 3,
                                            {.class_names = {"cat", "dog", "owl"}});
  EXPECT_EQ(found.coverage.rate, 0.5);
  EXPECT_EQ(found.mean_size, 1.5);
  EXPECT_EQ(found.size_histogram, (std::vector<size_t>{1, 1, 1, 1}));
  EXPECT_EQ(found.empty_share, 0.25);
  EXPECT_EQ(found.full_share, 0.25);
  ASSERT_EQ(found.class_coverage.size(), 2u);  // no dog among the truth
  EXPECT_EQ(found.worst_class.name, "cat");
  EXPECT_FALSE(found.worst_group.has_value());
}

TEST(SetEvaluation, BatchesEqualTheWhole) {
  const SetTable table = random_sets(5, 100, 4);
  const SetEvaluation whole = evaluate_sets(table.all(), 4);
  SetEvaluator evaluator(4);
  for (size_t first = 0; first < 100; first += 30) {
    const size_t count = std::min<size_t>(30, 100 - first);
    evaluator.add({std::span(table.members).subspan(4 * first, 4 * count),
                   std::span(table.truth).subspan(first, count),
                   std::span(table.groups).subspan(first, count)});
  }
  const SetEvaluation batched = evaluator.finish();
  EXPECT_EQ(batched.coverage.covered, whole.coverage.covered);
  EXPECT_EQ(batched.size_histogram, whole.size_histogram);
  EXPECT_EQ(batched.worst_group->coverage.rate, whole.worst_group->coverage.rate);
  EXPECT_EQ(batched.size_strata.size(), whole.size_strata.size());
}

TEST(SetEvaluation, RefusesWhatDoesNotFit) {
  SetTable table = random_sets(5, 10, 4);
  EXPECT_THROW(SetEvaluator(0), Error);
  EXPECT_THROW(SetEvaluator(4).finish(), Error);
  EXPECT_THROW(evaluate_sets(table.all(), 3), Error);
  EXPECT_THROW(evaluate_sets(table.all(), 4, {.strata = 0}), Error);
  LabelSetBatch rows = table.all();
  rows.groups = rows.groups.first(2);
  EXPECT_THROW(evaluate_sets(rows, 4), Error);
  table.truth[6] = 4;
  EXPECT_THAT([&] { evaluate_sets(table.all(), 4); },
              ThrowsMessage<Error>(HasSubstr("row 6: label 4; expected 0 to 3")));
}

// Rows that the network answers wrongly, the most frequent pair first.
TEST(SetEvaluation, Confusions) {
  const std::vector<uint8_t> members = {1, 1, 1, 0, 0, 1, 0, 1, 1, 0};
  const std::vector<int64_t> truth = {0, 1, 1, 0, 0}, prediction = {0, 0, 0, 1, 0};
  LabelSetBatch rows{.members = members, .truth = truth};
  EXPECT_TRUE(evaluate_sets(rows, 2).confusions.empty());
  rows.prediction = prediction;
  SetEvaluationOptions options;
  options.class_names = {"cat", "dog"};
  const SetEvaluation all = evaluate_sets(rows, 2, options);
  ASSERT_EQ(all.confusions.size(), 2u);
  EXPECT_EQ(all.confused_rows, 3u);
  EXPECT_EQ(all.confusions[0].truth, "dog");
  EXPECT_EQ(all.confusions[0].prediction, "cat");
  EXPECT_EQ(all.confusions[0].rows, 2u);
  EXPECT_EQ(all.confusions[0].covered, 1u);
  EXPECT_EQ(all.confusions[1].rows, 1u);
  EXPECT_EQ(all.confusions[1].covered, 0u);
  options.most_confusions = 1;
  EXPECT_EQ(evaluate_sets(rows, 2, options).confusions.size(), 1u);
  EXPECT_EQ(evaluate_sets(rows, 2, options).confused_rows, 3u);
  rows.prediction = std::span(prediction).first(3);
  EXPECT_THROW(evaluate_sets(rows, 2), Error);
}

}  // namespace
namespace {

using testing::ElementsAre;

TEST(BoundaryPixels, ByHand) {
  const std::vector<uint8_t> labels = {1, 1, 1, 1, 2, 2,                         //
                                       1, 1, 1, 1, 1, 1,                         //
                                       1, 1, 1, 1, 1, 1,                         //
                                       1, 1, 1, 1, 1, 1};                        //
  EXPECT_THAT(boundary_pixels(labels, 4, 6, 2), ElementsAre(0, 0, 1, 1, 1, 1,    //
                                                            0, 0, 0, 0, 1, 1,    //
                                                            0, 0, 0, 0, 1, 1,    //
                                                            0, 0, 0, 0, 0, 0));  //
  EXPECT_THAT(boundary_pixels(labels, 4, 6, 1), ElementsAre(0, 0, 0, 1, 1, 1,    //
                                                            0, 0, 0, 0, 1, 1,    //
                                                            0, 0, 0, 0, 0, 0,    //
                                                            0, 0, 0, 0, 0, 0));  //
  EXPECT_THROW(boundary_pixels(labels, 4, 5), Error);
}

// Two channels of four pixels: pixel 0 is in, 1 misses by its second channel, 2 by both, 3 is in.
struct MadeUpImage {
  std::array<double, 8> lower = {0, 0, 0, 0, 0, 0, 0, 0};
  std::array<double, 8> upper = {1, 1, 1, 3, 1, 1, 1, 1};
  std::array<double, 8> truth = {0, 1, 2, 3, 1, -0.5, 2, 0.5};
  std::array<double, 8> weights = {0.5, 0, 0, 0.5, 0, 0, 0, 0};
  std::array<uint8_t, 4> boundary = {0, 0, 0, 1};
  std::array<float, 4> uncertainty = {0.25f, 0.5f, 0.75f, 1};

  ImageBands bands() const { return {lower, upper, truth, weights, boundary, uncertainty}; }
};

TEST(PixelEvaluation, BandsByHand) {
  const MadeUpImage image;
  const ImageFigures figures = band_figures(image.bands(), 2);
  EXPECT_EQ(figures.pixels, 4u);
  EXPECT_EQ(figures.pixels_in, 2u);
  EXPECT_EQ(figures.values_in, 5.0 / 8);
  EXPECT_EQ(figures.length(), 10.0 / 8);
  EXPECT_EQ(figures.weighted_length, 2);
  EXPECT_EQ(figures.boundary.mean(), 2);
  EXPECT_EQ(figures.inside.mean(), 1);
  EXPECT_EQ(figures.boundary_uncertainty.mean(), 1);
  EXPECT_EQ(figures.inside_uncertainty.mean(), 0.5);
  EXPECT_TRUE(PixelEvaluator(0.5).covers(figures));
  EXPECT_FALSE(PixelEvaluator(0.51).covers(figures));
  EXPECT_THROW(band_figures(image.bands(), 3), Error);
}

TEST(PixelEvaluation, InfiniteBands) {
  MadeUpImage image;
  image.lower.fill(-std::numeric_limits<double>::infinity());
  image.upper.fill(std::numeric_limits<double>::infinity());
  const ImageFigures figures = band_figures(image.bands(), 2);
  EXPECT_EQ(figures.pixels_in, 4u);
  EXPECT_TRUE(std::isinf(figures.length()));
  EXPECT_TRUE(std::isinf(figures.weighted_length));
}

TEST(PixelEvaluation, SetsByHand) {
  const std::array<bool, 8> members = {true, false, true, true, true, false, false, false};
  const std::array<int64_t, 4> labels = {1, 0, 0, -1};
  const std::array<uint8_t, 4> boundary = {1, 0, 0, 0};
  const ImageFigures figures = set_figures({members, labels, boundary}, 2);
  EXPECT_EQ(figures.pixels, 3u);
  EXPECT_EQ(figures.pixels_in, 2u);
  EXPECT_EQ(figures.boundary.mean(), 2);
  EXPECT_EQ(figures.inside.mean(), 2.0 / 3);
  EXPECT_EQ(figures.length(), 1);
}

TEST(PixelEvaluation, ManyImages) {
  PixelEvaluator evaluator(0.5);
  ImageFigures all{10, 10, 1, 2, {4, 2}, {8, 8}, {1, 2}, {0.5, 8}};
  ImageFigures half{10, 5, 0.75, 4, {0, 0}, {20, 10}, {0, 0}, {1, 10}};
  ImageFigures few{10, 4, 0.5, 6, {6, 1}, {9, 9}, {0.5, 1}, {3, 9}};
  for (const ImageFigures& image : {all, half, few}) evaluator.add(image);
  const PixelEvaluation result = evaluator.finish();
  EXPECT_EQ(result.coverage.covered, 2u);
  EXPECT_EQ(result.whole.covered, 1u);
  EXPECT_EQ(result.coverage.rows, 3u);
  EXPECT_DOUBLE_EQ(result.pixel_coverage, 1.9 / 3);
  EXPECT_DOUBLE_EQ(result.value_coverage, 0.75);
  EXPECT_DOUBLE_EQ(result.length, (1.2 + 2 + 1.5) / 3);
  EXPECT_DOUBLE_EQ(result.weighted_length, 4);
  EXPECT_DOUBLE_EQ(result.boundary_length, 10.0 / 3);
  EXPECT_DOUBLE_EQ(result.inside_length, 37.0 / 27);
  EXPECT_DOUBLE_EQ(result.boundary_uncertainty, 0.5);
  EXPECT_DOUBLE_EQ(result.inside_uncertainty, 4.5 / 27);
  EXPECT_THROW(PixelEvaluator(1).finish(), Error);
}

}  // namespace
}  // namespace fcp
