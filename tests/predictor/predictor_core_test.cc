#include "fcp/predictor/predictor_core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

using internal::PredictorCore;
using internal::RowPlaces;

using testing::ElementsAre;

// A network of three outputs with residuals of 0, 1, … 99 and all that any kind needs.
CalibrationArtifact hundred_rows(const std::string& kind) {
  torch::manual_seed(1);
  CalibrationArtifact artifact;
  artifact.network = make_mlp({2, 5, 3});
  artifact.method.cut = "h1";
  artifact.method.score = ResidualOptions{};
  artifact.method.calibration = CalibrationOptions(kind);
  if (std::string* group = artifact.method.calibration.find(field::group)) *group = "column";
  if (double* width = artifact.method.calibration.find(field::bandwidth)) *width = 1;
  artifact.rows.group_names = {"even", "odd"};
  for (int i = 0; i < 100; ++i) {
    artifact.rows.scores.push_back(i);
    artifact.rows.groups.push_back(i % 2);
    artifact.rows.weights.push_back(i < 50 ? 1 : 0);
  }
  artifact.rows.features = torch::randn({100, 5}).relu();
  return artifact;
}

// The region of each row is the score's at the row's own radius, and the truth is in it where its
// p-value says so.
TEST(PredictorCore, RegionsAndPValuesAgree) {
  Random random(1);
  for (const char* kind : {"split", "grouped", "localized", "weighted"}) {
    const CalibrationArtifact artifact = hundred_rows(kind);
    const PredictorCore predictor(artifact);
    const torch::Tensor x = torch::randn({60, 2});
    SideInformation given;
    for (int64_t i = 0; i < 60; ++i) {
      given.groups.push_back(i % 3 - 1);
      given.weights.push_back(random.uniform());
    }
    const TestInputs rows = predictor.describe(x, given);
    const Level level(0.2);
    const torch::Tensor truth =
        predictor.region(rows, level).prediction + torch::randn({60, 3}, torch::kDouble) * 40;
    const Regions regions = predictor.region(rows, level);
    const std::vector<double> p_values =
        predictor.p_values(rows, truth, predictor.score().score(rows.features, truth));
    const torch::Tensor in =
        (regions.lower <= truth).logical_and(truth <= regions.upper).all(1).contiguous();
    for (int64_t i = 0; i < 60; ++i) {
      EXPECT_EQ(p_values[static_cast<size_t>(i)] > 0.2, in[i].item<bool>()) << kind << i;
    }
    EXPECT_GT(in.sum().item<int64_t>(), 5) << kind;
    EXPECT_LT(in.sum().item<int64_t>(), 55) << kind;
  }
}

// Features of small batches differ in their last bits from those of large ones; the radius of a row
// at its place of the data does not.
TEST(PredictorCore, ARowHasOneLocalizedRadiusInAnyBatch) {
  CalibrationArtifact artifact = hundred_rows("localized");
  artifact.network = make_mlp({40, 64, 1});
  artifact.rows.features = torch::randn({100, 64}).relu();
  artifact.method.calibration.set(field::bandwidth, 8);
  const PredictorCore predictor(artifact);
  const torch::Tensor x = torch::randn({300, 40});
  const auto radii = [&](const torch::Tensor& rows, int64_t first) {
    SideInformation given;
    given.first = static_cast<uint64_t>(first);
    return predictor.calibration().radii(predictor.describe(rows, given), Level(0.3));
  };
  const torch::Tensor all = radii(x, 0);
  int64_t equal = 0;
  for (int64_t i = 0; i < 300; ++i) {
    equal += radii(x.narrow(0, i, 1), i).item<double>() == all[i].item<double>() ? 1 : 0;
  }
  // Where two scores share the level to seven digits, the last bits may still decide.
  EXPECT_GE(equal, 298);
  EXPECT_GT(std::get<0>(torch::_unique(all)).numel(), 20);
}

// The draws of randomized sets and of centres follow the row, not the company it comes in.
TEST(PredictorCore, ARowHasOneLabelSetInAnyBatch) {
  for (const char* score : {"aps", "raps", "saps"}) {
    CalibrationArtifact artifact = hundred_rows("localized");
    artifact.network = make_mlp({40, 64, 5});
    artifact.method.score = ScoreOptions(score);
    if (double* weight = artifact.method.score.find(field::rank_weight)) *weight = 0.1;
    for (double& one : artifact.rows.scores) one /= 100;
    artifact.rows.features = torch::randn({100, 64}).relu();
    artifact.method.calibration.set(field::bandwidth, 8);
    const PredictorCore predictor(artifact);
    const torch::Tensor x = torch::randn({200, 40});
    const auto sets = [&](const torch::Tensor& rows, int64_t first) {
      SideInformation given;
      given.first = static_cast<uint64_t>(first);
      return predictor.region(predictor.describe(rows, given), Level(0.3)).members;
    };
    const torch::Tensor all = sets(x, 0);
    for (int64_t i = 0; i < 200; ++i) {
      EXPECT_TRUE(sets(x.narrow(0, i, 1), i)[0].equal(all[i])) << score << ", row " << i;
    }
    EXPECT_GT(all.sum().item<int64_t>(), 200);
    EXPECT_LT(all.sum().item<int64_t>(), 900);
  }
}

