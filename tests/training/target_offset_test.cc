#include "fcp/training/target_offset.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/random.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/runtime/network.h"
#include "fcp/training/tabular.h"
#include "fcp/training/tabular_heads.h"

#include "tests/training/training_examples.h"

namespace fcp {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Array exact_column(const std::vector<double>& values) {
  Array y = zeros({static_cast<int64_t>(values.size()), 1});
  y.values.assign(values.begin(), values.end());
  y.exact = values;
  return y;
}

TEST(TargetOffset, IsTakenWhereFloatsAreTooCoarse) {
  EXPECT_THAT(target_offsets(exact_column({1e9 - 3, 1e9, 1e9 + 3})), ElementsAre(1e9));
  EXPECT_THAT(target_offsets(exact_column({-1e9 - 3, -1e9 + 3})), ElementsAre(-1e9));
  EXPECT_THAT(target_offsets(exact_column({2001, 2010, 2024})), IsEmpty()) << "years";
  EXPECT_THAT(target_offsets(exact_column({0, 1e9, 3e9})), IsEmpty()) << "a large spread";
  EXPECT_THAT(target_offsets(exact_column({1e9, 1e9})), IsEmpty()) << "no spread at all";
  Array plain = exact_column({1e9 - 3, 1e9 + 3});
  plain.exact.clear();
  EXPECT_THAT(target_offsets(plain), IsEmpty()) << "what was rounded cannot be had back";
  Array both = zeros({2, 2});
  both.exact = {1, 1e9 - 3.25, 2, 1e9 + 3.25};
  const std::vector<double> offsets = target_offsets(both);
  EXPECT_THAT(offsets, ElementsAre(0, 1e9));
  EXPECT_THAT(less_offsets(both, offsets).values, ElementsAre(1, -3.25F, 2, 3.25F));
}

TEST(TargetOffset, TheGraphAddsIt) {
  const torch::NoGradGuard no_gradients;
  const Array x = normal_array(200, 2, 1);
  const Array y = column_of(x, [](std::span<const float> row) { return 3 * row[0]; });
  TabularOptions options;
  options.members = 2;
  options.layers = {16};
  options.epochs = 5;
  TabularResult trained = train_tabular(x, y, options);
  ASSERT_TRUE(add_heads(y, options, trained));
  const Tensors all_before = Network(trained.graph).run({tensor_of(x)});
  add_offsets(trained.graph, {1e9});
  const Network network(trained.graph);
  const Tensors all_after = network.run({tensor_of(x)});
  EXPECT_EQ(all_after[0].scalar_type(), torch::kDouble);
  EXPECT_TRUE(torch::equal(all_after[0], all_before[0].to(torch::kDouble) + 1e9))
      << "to the last bit";
  for (size_t i = 1; i < all_before.size(); ++i) {
    EXPECT_TRUE(torch::equal(all_after[i], all_before[i])) << "heads are about residuals";
  }
  EXPECT_NO_THROW(cut(trained.graph, "features"));
}

}  // namespace
}  // namespace fcp
