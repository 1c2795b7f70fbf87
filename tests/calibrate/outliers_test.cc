// Outliers by features: scores and p-values against a slow loop, and the rate of false ones.
#include "fcp/calibrate/outliers.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"

#include "tests/methods/scores/heads.h"

namespace fcp {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// A network whose feature at its cut is its input.
CalibrationArtifact input_artifact(int64_t columns) {
  CalibrationArtifact artifact;
  artifact.network = linear_head(torch::ones({1, columns}), torch::zeros({1}));
  artifact.method.score = ResidualOptions{};
  return artifact;
}

FeatureOutliers detector_of(const torch::Tensor& usual, const OutlierOptions& options) {
  const OutlierFeatures source(input_artifact(usual.size(1)), options.cut);
  return {source, source.of(usual), options};
}

using Matrix = std::vector<std::vector<double>>;

Matrix matrix_of(const torch::Tensor& rows) {
  Matrix all;
  for (int64_t i = 0; i < rows.size(0); ++i) {
    std::vector<double>& row = all.emplace_back();
    for (int64_t k = 0; k < rows.size(1); ++k) row.push_back(rows[i][k].item<double>());
  }
  return all;
}

// The definition, row by row: parted by the same permutation, standardised, sorted distances.
struct SlowOutliers {
  SlowOutliers(Matrix usual, const OutlierOptions& options) : options_(options) {
    const std::vector<size_t> order = Random(options.seed).permutation(usual.size());
    const size_t kept = std::min(options.kept, usual.size() / 2), width = usual[0].size();
    for (size_t i = 0; i < kept; ++i) reference_.push_back(usual[order[i]]);
    for (size_t k = 0; k < width; ++k) {
      double sum = 0, squares = 0;
      for (const auto& row : reference_) sum += row[k];
      mean_.push_back(sum / static_cast<double>(kept));
      for (const auto& row : reference_) squares += std::pow(row[k] - mean_[k], 2);
      deviation_.push_back(std::sqrt(squares / static_cast<double>(kept)));
    }
    std::vector<double> widths;
    for (const auto& row : reference_) widths.push_back(distances(row)[options.neighbours]);
    std::sort(widths.begin(), widths.end());
    width_ = widths[(widths.size() - 1) / 2];
    for (size_t i = kept; i < usual.size(); ++i) calibration_.push_back(score(usual[order[i]]));
  }

  double score(const std::vector<double>& row) const {
    const std::vector<double> all = distances(row);
    double sum = 0;
    if (options_.score == "density") {
      for (const double one : all) sum += std::exp(-one * one / (2 * width_ * width_));
      return -std::log(sum);
    }
    for (size_t i = 0; i < options_.neighbours; ++i) sum += all[i];
    return sum / static_cast<double>(options_.neighbours);
  }

  double p_value(double score) const {
    const auto most = std::count_if(calibration_.begin(), calibration_.end(),
                                    [&](double one) { return one >= score - 1e-12; });
    return static_cast<double>(1 + most) / static_cast<double>(1 + calibration_.size());
  }

