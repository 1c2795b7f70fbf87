#include "fcp/methods/scores/output_names.h"

#include <gmock/gmock.h>

#include "fcp/base/error.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// A network with outputs of these names; those that end in "#" hold whole numbers.
Graph with_outputs(const std::vector<std::string>& names) {
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, 2})};
  for (std::string name : names) {
    const bool whole = name.back() == '#';
    if (whole) name.pop_back();
    graph.outputs.push_back(make_info(name, {kDynamic, 1}));
    if (whole) graph.outputs.back().type = ElementType::kInt64;
    graph.nodes.push_back(make_node("Identity", {"x"}, {name}));
  }
  return graph;
}

struct Taken {
  std::string output, low, high;
  bool operator==(const Taken&) const = default;
};

Taken taken(const std::vector<std::string>& names, const std::string& score = "auto") {
  ScoreOptions options(score);
  const std::string told = name_outputs(with_outputs(names), options);
  EXPECT_NE(told, "") << names[0];
  return {options.output, options.value(field::low), options.value(field::high)};
}

TEST(OutputNames, TellThePrediction) {
  EXPECT_EQ(taken({"mu", "sigma"}), (Taken{"mu", "", ""}));
  EXPECT_EQ(taken({"log_var", "mean"}), (Taken{"mean", "", ""}));
  EXPECT_EQ(taken({"/head/y", "/head/pred_std"}), (Taken{"/head/y", "", ""}));
  EXPECT_EQ(taken({"GPmean", "GPcovstd"}), (Taken{"GPmean", "", ""}));
  EXPECT_EQ(taken({"label#", "probabilities"}), (Taken{"probabilities", "", ""}));
  EXPECT_EQ(taken({"output_label#", "output_probability"}), (Taken{"output_probability", "", ""}));
  EXPECT_EQ(taken({"label#", "probabilities"}, "lac"), (Taken{"probabilities", "", ""}));
  EXPECT_EQ(taken({"logits", "hidden_states"}), (Taken{"logits", "", ""}));
  EXPECT_EQ(taken({"mu", "sigma"}, "residual"), (Taken{"mu", "", ""}));
}

TEST(OutputNames, TellQuantiles) {
  EXPECT_EQ(taken({"low", "high"}), (Taken{"", "low", "high"}));
  EXPECT_EQ(taken({"upper", "lower", "mean"}), (Taken{"mean", "lower", "upper"}));
  EXPECT_EQ(taken({"q05", "q50", "q95"}), (Taken{"q50", "q05", "q95"}));
  EXPECT_EQ(taken({"quantile_0.025", "quantile_0.975"}),
            (Taken{"", "quantile_0.025", "quantile_0.975"}));
  EXPECT_EQ(taken({"p975", "p025"}, "cqr"), (Taken{"", "p025", "p975"}));
  // Who asks for quantiles of a network with two outputs means these two.
  EXPECT_EQ(taken({"a", "b"}, "cqr"), (Taken{"", "a", "b"}));
}

TEST(OutputNames, AreNotGuessed) {
  for (const auto& names : std::vector<std::vector<std::string>>{{"a", "b"},
                                                                 {"recon", "mu", "logvar"},
                                                                 {"age", "height"},
                                                                 {"low", "b"},
                                                                 {"q05", "q25", "q75", "q95"},
                                                                 {"start_logits", "end_logits"}}) {
    ScoreOptions options = AutoOptions{};
    EXPECT_THAT([&] { name_outputs(with_outputs(names), options); },
                ThrowsMessage<Error>(HasSubstr("do not tell which is the prediction")))
        << names[0];
  }
  ScoreOptions options = CqrOptions{};
  EXPECT_THAT(
      [&] {
        name_outputs(with_outputs({"mu", "sigma"}), options);
      },
      ThrowsMessage<Error>(HasSubstr("name two as low and high")));
}

TEST(OutputNames, OptionsComeFirst) {
  ScoreOptions options = ScoreOptions(AutoOptions{}, {.output = "b"});
  EXPECT_EQ(name_outputs(with_outputs({"a", "b"}), options), "");
  EXPECT_EQ(options.output, "b");
  options = SpreadOptions{.spread = "b"};
  name_outputs(with_outputs({"a", "b"}), options);
  EXPECT_EQ(options.output, "a");
  options = AutoOptions{};
  EXPECT_EQ(name_outputs(with_outputs({"a", "fcp.spread"}), options), "");
  EXPECT_EQ(options.output, "");
}

// Logits and the probabilities made of them are one answer.
TEST(OutputNames, KnowProbabilitiesAndTheirLogits) {
  Graph graph = make_mlp({3, 4});
  graph.nodes.push_back(make_node("Softmax", {"y"}, {"p"}, {{"axis", int64_t{1}}}));
  graph.outputs.push_back(make_info("p", {kDynamic, 4}));
  ScoreOptions options = AutoOptions{};
  name_outputs(graph, options);
  EXPECT_EQ(options.output, "p");
}

}  // namespace
}  // namespace fcp
