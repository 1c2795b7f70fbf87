#include "fcp/training/heads_graph.h"

#include <cmath>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/random.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/runtime/network.h"

#include "tests/training/training_examples.h"

namespace fcp {
namespace {

TabularOptions small() {
  TabularOptions options;
  options.members = 3;
  options.layers = {32, 16};
  options.epochs = 30;
  return options;
}

// y = x0 + noise whose deviation is 0.2 where x1 < 0 and 2 elsewhere.
Array noisy(const Array& x, uint64_t seed) {
  Random random(seed);
  return column_of(x, [&](std::span<const float> row) {
    return row[0] + (row[1] < 0 ? 0.2 : 2.0) * random.normal();
  });
}

TEST(TabularHeadsTest, TellWhereTheEnsembleErrs) {
  const torch::NoGradGuard no_gradients;
  const Array x = normal_array(1500, 2, 1), fresh = normal_array(400, 2, 3);
  const Array y = noisy(x, 2);
  TabularResult trained = train_tabular(x, y, small());
  ASSERT_TRUE(add_heads(y, {.seed = 5}, trained));
  const Network network(trained.graph);
  const Tensors answers = network.run({tensor_of(fresh)});
  ASSERT_EQ(network.outputs().size(), 3u);
  EXPECT_EQ(network.outputs()[1].name, "fcp.spread");
  const torch::Tensor loud = tensor_of(fresh).select(1, 1) > 0;
  const double above = answers[1].squeeze(1).masked_select(loud).mean().item<double>();
  const double below =
      answers[1].squeeze(1).masked_select(loud.logical_not()).mean().item<double>();
  EXPECT_GT(above, 3 * below);  // in truth ten times
  // Quantiles rise, and the feature tensor still separates the graph.
  EXPECT_TRUE((answers[2].diff(1, 1) > 0).all().item<bool>());
  EXPECT_EQ(cut(trained.graph, "features").head.outputs.size(), 3u);
}

TEST(TabularHeadsTest, NeedSomeUnseenRows) {
  const Array x = normal_array(60, 2, 1);
  const Array y = noisy(x, 2);
  TabularResult trained = train_tabular(x, y, small());
  EXPECT_FALSE(add_heads(y, {.seed = 5}, trained));
  EXPECT_EQ(trained.graph.outputs.size(), 1u);
}

}  // namespace
}  // namespace fcp