 private:
  std::vector<double> distances(const std::vector<double>& row) const {
    std::vector<double> all;
    for (const auto& other : reference_) {
      double sum = 0;
      for (size_t k = 0; k < row.size(); ++k) {
        sum += std::pow((row[k] - other[k]) / deviation_[k], 2);
      }
      all.push_back(std::sqrt(sum));
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  OutlierOptions options_;
  Matrix reference_;
  std::vector<double> mean_, deviation_, calibration_;
  double width_ = 1;
};

TEST(Outliers, AsDefined) {
  Random random(31);
  const torch::Tensor usual = random_normal(random, {61, 3}) * torch::tensor({1.0f, 5.0f, 0.1f});
  const torch::Tensor fresh = random_normal(random, {9, 3});
  for (const char* score : {"neighbours", "density"}) {
    const OutlierOptions options{.score = score, .neighbours = 4, .kept = 25, .seed = 7};
    const FeatureOutliers found = detector_of(usual, options);
    EXPECT_EQ(found.reference_rows(), 25u);
    EXPECT_EQ(found.calibration_rows(), 36u);
    const SlowOutliers slow(matrix_of(usual), options);
    const std::vector<double> scores = found.scores(found.source().of(fresh));
    const std::vector<double> p_values = found.p_values(scores, {});
    const Matrix rows = matrix_of(fresh);
    for (size_t i = 0; i < rows.size(); ++i) {
      EXPECT_NEAR(scores[i], slow.score(rows[i]), 1e-9) << score;
      EXPECT_DOUBLE_EQ(p_values[i], slow.p_value(scores[i]));
    }
    // A row by itself has the same bits.
    EXPECT_EQ(found.scores(found.source().of(fresh.narrow(0, 3, 1)))[0], scores[3]);
  }
}

// 1,000 draws of 120 usual rows and 40 new ones, eight of them outliers. By the empirical Bernstein
// bound (Maurer, Pontil, 2009) the mean of the shares of false ones exceeds its expectation, at
// most 0.16, by less than √(2 V L / n) + 7 L / (3 (n − 1)), L = ln(2 · 10⁶), but with a chance of
// 1e-6.
TEST(Outliers, RateOfFalseOnesIsKept) {
  constexpr int kDraws = 1000;
  const OutlierFeatures source(input_artifact(2), "");
  Random random(32);
  double sum = 0, squares = 0, power = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    const torch::Tensor usual = random_normal(random, {120, 2});
    torch::Tensor fresh = random_normal(random, {40, 2});
    fresh.narrow(0, 0, 8).add_(6);
    const FeatureOutliers found(source, source.of(usual),
                                {.neighbours = 5, .seed = static_cast<uint64_t>(draw)});
    const std::vector<double> p = found.p_values(found.scores(fresh.to(torch::kDouble)), {});
    const std::vector<bool> told = discoveries(p, Level(0.2), found.dependence());
    const auto right = static_cast<double>(std::count(told.begin(), told.begin() + 8, true));
    const auto all = static_cast<double>(std::count(told.begin(), told.end(), true));
    const double share = all > 0 ? (all - right) / all : 0;
    sum += share / kDraws;
    squares += share * share / kDraws;
    power += right / 8 / kDraws;
  }
  const double terms = std::log(2e6), variance = squares - sum * sum;
  const double band = std::sqrt(2 * variance * terms / kDraws) + 7 * terms / (3 * (kDraws - 1));
  EXPECT_LT(sum, 0.16 + band) << "band " << band;
  EXPECT_LT(band, 0.1);
  EXPECT_GT(power, 0.5);
  RecordProperty("false_discovery_rate", std::to_string(sum));
  RecordProperty("power", std::to_string(power));
}

// Usual rows from N(0, 1), new ones from N(0.7, 1), whose ratio is exp(0.7 x − 0.245). Each draw
// gives one p-value, which is at most 0.2 with probability at most 0.2: by Hoeffding over 4,000
// draws the share is above 0.242 with a chance below 1e-6. Without weights it is far above.
TEST(Outliers, WeightsKeepPValuesValidUnderShift) {
  constexpr int kDraws = 4000;
  const OutlierFeatures source(input_artifact(1), "");
  Random random(33);
  const auto ratio = [](double x) { return std::exp(0.7 * x - 0.245); };
  double weighted = 0, plain = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    const torch::Tensor usual = random_normal(random, {60, 1});
    const torch::Tensor fresh = random_normal(random, {1, 1}) + 0.7;
    OutlierOptions options{.neighbours = 5, .seed = static_cast<uint64_t>(draw)};
    const torch::Tensor features = source.of(usual);
    const FeatureOutliers unweighted(source, features, options);
    const double* const x = features.data_ptr<double>();
    for (int64_t i = 0; i < 60; ++i) options.weights.push_back(ratio(x[i]));
    const FeatureOutliers found(source, features, options);
    EXPECT_EQ(found.dependence(), Dependence::kAny);
    const std::vector<double> scores = found.scores(fresh.to(torch::kDouble));
    const double own = ratio(fresh[0][0].item<double>());
    weighted += found.p_values(scores, {&own, 1})[0] <= 0.2 ? 1.0 / kDraws : 0;
    plain += unweighted.p_values(scores, {})[0] <= 0.2 ? 1.0 / kDraws : 0;
  }
  EXPECT_LT(weighted, 0.242);
  EXPECT_GT(plain, 0.242);
}

TEST(Outliers, FeaturesAreThoseOfTheCut) {
  CalibrationArtifact artifact = input_artifact(2);
  artifact.network = make_mlp({2, 5, 4, 1});
  torch::manual_seed(3);
  const torch::Tensor x = torch::randn({6, 2});
  EXPECT_EQ(OutlierFeatures(artifact, "h1").of(x).sizes(), torch::IntArrayRef({6, 5}));
  artifact.method.cut = "h2";
  const OutlierFeatures own(artifact, "");
  EXPECT_EQ(own.cut(), "h2");
  EXPECT_EQ(own.of(x).size(1), 4);
  // The predictor has none: two layers before the output.
  artifact.method.cut = "";
  EXPECT_EQ(OutlierFeatures(artifact, "").of(x).size(1), 5);
}

TEST(Outliers, SaysWhatIsWrong) {
  Random random(34);
  const torch::Tensor usual = random_normal(random, {20, 2});
  const auto made = [&](const OutlierOptions& options) {
    return [&usual, options] { detector_of(usual, options); };
  };
  EXPECT_THAT(made({.score = "distance"}), ThrowsMessage<Error>(HasSubstr("found distance")));
  EXPECT_THAT(made({.neighbours = 0}), ThrowsMessage<Error>(HasSubstr("found 0")));
  EXPECT_THAT(made({.weights = {1, 2}}), ThrowsMessage<Error>(HasSubstr("2 for 20 rows")));
  EXPECT_THAT(made({.weights = std::vector<double>(20, -1)}),
              ThrowsMessage<Error>(HasSubstr("row 0 (from 0) has -1")));
  EXPECT_THAT([&] { detector_of(usual.narrow(0, 0, 3), {}); },
              ThrowsMessage<Error>(HasSubstr("at least 4 usual rows")));
  torch::Tensor bad = usual.clone();
  bad[7][1] = std::nanf("");
  EXPECT_THAT([&] { detector_of(bad, {}); }, ThrowsMessage<Error>(HasSubstr("row 7 (from 0)")));
  const FeatureOutliers found = detector_of(usual, {});
  const std::vector<double> weight = {1};
  EXPECT_THAT([&] { found.p_values(weight, weight); },
              ThrowsMessage<Error>(HasSubstr("have none")));
  EXPECT_THAT(
      [&] {
        found.scores(torch::zeros({1, 3}, torch::kDouble));
      },
      ThrowsMessage<Error>(HasSubstr("rows of 3 features")));
}

}  // namespace
}  // namespace fcp
