// Statistical tests say how sure they are: below 1e-6 all together.
#include "fcp/methods/calibrations/localized.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/methods/method.h"
#include "fcp/nn/runtime/network.h"

#include "tests/methods/calibrations/shifts.h"
#include "tests/nn/graphs.h"

namespace fcp {
namespace {

using testing::ThrowsMessage;

// v is uniform in [−1, 1], the score |ε| σ(v) with a spread that grows by a factor of 55 over it.
double local_spread(double v) { return std::exp(2 * v); }

std::vector<double> draw_places(Random& random, size_t count) {
  std::vector<double> places(count);
  for (double& place : places) place = 2 * random.uniform() - 1;
  return places;
}

CalibrationScores draw_local_rows(Random& random, size_t count) {
  const std::vector<double> places = draw_places(random, count);
  CalibrationScores rows;
  rows.features = feature_column(places);
  for (const double place : places) {
    rows.scores.push_back(std::abs(random.normal()) * local_spread(place));
  }
  return rows;
}

std::unique_ptr<Calibration> localized(const CalibrationScores& rows, double bandwidth,
                                       uint64_t seed = 0) {
  const CalibrationOptions options(LocalizedOptions{.bandwidth = bandwidth}, {.seed = seed});
  return make_calibration(options, rows);
}

// The true coverage at each place.
std::vector<double> coverage_at(const Calibration& calibration, const std::vector<double>& places) {
  const torch::Tensor radii =
      calibration.radii({feature_column(places), {}, {}}, Level(0.1)).contiguous();
  std::vector<double> coverage;
  for (size_t i = 0; i < places.size(); ++i) {
    coverage.push_back(normal_coverage(radii.data_ptr<double>()[i], local_spread(places[i])));
  }
  return coverage;
}

// The weights by their definition, in long loops, with the centre worked back from the p-value of
// a score that no calibration row reaches: what is left is the new row's own share of the mass.
TEST(Localized, OwnShareIsThatOfACentreNearby) {
  Random random(1);
  const CalibrationScores rows = draw_local_rows(random, 30);
  const std::vector<double> places = draw_places(random, 40);
  const double h = 0.3;
  const auto calibration = localized(rows, h);
  const std::vector<double> p =
      calibration->p_values({feature_column(places), {}, {}}, std::vector<double>(40, 1e9));
  const torch::Tensor kept = rows.features.to(torch::kDouble).contiguous();
  for (size_t i = 0; i < places.size(); ++i) {
    const double v = static_cast<float>(places[i]);
    // Some centre within five deviations has exactly this share.
    double nearest = 1;
    for (double offset = -5; offset <= 5; offset += 1e-3) {
      const double center = v + h * offset;
      const double own = std::exp(-offset * offset / 2);
      double total = own;
      for (int64_t j = 0; j < 30; ++j) {
        const double away = (kept.data_ptr<double>()[j] - center) / h;
        total += std::exp(-away * away / 2);
      }
      nearest = std::min(nearest, std::abs(own / total - p[i]));
    }
    EXPECT_LT(nearest, 1e-2) << v;
  }
}

// Over many calibrations the coverage of all rows is at least 0.9 for any bandwidth, and no more
// than a little above for a wide one. Each assertion fails by chance once in 1e7 times.
TEST(Localized, CoversAllRowsTogether) {
  for (const double bandwidth : {0.1, 0.5, 20.0}) {
    Random random(2);
    std::vector<double> coverage;
    for (uint64_t t = 0; t < 2500; ++t) {
      const CalibrationScores rows = draw_local_rows(random, 60);
      double sum = 0;
      for (const double one : coverage_at(*localized(rows, bandwidth, t), draw_places(random, 4))) {
        sum += one / 4;
      }
      coverage.push_back(sum);
    }
    const SureMean found = sure_mean(coverage);
    EXPECT_GT(found.mean, 0.9 - found.slack) << bandwidth;
    EXPECT_LT(found.slack, 0.04);
    if (bandwidth > 1) {
      EXPECT_LT(found.mean, 0.92 + found.slack);
    }
  }
}

// Coverage in each fifth of the places, the mean of many calibrations: split covers the fifth of
// the largest spread badly (0.59) and the others always; localized stays near 0.9 (0.89 there, with
// a standard error of 0.004). What is asserted lies ten standard errors and more from that.
TEST(Localized, CoversTheWorstRegionBetterThanSplit) {
  Random random(3);
  constexpr size_t kCalibrations = 40;
  std::vector<double> local[5], split[5];
  for (uint64_t t = 0; t < kCalibrations; ++t) {
    const CalibrationScores rows = draw_local_rows(random, 800);
    for (size_t fifth = 0; fifth < 5; ++fifth) {
      std::vector<double> places = draw_places(random, 50);
      for (double& place : places) {
        place = -1 + 0.4 * static_cast<double>(fifth) + 0.2 * (place + 1);
      }
      const auto mean = [&](const Calibration& calibration) {
        double sum = 0;
        for (const double one : coverage_at(calibration, places)) sum += one / 50;
        return sum;
      };
      local[fifth].push_back(mean(*localized(rows, 0.1, t)));
      split[fifth].push_back(mean(*make_calibration({}, rows)));
    }
  }
  const auto worst = [](const std::vector<double>* fifths) {
    double least = 1;
    for (size_t i = 0; i < 5; ++i) least = std::min(least, sure_mean(fifths[i]).mean);
    return least;
  };
  EXPECT_GT(worst(local), 0.85);
  EXPECT_LT(worst(split), 0.75);
}

// As h → ∞ all weights become equal, wherever the centre was drawn.
TEST(Localized, WideBandwidthIsSplit) {
  Random random(4);
  CalibrationScores rows = draw_local_rows(random, 50);  // α(n + 1) = 5.1 is not a tie
  const TestInputs fresh{feature_column(draw_places(random, 40)), {}, {}};
  const auto wide = localized(rows, 1e6);
  const auto split = make_calibration({}, rows);
  EXPECT_TRUE(torch::equal(wide->radii(fresh, Level(0.1)), split->radii(fresh, Level(0.1))));
  const std::vector<double> scores(rows.scores.begin(), rows.scores.begin() + 40);
  const std::vector<double> expected = split->p_values(fresh, scores);
  const std::vector<double> found = wide->p_values(fresh, scores);
  for (size_t i = 0; i < 40; ++i) EXPECT_NEAR(found[i], expected[i], 1e-4);
}

// A column that is the same for all rows changes no weight, however large it is.
TEST(Localized, ALargeConstantColumnChangesNothing) {
  Random random(12);
  const CalibrationScores rows = draw_local_rows(random, 300);
  const torch::Tensor fresh = feature_column(draw_places(random, 200));
  const auto radii = [&](float constant) {
    const auto with_column = [&](const torch::Tensor& column) {
      return torch::cat({column, torch::full_like(column, constant)}, 1);
    };
    CalibrationScores wide = rows;
    wide.features = with_column(rows.features);
    return localized(wide, 0.1)->radii({with_column(fresh), {}, {}}, Level(0.1));
  };
  const torch::Tensor expected = radii(0);
  EXPECT_GT(std::get<0>(torch::_unique(expected)).numel(), 20);
  for (const float constant : {1e4f, 1e7f, 1e8f}) {
    EXPECT_TRUE(torch::equal(radii(constant), expected)) << constant;
  }
}

// Four different inputs alone: coverage is the mean over the centres, which must therefore be drawn
// for every row. Each calibration judges 16 rows. False alarm: once in 1e7 times.
TEST(Localized, CoversFewDifferentRows) {
  Random random(13);
  std::vector<double> coverage;
  for (int t = 0; t < 2500; ++t) {
    const auto draw_fours = [&](size_t count) {
      std::vector<double> places;
      for (size_t i = 0; i < count; ++i) {
        places.push_back(-0.75 + 0.5 * static_cast<double>(random.below(4)));
      }
      return places;
    };
    const std::vector<double> places = draw_fours(60);
    CalibrationScores rows;
    rows.features = feature_column(places);
    for (const double place : places) {
      rows.scores.push_back(std::abs(random.normal()) * local_spread(place));
    }
    double sum = 0;
    for (const double one : coverage_at(*localized(rows, 0.5), draw_fours(16))) sum += one / 16;
    coverage.push_back(sum);
  }
  const SureMean found = sure_mean(coverage);
  EXPECT_GT(found.mean, 0.9 - found.slack);
  EXPECT_LT(found.slack, 0.02);
}

// The same row at the same place has the same radius alone and in company, today and tomorrow.
TEST(Localized, ARowHasOneRadius) {
  Random random(5);
  CalibrationScores rows = draw_local_rows(random, 200);
  rows.features = torch::empty({200, 7});
  torch::Tensor fresh = torch::empty({600, 7});
  for (torch::Tensor* features : {&rows.features, &fresh}) {
    float* data = features->data_ptr<float>();
    for (int64_t i = 0; i < features->numel(); ++i) data[i] = static_cast<float>(random.normal());
  }
  const auto calibration = localized(rows, 1.5, 9);
  const torch::Tensor all = calibration->radii({fresh, {}, {}}, Level(0.2));
  for (const int64_t row : {0, 17, 255, 256, 599}) {
    const torch::Tensor one = calibration->radii(
        {fresh.narrow(0, row, 1), {}, {}, {static_cast<uint64_t>(row)}}, Level(0.2));
    EXPECT_EQ(one.item<double>(), all[row].item<double>()) << row;
  }
  const torch::Tensor shaped = calibration->radii({fresh.reshape({600, 7, 1}), {}, {}}, Level(0.2));
  EXPECT_TRUE(torch::equal(shaped, all));
  // Another seed draws other centres.
  const torch::Tensor other = localized(rows, 1.5, 10)->radii({fresh, {}, {}}, Level(0.2));
  EXPECT_GT((other != all).sum().item<int64_t>(), 300);
  EXPECT_THAT(
      [&] {
        calibration->radii({torch::zeros({2, 6}), {}, {}}, Level(0.2));
      },
      ThrowsMessage<Error>("localized calibration was made on features of 7 numbers; found 6"));
}

// Far from everything only the new row itself speaks: the radius is infinite, not arbitrary.
TEST(Localized, FarFromEveryRowTheRadiusIsInfinite) {
  Random random(6);
  const CalibrationScores rows = draw_local_rows(random, 100);
  const torch::Tensor radii =
      localized(rows, 0.1)->radii({torch::full({1, 1}, 1e4f), {}, {}}, Level(0.1));
  EXPECT_EQ(radii.item<double>(), std::numeric_limits<double>::infinity());
}

// A head that answers 0, so that the residual is |y|.
std::unique_ptr<Score> distance_from_zero() {
  Graph graph = make_mlp({1, 1});
  graph.initializers["w1"] = torch::zeros({1, 1});
  graph.initializers["b1"] = torch::zeros({1});
  return make_score(ResidualOptions{}, std::make_shared<const Network>(graph));
}

BandwidthChoice choose(uint64_t seed, bool local) {
  Random random(seed);
  const std::vector<double> places = draw_places(random, 1000);
  std::vector<double> y;
  for (const double place : places) {
    y.push_back(random.normal() * (local ? local_spread(place) : 1));
  }
  return choose_bandwidth(*distance_from_zero(), feature_column(places), feature_column(y),
                          Level(0.1), seed);
}

TEST(ChooseBandwidth, IsSmallWhereTheSpreadIsLocalAndLargeWhereItIsNot) {
  for (const uint64_t seed : {7, 8, 9}) {
    const BandwidthChoice local = choose(seed, true), plain = choose(seed, false);
    ASSERT_EQ(local.candidates.size(), 6u);
    // The median distance of two uniform places in [−1, 1] is 2 − √2.
    EXPECT_NEAR(local.candidates[2].bandwidth, 2 - std::sqrt(2.0), 0.05);
    EXPECT_LE(local.chosen, 1u);
    // Where the spread is the same everywhere, wide windows lose nothing (2 % is noise).
    EXPECT_LT(plain.candidates[5].loss, 1.02 * plain.candidates[plain.chosen].loss);
    for (const BandwidthChoice& choice : {local, plain}) {
      for (size_t i = 0; i < 6; ++i) {
        const BandwidthCandidate& one = choice.candidates[i];
        EXPECT_GE(one.loss, choice.candidates[choice.chosen].loss);
        EXPECT_NEAR(one.coverage, 0.9, 0.1);  // six deviations of 1000 rows and their radii
        if (i == 0) continue;
        EXPECT_GT(one.effective_rows, choice.candidates[i - 1].effective_rows);
      }
      EXPECT_NEAR(choice.candidates[5].effective_rows, 500, 25);
    }
    EXPECT_LT(local.candidates[local.chosen].loss, 0.9 * local.candidates[5].loss);
  }
}

// Behind a ReLU most rows may be the same; the bandwidth is of the others.
TEST(ChooseBandwidth, LooksAtRowsThatDiffer) {
  Random random(10);
  torch::Tensor features = torch::full({400, 1}, 1000.1f);
  torch::Tensor y = torch::empty({400, 1});
  for (int64_t i = 0; i < 400; ++i) {
    if (i % 10 == 0) features[i] = features[i] + 1;
    y[i] = random.normal();
  }
  const BandwidthChoice choice =
      choose_bandwidth(*distance_from_zero(), features, y, Level(0.1), 0);
  EXPECT_NEAR(choice.candidates[2].bandwidth, 1, 1e-3);
  EXPECT_THAT(
      [&] {
        choose_bandwidth(*distance_from_zero(), torch::full({400, 1}, 0.1f), y, Level(0.1), 0);
      },
      ThrowsMessage<Error>(
          "the features of all rows are equal; localized calibration needs others"));
}

TEST(ChooseBandwidth, FailsWhereNothingIsFinite) {
  Random random(11);
  EXPECT_THAT(
      [&] {
        choose_bandwidth(*distance_from_zero(), feature_column(draw_places(random, 16)),
                         feature_column(draw_places(random, 16)), Level(0.1), 0);
      },
      ThrowsMessage<Error>("no bandwidth gives finite regions on the 16 selection rows"));
}

}  // namespace
}  // namespace fcp
