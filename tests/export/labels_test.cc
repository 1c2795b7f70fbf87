// Label sets of exported graphs: all labels of TensorPredictor, and hardly one more.
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/export/export.h"

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
  graph.initializers["w1"].zero_();
  graph.initializers["b1"] = torch::tensor({1.0f, 2.0f, 2.0f, 0.0f, 2.0f});
  for (const char* name : {"raps", "saps"}) {
    ScoreOptions score = exact_score(name);
    score.set(field::rank_weight, 0.01);
    expect_same_sets(calibrated_on_labels(graph, score, ""));
  }
}

}  // namespace
}  // namespace fcp
