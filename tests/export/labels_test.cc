// Label sets of exported graphs: all labels of PredictorCore, and hardly one more.
#include <algorithm>
#include <cmath>
#include <utility>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/export/export.h"
#include "fcp/predictor/distribution.h"

#include "tests/export/artifacts.h"
#include "tests/nn/graphs.h"

namespace fcp {
namespace {

TEST(Export, LabelSets) {
  torch::manual_seed(11);
  for (const std::string name : {"lac", "aps", "raps", "saps", "feature_margin"}) {
    for (const std::string group : {"", kByPrediction, kByLabel}) {
      for (const bool softmax : {false, true}) {
        SCOPED_TRACE(name + " " + group + (softmax ? " softmax" : ""));
        Graph graph = make_mlp({4, 8, 6});
        if (softmax) {
          graph.nodes.push_back(make_node("Softmax", {"y"}, {"p"}, {{"axis", int64_t{1}}}));
          graph.outputs = {make_info("p", {kDynamic, 6})};
        }
        ScoreOptions score = exact_score(name);
        score.set(field::allow_empty, softmax);
        if (double* own = score.find(field::temperature)) *own = softmax ? 1.7 : 1;
        if (double* weight = score.find(field::rank_weight)) {
          *weight = name != "feature_margin" || softmax ? 0.05 : 0;
          if (int64_t* free = score.find(field::rank_free)) *free = 2;
        }
        expect_same_sets(calibrated_on_labels(graph, score, "h1", group));
      }
    }
  }
}

// A forest gives classes the probability 0, whose logarithm is infinite.
TEST(Export, ProbabilitiesOfZeroAreCompared) {
  torch::manual_seed(15);
  Graph graph = make_mlp({4, 8, 6});
  graph.initializers["axis"] = torch::tensor({int64_t{1}}, torch::kLong);
  graph.initializers["least"] = torch::tensor({1.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f});
  graph.nodes.push_back(make_node("Max", {"y", "least"}, {"plus"}));
  graph.nodes.push_back(make_node("ReduceSum", {"plus", "axis"}, {"sum"}));
  graph.nodes.push_back(make_node("Div", {"plus", "sum"}, {"p"}));
  graph.nodes.push_back(make_node("Log", {"p"}, {"logarithm"}));
  graph.outputs = {make_info("logarithm", {kDynamic, 6})};
  for (const std::string name : {"lac", "aps"}) {
    const ScoreOptions score = exact_score(name);
    expect_same_sets(calibrated_on_labels(graph, score, ""));
  }
}

// Equal logits: the lower label has the better rank, as everywhere.
TEST(Export, RanksEqualLogitsAlike) {
  torch::manual_seed(12);
  Graph graph = make_mlp({3, 5});
  graph.initializers["w1"].tensor().zero_();
  graph.initializers["b1"] = torch::tensor({1.0f, 2.0f, 2.0f, 0.0f, 2.0f});
  for (const char* name : {"raps", "saps"}) {
    ScoreOptions score = exact_score(name);
    score.set(field::rank_weight, 0.01);
    expect_same_sets(calibrated_on_labels(graph, score, ""));
  }
}

// A share that rounding brings across a step is one step off: only rows that are near none are held
// to the same numbers.
TEST(Export, CalibratedProbabilitiesAreLookedUp) {
  torch::manual_seed(16);
  for (const int64_t classes : {2, 5}) {
    const Graph graph = make_mlp({4, 8, classes});
    CalibrationArtifact artifact = calibrated_on_labels(graph, exact_score("lac"), "");
    const ScoredNetwork network(graph, artifact.method.score, "");
    const ClassProbabilities plain(network, artifact);
    const torch::Tensor seen = torch::randn({400, 4}), scores = plain.shares().scores(seen);
    std::vector<int64_t> labels;
    const torch::Tensor drawn = torch::multinomial(plain.of(seen).merged, 1);
    for (int64_t i = 0; i < 400; ++i) labels.push_back(drawn[i][0].item<int64_t>());
    artifact.chances =
        fit_chances({scores.data_ptr<double>(), static_cast<size_t>(scores.numel())}, labels);
    const Graph exported = export_artifact(artifact, {.levels = {Level(0.1)}, .prefix = "q_"});
    const torch::Tensor x = torch::randn({200, 4});
    const auto found = run_exported(exported, x);
    const ClassProbabilities probabilities(network, artifact);
    const ClassChances expected = probabilities.of(x);
    const torch::Tensor shares = plain.shares().scores(x);
    int64_t compared = 0;
    for (int64_t i = 0; i < 200; ++i) {
      double nearest = 1;
      for (int64_t k = 0; k < shares.size(1); ++k) {
        for (const VennAbers::Step& step : artifact.chances[static_cast<size_t>(k)].steps()) {
          nearest = std::min(nearest, std::abs(step.from - shares[i][k].item<double>()));
        }
      }
      if (nearest < 1e-6) continue;
      ++compared;
      for (const auto& [name, wanted] :
           {std::pair("q_probability", expected.merged), std::pair("q_p0", expected.p0),
            std::pair("q_p1", expected.p1)}) {
        EXPECT_TRUE(found.at(name)[i].to(torch::kDouble).allclose(wanted[i], 1e-6, 1e-6))
            << name << " of row " << i;
      }
    }
    EXPECT_GT(compared, 190);
    EXPECT_NE(exported.metadata.at("fcp.export").find("\"q_p0\""), std::string::npos);
  }
}

}  // namespace
}  // namespace fcp
