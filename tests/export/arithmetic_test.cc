// Exported graphs in another arithmetic, and at the end of single precision: what fcp includes is
// included.
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/export/export.h"

#include "tests/bounds/heads.h"
#include "tests/export/artifacts.h"
#include "tests/nn/graphs.h"

namespace fcp {
namespace {

// Rows of few kinds, in another arithmetic: all that fcp includes is included.
TEST(Export, IncludesInAnotherArithmeticWhatFcpIncludes) {
  torch::manual_seed(15);
  const torch::Tensor kinds = torch::randn({6, 2});
  const torch::Tensor x = kinds.repeat({50, 1});
  for (const std::string op : {"Tanh", "Relu"}) {
    Graph graph = make_mlp({2, 64, 32, 3});
    for (Node& node : graph.nodes) {
      if (node.op == "Relu") node.op = op;
    }
    for (const std::string name : {"lac", "aps", "raps", "saps", "feature_margin"}) {
      SCOPED_TRACE(op + " " + name);
      CalibrationArtifact artifact;
      artifact.network = graph;
      artifact.method.score = exact_score(name);
      artifact.method.cut = "h2";
      const internal::PredictorCore untrained(
          calibrated_on_labels(graph, artifact.method.score, artifact.method.cut));
      const torch::Tensor features = untrained.network().features(x);
      const torch::Tensor labels = torch::randint(3, {300, 1}, torch::kLong);
      artifact.rows.scores = untrained.score().score(features, labels.to(torch::kDouble));
      const internal::PredictorCore predictor(artifact);
      const ExportOptions options = {.levels = {Level(0.1), Level(0.2), Level(0.4), Level(0.6)}};
      const auto found =
          run_exported(in_double(export_artifact(artifact, options)), x.to(torch::kDouble));
      for (const Level& level : options.levels) {
        const torch::Tensor ours = predictor.region(predictor.describe(x), level).members;
        const torch::Tensor theirs = found.at("in_set_" + level.text());
        EXPECT_EQ(ours.logical_and(theirs.logical_not()).sum().item<int64_t>(), 0) << level.text();
        EXPECT_EQ(theirs.sum().item<int64_t>(), ours.sum().item<int64_t>()) << level.text();
      }
    }
    for (const std::string name : {"residual", "nested", "linearized"}) {
      SCOPED_TRACE(op + " " + name);
      const CalibrationArtifact artifact = calibrated_on_noise(graph, score_named(name), "h1", 0.5);
      const internal::PredictorCore predictor(artifact);
      const auto found = run_exported(in_double(export_artifact(artifact)), x.to(torch::kDouble));
      const Regions ours = predictor.region(predictor.describe(x), Level(0.1));
      EXPECT_TRUE((found.at("lower") <= ours.lower).all().item<bool>());
      EXPECT_TRUE((found.at("upper") >= ours.upper).all().item<bool>());
    }
  }
}

// Derivatives of saturated activations are differences that cancel.
TEST(Export, SlopesOfSaturatedActivationsAreNotShort) {
  torch::manual_seed(16);
  for (const std::string op : {"Tanh", "Sigmoid"}) {
    Graph graph = make_mlp({3, 8, 2});
    for (Node& node : graph.nodes) {
      if (node.op == "Relu") node.op = op;
    }
    graph.initializers["w1"] = graph.initializers["w1"].tensor() * 10;
    const CalibrationArtifact artifact = calibrated_on_noise(graph, score_named("linearized"), "");
    const torch::Tensor x = rows_for(graph, 500);
    const internal::PredictorCore predictor(artifact);
    const auto found = run_exported(in_double(export_artifact(artifact)), x.to(torch::kDouble));
    const Regions ours = predictor.region(predictor.describe(x), Level(0.1));
    EXPECT_TRUE((found.at("lower") <= ours.lower).all().item<bool>()) << op;
    EXPECT_TRUE((found.at("upper") >= ours.upper).all().item<bool>()) << op;
  }
}

// Weights near the end of single precision: no NaN where fcp has numbers.
TEST(Export, LargeWeightsGiveNoNan) {
  torch::manual_seed(18);
  for (const Norm norm : kAllNorms) {
    Graph graph = make_mlp({3, 4, 4, 1});
    graph.initializers["w2"] = graph.initializers["w2"].tensor() * 1e20;
    graph.initializers["w3"] = graph.initializers["w3"].tensor() * 1e19;
    ScoreOptions score;
    score.set(field::norm, norm);
    CalibrationArtifact artifact;
    artifact.network = graph;
    artifact.method.score = score;
    artifact.method.cut = "h1";
    artifact.rows.scores.assign(20, 1.5);
    const torch::Tensor x = rows_for(graph, 10);
    const auto found = run_exported(export_artifact(artifact), x);
    const internal::PredictorCore predictor(artifact);
    const Regions ours = predictor.region(predictor.describe(x), Level(0.1));
    EXPECT_TRUE((found.at("lower").to(torch::kDouble) <= ours.lower).all().item<bool>());
    EXPECT_TRUE((found.at("upper").to(torch::kDouble) >= ours.upper).all().item<bool>());
  }
}

}  // namespace
}  // namespace fcp
