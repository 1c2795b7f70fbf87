// Radii and p-values of split, grouped and weighted calibration against slow references; what they
// promise by simulation. Statistical tests say how sure they are: below 1e-6 all together.
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/conformal/quantile.h"
#include "fcp/methods/calibrations/density_ratio.h"
#include "fcp/methods/calibrations/grouped.h"
#include "fcp/methods/calibrations/weighted.h"
#include "fcp/methods/method.h"

#include "tests/methods/calibrations/shifts.h"
#include "tests/reference/conformal_reference.h"

namespace fcp {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

CalibrationOptions named(const std::string& name) { return CalibrationOptions(name); }

std::vector<double> tied_scores(Random& random, size_t count) {
  std::vector<double> scores(count);
  for (double& score : scores) {
    score = random.below(12) == 0 ? kUnbounded : static_cast<double>(random.below(9)) - 4;
  }
  return scores;
}

// Calibration and new rows with everything any kind asks for: 3 groups and small whole weights.
struct Scene {
  Scene(Random& random, int64_t sides, size_t rows, size_t fresh_rows) {
    kept.sides = sides;
    kept.scores = tied_scores(random, rows * static_cast<size_t>(sides));
    kept.group_names = {"a", "b", "c"};
    for (size_t i = 0; i < rows; ++i) {
      kept.groups.push_back(static_cast<int64_t>(random.below(3)));
      kept.weights.push_back(static_cast<double>(random.below(4)));
    }
    fresh.features = torch::zeros({static_cast<int64_t>(fresh_rows), 1});
    for (size_t i = 0; i < fresh_rows; ++i) {
      fresh.groups.push_back(static_cast<int64_t>(random.below(4)) - 1);
      fresh.weights.push_back(static_cast<double>(random.below(4)));
    }
    scores = tied_scores(random, fresh_rows * static_cast<size_t>(sides));
  }

