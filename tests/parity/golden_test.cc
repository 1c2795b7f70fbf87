// The paper's Feature CP against its official code (IBP of auto_LiRPA) on the community data: the
// surrogate search, the choice of M, the radius, the intervals.
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/calibrate/surrogate_steps.h"
#include "fcp/conformal/quantile.h"
#include "fcp/data/npz.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/predictor/artifact.h"
#include "fcp/predictor/scored_network.h"
#include "fcp/search/surrogate_search.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

constexpr double kTolerance = 1e-4;
constexpr double kLastPlace = 1e-6;
constexpr char kFeature[] = "h2";

class CommunityGolden : public testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("FCP_DATA_DIR");
    if (folder == nullptr) GTEST_SKIP() << "FCP_DATA_DIR is not set";
    file_ = std::string(folder) + "/../golden/com_seed0.npz";
    const torch::Tensor x = golden("x_cal");
    graph_ = make_mlp({x.size(1), 64, 64, 64, 1});
    for (const char* part : {"enc_", "g_"}) {
      for (int layer = 0; layer < 2; ++layer) {
        const std::string from = std::to_string(layer);
        const std::string to = std::to_string(layer + (part[0] == 'g' ? 3 : 1));
        graph_.initializers["w" + to] = golden(part + ("W" + from));
        graph_.initializers["b" + to] = golden(part + ("b" + from)).reshape({-1});
      }
    }
    const double rate = golden("gd_lr").item<float>();  // float32 of a decimal
    score_ = SurrogateOptions{.steps = 1, .step_rate = std::round(rate * 1e6) / 1e6, .paper = true};
  }

  torch::Tensor golden(const std::string& name) const {
    const Array array = read_npz(file_, name);
    return torch::tensor(array.values).view(array.shape);
  }

  torch::Tensor column(const std::string& name) const { return golden(name).reshape({-1, 1}); }

  int golden_steps() const { return static_cast<int>(golden("inv_step").item<float>()); }

  static torch::Tensor tensor_of(const std::vector<double>& values) {
    return torch::tensor(values, torch::kDouble);
  }

  // Relative to the size of each number, or, with `overall`, to the mean size of all. Beyond that
  // kLastPlace: the scores are differences of float32 features of size 1 to 10, and what is below
  // their last place depends on how a library orders its sums.
  static void expect_close(const torch::Tensor& found, const torch::Tensor& expected,
                           const std::string& what, bool overall = false) {
    const torch::Tensor e = expected.to(torch::kDouble).flatten();
    const torch::Tensor f = found.to(torch::kDouble).flatten();
    ASSERT_EQ(f.sizes(), e.sizes()) << what;
    const torch::Tensor size = overall ? e.abs().mean() : e.abs();
    const torch::Tensor excess = ((f - e).abs() - kLastPlace).clamp_min(0);
    EXPECT_LE((excess / size).max().item<double>(), kTolerance) << what;
  }

  std::string file_;
  Graph graph_;
  ScoreOptions score_;
};

TEST_F(CommunityGolden, FeaturesAndPredictions) {
  const ScoredNetwork predictor(graph_, score_, kFeature);
  expect_close(predictor.features(golden("x_test").narrow(0, 0, 64)), golden("z_pred64"), "z",
               true);
  expect_close(predictor.features(golden("x_cal").narrow(0, 0, 256)), golden("z_cal256"), "z cal",
               true);
  expect_close(predictor.shared_head()->forward(golden("z_pred64")), golden("y_pred64"), "y", true);
}

TEST_F(CommunityGolden, SurrogateScoresAfterEveryNumberOfSteps) {
  const ScoredNetwork predictor(graph_, score_, kFeature);
  const torch::Tensor z = golden("z_cal256");
  const torch::Tensor y = column("y_cal").narrow(0, 0, 256);
  for (const int steps : {1, 5, 20, 80}) {
    for (const Norm norm : {Norm::kInf, Norm::kTwo}) {
      ScoreOptions options = score_;
      options.set(field::steps, steps);
      options.set(field::norm, norm);
      const std::string name = std::string("gd_scores_") + (norm == Norm::kInf ? "inf" : "l2") +
                               "_step" + std::to_string(steps);
      const auto score = make_score(options, predictor.shared_head());
      expect_close(tensor_of(score->score(z, y)), golden(name), name);
    }
  }
  SearchOptions options;
  options.rate = score_.value(field::step_rate);
  const SurrogateSearch search(predictor.shared_head(), 0, options);
  search.walk(z, y, 80, [&](int step, const torch::Tensor& features) {
    if (step == 1 || step == 80) {
      const std::string name = "gd_z_step" + std::to_string(step);
      expect_close(features, golden(name), name, true);
    }
    return true;
  });
}