// Equal rows draw their centres independently.
TEST(PredictorCore, EqualRowsGetDifferentLocalizedCentres) {
  const PredictorCore predictor(hundred_rows("localized"));
  const torch::Tensor x = torch::full({200, 2}, 0.5);
  const torch::Tensor radii = predictor.calibration().radii(predictor.describe(x), Level(0.3));
  EXPECT_GT(std::get<0>(torch::_unique(radii)).numel(), 10);
}

// One row at a time, two different x alone: each calibration judges four rows, by places of their
// own. The feature is x itself, and the residual is wide where x = 1. By x and seed alone (place 0)
// coverage is that of two draws. Hoeffding over 4,000 independent calibrations: below 0.9 by more
// than 0.0416 with a chance of 1e-6.
TEST(PredictorCore, LocalizedCoversRowsThatComeOneByOne) {
  Random random(7);
  double covered = 0;
  constexpr int kTrials = 4000, kFresh = 4;
  const RowPlaces places;
  const auto draw = [&](float& x) {
    x = static_cast<float>(random.below(2));
    return random.normal() * (x == 0 ? 1 : 4);
  };
  CalibrationArtifact artifact;
  artifact.network = make_mlp({1, 1});
  for (auto& [name, tensor] : artifact.network.initializers) tensor = torch::zeros_like(tensor);
  artifact.method.cut = artifact.network.inputs[0].name;
  artifact.method.score = ResidualOptions{};
  artifact.method.calibration = LocalizedOptions{};
  artifact.method.calibration.set(field::bandwidth, 0.5);
  const auto network = std::make_shared<const ScoredNetwork>(
      artifact.network, artifact.method.score, artifact.method.cut, torch::kCPU);
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<float> x(30);
    artifact.rows.scores.clear();
    for (float& one : x) artifact.rows.scores.push_back(std::abs(draw(one)));
    artifact.rows.features = torch::tensor(x).reshape({30, 1});
    const PredictorCore predictor(std::make_shared<const CalibrationArtifact>(artifact),
                                  torch::kCPU, network);
    for (int i = 0; i < kFresh; ++i) {
      float place = 0;
      const double y = draw(place);
      const TestInputs row = predictor.describe(
          torch::full({1, 1}, place), {.groups = {}, .weights = {}, .first = places.answer(1)});
      const double radius = predictor.calibration().radii(row, Level(0.1)).item<double>();
      covered += std::abs(y) <= radius ? 1.0 / (kTrials * kFresh) : 0;
    }
  }
  EXPECT_GT(covered, 0.9 - 0.0416);
}

TEST(PredictorCore, PlacesAreGivenOneByOneOrInARow) {
  const PredictorCore predictor(hundred_rows("localized"));
  const torch::Tensor x = torch::full({3, 2}, 0.5);
  const auto radii = [&](const SideInformation& given) {
    return predictor.calibration().radii(predictor.describe(x, given), Level(0.3));
  };
  SideInformation row{.groups = {}, .weights = {}, .first = 4}, each;
  each.places = {4, 5, 6};
  EXPECT_TRUE(torch::equal(radii(row), radii(each)));
  each.places = {6, 5, 4};
  EXPECT_TRUE(torch::equal(radii(row), radii(each).flip(0)));
  each.places = {1};
  EXPECT_THAT([&] { radii(each); }, testing::ThrowsMessage<Error>("found 1 places for 3 rows"));
  const RowPlaces places;
  EXPECT_EQ(places.answer(3), 0u);
  EXPECT_EQ(places.answer(1), 3u);
  EXPECT_EQ(places.judge(1), 0u);
}

TEST(PredictorCore, GroupsByTheNetworksAnswer) {
  CalibrationArtifact artifact = hundred_rows("grouped");
  artifact.method.calibration.set(field::group, kByPrediction);
  artifact.rows.group_names = {"0", "1", "2"};
  const PredictorCore predictor(artifact);
  const torch::Tensor x = torch::randn({20, 2});
  const torch::Tensor expected = Network(artifact.network).forward(x).argmax(1);
  const TestInputs rows = predictor.describe(x);
  for (int64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(rows.groups[static_cast<size_t>(i)], expected[i].item<int64_t>());
  }
}

TEST(PredictorCore, EstimatesWeightsOfTables) {
  CalibrationArtifact artifact = hundred_rows("weighted");
  artifact.ratio = {torch::zeros({2}, torch::kDouble), torch::ones({2}, torch::kDouble),
                    torch::tensor({1.0, 0.0, 0.5}, torch::kDouble)};
  const PredictorCore predictor(artifact);
  // An estimated ratio does not ask for given ones.
  const TestInputs rows = predictor.describe(torch::tensor({{1.0f, 7.0f}, {0.0f, 7.0f}}));
  EXPECT_THAT(rows.weights,
              ElementsAre(testing::DoubleEq(std::exp(1.5)), testing::DoubleEq(std::exp(0.5))));
  // Of other rows it looks at the features.
  const torch::Tensor image = torch::zeros({1, 3, 4, 4}), features = torch::zeros({1, 6});
  EXPECT_TRUE(ratio_input(image, features).is_same(features));
  EXPECT_TRUE(ratio_input(features, image).is_same(features));
}

}  // namespace
}  // namespace fcp