  CalibrationScores kept;
  TestInputs fresh;
  std::vector<double> scores;  // of the fresh rows
};

// The radius of one new row and side by its definition: each row of the calibration that counts
// for the new one, as often as it counts.
double slow_radius(const std::string& kind, const Scene& scene, size_t row, int64_t side,
                   uint64_t a, uint64_t b) {
  const std::vector<double> all = side_scores(scene.kept, side);
  if (kind == "split") return reference::quantile(all, a, b);
  if (kind == "weighted") {
    return reference::repeated_quantile(all, scene.kept.weights,
                                        static_cast<size_t>(scene.fresh.weights[row]), a, b);
  }
  if (scene.fresh.groups[row] < 0) return kUnbounded;
  std::vector<double> own;
  for (size_t i = 0; i < all.size(); ++i) {
    if (scene.kept.groups[i] == scene.fresh.groups[row]) own.push_back(all[i]);
  }
  return reference::quantile(own, a, b);
}

// The share of mass at or above the score, the new row's own included.
double slow_p_value(const std::string& kind, const Scene& scene, size_t row, int64_t side,
                    double score) {
  const std::vector<double> all = side_scores(scene.kept, side);
  const bool weighted = kind == "weighted";
  double above = weighted ? scene.fresh.weights[row] : 1, total = above;
  for (size_t i = 0; i < all.size(); ++i) {
    const bool counts = kind != "grouped" || scene.kept.groups[i] == scene.fresh.groups[row];
    const double weight = weighted ? scene.kept.weights[i] : counts ? 1 : 0;
    total += weight;
    if (all[i] >= score) above += weight;
  }
  return total == 0 ? 1 : above / total;
}

TEST(Calibration, EqualsItsDefinition) {
  Random random(1);
  for (const std::string kind : {"split", "grouped", "weighted"}) {
    for (int repeat = 0; repeat < 150; ++repeat) {
      const int64_t sides = 1 + repeat % 2;
      const Scene scene(random, sides, random.below(40), 8);
      const auto calibration = make_calibration(named(kind), scene.kept);
      const uint64_t a = 1 + random.below(99);
      const torch::Tensor radii =
          calibration->radii(scene.fresh, Level::fraction(a, 100)).contiguous();
      ASSERT_EQ(radii.sizes(), (std::vector<int64_t>{8, sides}));
      const std::vector<double> p = calibration->p_values(scene.fresh, scene.scores);
      ASSERT_EQ(p.size(), 8u);
      for (size_t row = 0; row < 8; ++row) {
        double least = 1;
        for (int64_t side = 0; side < sides; ++side) {
          const size_t at = row * static_cast<size_t>(sides) + static_cast<size_t>(side);
          ASSERT_EQ(radii.data_ptr<double>()[at],
                    slow_radius(kind, scene, row, side, a, 100 * static_cast<uint64_t>(sides)))
              << kind << ", n " << scene.kept.count() << ", alpha " << a;
          const bool unknown = kind == "grouped" && scene.fresh.groups[row] < 0;
          const double each = slow_p_value(kind, scene, row, side, scene.scores[at]);
          least = std::min(least, unknown ? 1 : each);
        }
        ASSERT_DOUBLE_EQ(p[row], std::min(1.0, least * static_cast<double>(sides))) << kind;
      }
    }
  }
}

// p > α exactly where all scores of the row are within their radii.
TEST(Calibration, PValuesAgreeWithRadii) {
  Random random(2);
  int in = 0, out = 0;
  for (const std::string kind : {"split", "grouped", "weighted", "localized"}) {
    for (int repeat = 0; repeat < 60; ++repeat) {
      const int64_t sides = 1 + repeat % 2;
      Scene scene(random, sides, 1 + random.below(60), 10);
      CalibrationOptions options = named(kind);
      const double bandwidth = std::pow(10, 4 * random.uniform() - 2);
      if (double* found = options.find(field::bandwidth)) *found = bandwidth;
      scene.kept.features = torch::empty({static_cast<int64_t>(scene.kept.count()), 1});
      for (torch::Tensor* features : {&scene.kept.features, &scene.fresh.features}) {
        for (int64_t i = 0; i < features->size(0); ++i) {
          (*features)[i][0] = random.normal();
        }
      }
      const auto calibration = make_calibration(options, scene.kept);
      const std::vector<double> p = calibration->p_values(scene.fresh, scene.scores);
      for (uint64_t a = 1; a < 20; ++a) {
        const Level level = Level::fraction(a, 20);
        const torch::Tensor radii = calibration->radii(scene.fresh, level).contiguous();
        for (size_t row = 0; row < p.size(); ++row) {
          bool within = true;
          for (size_t side = 0; side < static_cast<size_t>(sides); ++side) {
            const size_t at = row * static_cast<size_t>(sides) + side;
            within = within && scene.scores[at] <= radii.data_ptr<double>()[at];
          }
          ASSERT_EQ(p[row] > level.value(), within) << kind << ", p " << p[row] << ", " << a;
          ++(within ? in : out);
        }
      }
    }
  }
  EXPECT_GT(in, 3000);
  EXPECT_GT(out, 3000);
}

TEST(Calibration, ThePaperClampsTheRankAndGivesEachSideAlpha) {
  CalibrationScores rows;
  rows.sides = 2;
  for (int i = 1; i <= 19; ++i) rows.scores.insert(rows.scores.end(), {1.0 * i, -10.0 * i});
  CalibrationOptions options;
  const TestInputs one{torch::zeros({1, 1}), {}, {}};
  const auto radii = [&](const char* alpha) {
    const torch::Tensor both = make_calibration(options, rows)->radii(one, Level::parse(alpha));
    return std::vector<double>{both[0][0].item<double>(), both[0][1].item<double>()};
  };
  EXPECT_THAT(radii("0.1"), ElementsAre(19, -10));  // rank 19 of 0.05
  EXPECT_THAT(radii("0.08"), ElementsAre(kUnbounded, kUnbounded));
  options.paper = true;
  EXPECT_THAT(radii("0.1"), ElementsAre(18, -20));
  EXPECT_THAT(radii("0.04"), ElementsAre(19, -10));
}

TEST(Calibration, EqualWeightsAreSplit) {
  Random random(3);
  for (int repeat = 0; repeat < 50; ++repeat) {
    Scene scene(random, 1 + repeat % 2, 50, 5);
    scene.kept.weights.assign(50, 0.1);
    scene.fresh.weights.assign(5, 0.1);
    const auto split = make_calibration(named("split"), scene.kept);
    const auto weighted = make_calibration(named("weighted"), scene.kept);
    for (uint64_t a = 1; a < 51; ++a) {
      const Level level = Level::fraction(a, 51);  // ties with the rank
      EXPECT_TRUE(
          torch::equal(weighted->radii(scene.fresh, level), split->radii(scene.fresh, level)));
    }
    EXPECT_EQ(weighted->p_values(scene.fresh, scene.scores),
              split->p_values(scene.fresh, scene.scores));
  }
}

TEST(Calibration, EffectiveSampleSize) {
  EXPECT_EQ(effective_sample_size(std::vector<double>(7, 0.25)), 7);
  EXPECT_EQ(effective_sample_size(std::vector<double>{0, 5, 0}), 1);
  EXPECT_EQ(effective_sample_size(std::vector<double>{3, 1}), 1.6);
  EXPECT_EQ(effective_sample_size(std::vector<double>{0, 0}), 0);
}

// 9 rows of group a are enough for one tenth, 8 of b are not, of c there are none.
CalibrationScores uneven_groups() {
  CalibrationScores rows;
  rows.group_names = {"a", "b", "c"};
  for (int i = 0; i < 17; ++i) {
    rows.scores.push_back(i);
    rows.groups.push_back(i < 9 ? 0 : 1);
  }
  return rows;
}

TEST(Grouped, SmallAndUnknownGroupsAreUnbounded) {
  const CalibrationScores rows = uneven_groups();
  const auto calibration = make_calibration(named("grouped"), rows);
  const TestInputs fresh{torch::zeros({5, 1}), {0, 1, 2, -1, 7}, {}};
  const torch::Tensor radii = calibration->radii(fresh, Level(0.1)).contiguous();
  const double* data = radii.data_ptr<double>();
  EXPECT_THAT(std::vector<double>(data, data + 5),
              ElementsAre(8, kUnbounded, kUnbounded, kUnbounded, kUnbounded));
  const std::vector<double> far(5, 1e9);
  EXPECT_THAT(calibration->p_values(fresh, far), ElementsAre(0.1, 1.0 / 9, 1, 1, 1));
}

TEST(Grouped, NamesTheSmallGroups) {
  CalibrationScores rows = uneven_groups();
  EXPECT_EQ(small_groups_warning(rows, false, Level(0.1)),
            "2 groups have an infinite radius, because alpha 0.1 needs 9 calibration rows in each: "
            "'b' (8), 'c' (0)");
  EXPECT_EQ(small_groups_warning(rows, false, Level(0.2)),
            "1 group has an infinite radius, because alpha 0.2 needs 4 calibration rows in each: "
            "'c' (0)");
  EXPECT_EQ(small_groups_warning(rows, false, Level(0.1), 1),
            "2 groups have an infinite radius, because alpha 0.1 needs 9 calibration rows in each: "
            "'b' (8) and 1 more");
  rows.groups.back() = 2;
  EXPECT_EQ(small_groups_warning(rows, false, Level(0.6)), std::nullopt);
  // Two sides at half the level need more.
  rows.sides = 2;
  rows.scores.resize(34);
  EXPECT_THAT(*small_groups_warning(rows, false, Level(0.1)), HasSubstr("needs 19 calibration"));
}

// Each label is held against the radius of its own class, for every row.
TEST(Grouped, ByLabelGivesARadiusAClass) {
  CalibrationScores rows = uneven_groups();
  CalibrationOptions options = named("grouped");
  options.set(field::group, kByLabel);
  const auto calibration = make_calibration(options, rows, 3);
  const torch::Tensor radii = calibration->radii({torch::zeros({4, 2}), {}, {}}, Level(0.2));
  ASSERT_EQ(radii.sizes(), (std::vector<int64_t>{4, 3}));
  for (int64_t row = 0; row < 4; ++row) {
    EXPECT_EQ(radii[row][0].item<double>(), 7);
    EXPECT_EQ(radii[row][1].item<double>(), 16);
    EXPECT_EQ(radii[row][2].item<double>(), kUnbounded);
  }
  EXPECT_THAT(calibration->p_values({torch::zeros({2, 2}), {0, 1}, {}}, std::vector<double>{8, 8}),
              ElementsAre(0.2, 1));
  EXPECT_THAT(
      [&] {
        make_calibration(options, rows, 4)->radii({torch::zeros({1, 2}), {}, {}}, Level(0.2));
      },
      ThrowsMessage<Error>("calibration by label has 3 groups for 4 classes"));
}

TEST(Calibration, SaysWhatIsMissing) {
  Random random(4);
  const Scene scene(random, 1, 10, 3);
  const auto complaint = [&](const char* kind, auto damage) {
    return [&scene, kind, damage] {
      CalibrationScores rows = scene.kept;
      TestInputs fresh = scene.fresh;
      damage(rows, fresh);
      make_calibration(named(kind), rows)->radii(fresh, Level(0.1));
    };
  };
  EXPECT_THAT(complaint("grouped", [](auto& rows, auto&) { rows.groups.pop_back(); }),
              ThrowsMessage<Error>("grouped calibration found 9 groups for 10 rows"));
  EXPECT_THAT(complaint("grouped", [](auto& rows, auto&) { rows.groups[3] = 3; }),
              ThrowsMessage<Error>("group 3 is not one of the 3 groups"));
  EXPECT_THAT(
      complaint("grouped", [](auto&, auto& fresh) { fresh.groups.pop_back(); }),
      ThrowsMessage<Error>("grouped calibration needs the group of each row; found 2 for 3 rows"));
  EXPECT_THAT(complaint("weighted", [](auto& rows, auto&) { rows.weights.pop_back(); }),
              ThrowsMessage<Error>("weighted calibration found 9 weights for 10 rows"));
  EXPECT_THAT(complaint("weighted", [](auto& rows, auto&) { rows.weights[4] = -1; }),
              ThrowsMessage<Error>(HasSubstr("weight of row 4 is -1")));
  EXPECT_THAT(complaint("weighted", [](auto& rows, auto&) { rows.scores[6] = std::nan(""); }),
              ThrowsMessage<Error>(HasSubstr("score of row 6 is NaN")));
  EXPECT_THAT(
      complaint("weighted", [](auto&, auto& fresh) { fresh.weights.clear(); }),
      ThrowsMessage<Error>(HasSubstr("needs the likelihood ratio of each row; found 0 for")));
  EXPECT_THAT(complaint("localized", [](auto&, auto&) {}),
              ThrowsMessage<Error>("localized calibration needs the features of its rows"));
  EXPECT_THAT(complaint("localized",
                        [](auto& rows, auto&) {
                          rows.features = torch::zeros({10, 1});
                        }),
              ThrowsMessage<Error>("localized calibration needs a bandwidth above 0; found 0"));
  EXPECT_THAT(complaint("mondrian", [](auto&, auto&) {}),
              ThrowsMessage<Error>("there is no calibration 'mondrian'; there are split, grouped, "
                                   "localized and weighted"));
}

// The largest distance of the true coverages from the Beta law of n rows.
double distance_to_beta(std::vector<double> coverage, size_t rank, size_t n) {
  std::sort(coverage.begin(), coverage.end());
  const auto count = static_cast<double>(coverage.size());
  double distance = 0;
  for (size_t i = 0; i < coverage.size(); ++i) {
    const double expected = reference::beta_cdf(coverage[i], rank, n);
    distance = std::max({distance, std::abs(expected - static_cast<double>(i) / count),
                         std::abs(expected - static_cast<double>(i + 1) / count)});
  }
  return distance;
}

// Scores of group g are uniform in [0, g + 1], so that the true coverage of radius r there is
// r / (g + 1): by the Beta law of the group's own rows. Classes of labels are such groups. The
// distance of Kolmogorov and Smirnov exceeds the limit with a chance of 1e-7 in each of 4 cases
// (Massart). Split calibration covers the groups very differently.
TEST(Grouped, CoverageOfEachGroupFollowsTheBetaLaw) {
  constexpr size_t kCalibrations = 1500;
  constexpr size_t kRows[] = {49, 19};
  const double limit = std::sqrt(std::log(2 / 1e-7) / (2.0 * kCalibrations));
  const Level level(0.1);
  for (const bool by_label : {false, true}) {
    Random random(by_label ? 5 : 6);
    CalibrationOptions options = named("grouped");
    if (by_label) options.set(field::group, kByLabel);
    std::vector<double> coverage[2], split_coverage[2];
    for (size_t t = 0; t < kCalibrations; ++t) {
      CalibrationScores rows;
      rows.group_names = {"narrow", "wide"};
      for (const size_t group : {0, 1}) {
        for (size_t i = 0; i < kRows[group]; ++i) {
          rows.groups.push_back(static_cast<int64_t>(group));
          rows.scores.push_back(random.uniform() * static_cast<double>(group + 1));
        }
      }
      const torch::Tensor radii =
          make_calibration(options, rows, 2)->radii({torch::zeros({2, 1}), {0, 1}, {}}, level);
      const torch::Tensor split =
          make_calibration({}, rows)->radii({torch::zeros({1, 1}), {}, {}}, level);
      for (const int64_t group : {0, 1}) {
        const double radius = radii[by_label ? 0 : group][by_label ? group : 0].item<double>();
        coverage[group].push_back(radius / static_cast<double>(group + 1));
        split_coverage[group].push_back(
            std::min(1.0, split.item<double>() / static_cast<double>(group + 1)));
      }
    }
    for (const size_t group : {0, 1}) {
      const size_t rank = conformal_rank(level, kRows[group]);
      EXPECT_LT(distance_to_beta(coverage[group], rank, kRows[group]), limit) << group;
      EXPECT_GT(distance_to_beta(coverage[group], rank - 1, kRows[group]), limit) << group;
    }
    EXPECT_LT(sure_mean(split_coverage[1]).mean + sure_mean(split_coverage[1]).slack, 0.8);
  }
}

// x is N(0, 1) where calibration rows come from and N(1.5, 1) where the new ones do; the spread of
// y doubles with every unit of x, so that a plain radius is too short there.
struct Shift {
  static constexpr double kBy = 1.5;