TEST_F(CommunityGolden, ChoosesTheSameNumberOfSteps) {
  const ScoredNetwork predictor(graph_, score_, kFeature);
  const torch::Tensor order = golden("search_perm").to(torch::kLong);
  const auto validation = static_cast<int64_t>(golden("search_n_val").item<float>());
  const torch::Tensor z = predictor.features(golden("x_cal")).index_select(0, order);
  const torch::Tensor y = column("y_cal").index_select(0, order);
  const int64_t rest = z.size(0) - validation;
  const StepsChoice choice =
      choose_steps(predictor.shared_head(), score_,
                   {z.narrow(0, validation, rest), y.narrow(0, validation, rest),
                    z.narrow(0, 0, validation), y.narrow(0, 0, validation)},
                   Level(0.1));
  EXPECT_EQ(choice.steps, 39);
  EXPECT_EQ(choice.steps, golden_steps());
  const torch::Tensor expected = golden("search_val_coverage").flatten();
  ASSERT_GE(expected.size(0), 39);
  for (int64_t step = 0; step < 39; ++step) {
    EXPECT_NEAR(100 * choice.coverage[static_cast<size_t>(step)], expected[step].item<double>(),
                1e-3)
        << "step " << step + 1;
  }
}

TEST_F(CommunityGolden, WholeRun) {
  ScoreOptions options = score_;
  options.set(field::steps, golden_steps());
  const ScoredNetwork predictor(graph_, options, kFeature);
  const torch::Tensor z_cal = predictor.features(golden("x_cal"));
  const torch::Tensor z_test = predictor.features(golden("x_test"));
  const std::vector<double> scores = predictor.score().score(z_cal, column("y_cal"));
  expect_close(tensor_of(scores), golden("cal_scores"), "cal_scores", true);

  CalibrationArtifact artifact;
  artifact.method.score = options;
  artifact.method.calibration.paper = options.value(field::paper);
  artifact.rows.scores = scores;
  const double radius = artifact.radius(Level(0.1))[0];
  expect_close(torch::tensor({radius}), golden("threshold"), "threshold");

  const torch::Tensor y_test = column("y_test");
  const torch::Tensor test_scores = tensor_of(predictor.score().score(z_test, y_test));
  expect_close(test_scores, golden("test_scores"), "test_scores", true);
  const torch::Tensor detected = test_scores < radius;
  const torch::Tensor expected = golden("in_coverage").flatten();
  EXPECT_TRUE(torch::equal(detected.to(torch::kFloat), (expected != 0).to(torch::kFloat)));

  const Regions bands = predictor.score().region(z_test, radius);
  const torch::Tensor intervals = golden("fcp_intervals").reshape({-1, 2});
  expect_close(bands.lower, intervals.select(1, 0), "lower ends", true);
  expect_close(bands.upper, intervals.select(1, 1), "upper ends", true);

  options = ScoreOptions("residual", options);
  const auto residual = make_score(options, predictor.shared_head());
  artifact.rows.scores = residual->score(z_cal, column("y_cal"));
  const Regions plain = residual->region(z_test, artifact.radius(Level(0.1))[0]);
  const torch::Tensor cp = golden("cp_intervals").reshape({-1, 2});
  expect_close(plain.lower, cp.select(1, 0), "residual lower ends", true);
  expect_close(plain.upper, cp.select(1, 1), "residual upper ends", true);

  // The official code's own summary: coverage and length of Feature CP, then of CP.
  const torch::Tensor summary = golden("idx_fcp_cov_len_cp_cov_len").flatten();
  expect_close((bands.upper - bands.lower).mean(), summary[1], "mean length");
  expect_close((plain.upper - plain.lower).mean(), summary[3], "mean length of residual");
  const double share = detected.to(torch::kDouble).mean().item<double>();
  EXPECT_NEAR(summary[0].item<double>(), summary[0].item<double>() > 1 ? 100 * share : share, 1e-4);
}

}  // namespace
}  // namespace fcp