  explicit Shift(uint64_t seed) : random(seed) {}

  static double spread(double x) { return std::exp2(x); }
  static double ratio(double x) { return std::exp(kBy * x - kBy * kBy / 2); }

  std::vector<double> draw(size_t count, double mean) {
    std::vector<double> x(count);
    for (double& one : x) one = mean + random.normal();
    return x;
  }

  std::vector<double> scores(const std::vector<double>& x) {
    std::vector<double> result;
    for (const double one : x) result.push_back(std::abs(random.normal()) * spread(one));
    return result;
  }

  Random random;
};

// The mean true coverage of these radii.
double mean_coverage(const torch::Tensor& radii, const std::vector<double>& x) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    sum += normal_coverage(radii[static_cast<int64_t>(i)][0].item<double>(), Shift::spread(x[i]));
  }
  return sum / static_cast<double>(x.size());
}

// Coverage over many calibrations, 4 new rows each, of a ratio that `weigh` gives for x.
template <typename MakeWeigh>
void expect_shift(uint64_t seed, size_t calibrations, size_t rows, double least, double most,
                  const MakeWeigh& make_weigh) {
  Shift shift(seed);
  std::vector<double> weighted, split;
  for (size_t t = 0; t < calibrations; ++t) {
    const std::vector<double> x = shift.draw(rows, 0), fresh = shift.draw(4, Shift::kBy);
    const auto weigh = make_weigh(shift);
    CalibrationScores kept;
    kept.scores = shift.scores(x);
    kept.weights = weigh(x);
    const TestInputs asked{torch::zeros({4, 1}), {}, weigh(fresh)};
    const Level level(0.1);
    weighted.push_back(
        mean_coverage(make_calibration(named("weighted"), kept)->radii(asked, level), fresh));
    split.push_back(mean_coverage(make_calibration({}, kept)->radii(asked, level), fresh));
  }
  const SureMean found = sure_mean(weighted), plain = sure_mean(split);
  EXPECT_GT(found.mean, least - found.slack);
  EXPECT_LT(found.mean, most + found.slack);
  EXPECT_LT(plain.mean + plain.slack, 0.8);
  EXPECT_LT(found.slack, 0.06);  // so that the assertions say something
}

// With the exact ratio the expected coverage is at least 0.9, and at most as much more as the
// heaviest weight's share is on average; each assertion fails by chance once in 1e7 times.
TEST(Weighted, CoversAfterAShiftWhereSplitFails) {
  expect_shift(7, 2500, 300, 0.9, 0.96, [](Shift&) {
    return [](const std::vector<double>& x) {
      std::vector<double> weights;
      for (const double one : x) weights.push_back(Shift::ratio(one));
      return weights;
    };
  });
}

// With a ratio estimated from 200 rows of each kind the promise holds about: within 0.03.
TEST(Weighted, CoversAboutWithAnEstimatedRatio) {
  expect_shift(8, 1500, 300, 0.87, 0.97, [](Shift& shift) {
    const DensityRatio ratio = fit_density_ratio(feature_column(shift.draw(200, 0)),
                                                 feature_column(shift.draw(200, Shift::kBy)));
    return [ratio](const std::vector<double>& x) { return ratio.weights(feature_column(x)); };
  });
}

}  // namespace
}  // namespace fcp
