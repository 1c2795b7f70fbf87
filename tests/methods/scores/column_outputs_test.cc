#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/methods/scores/output_names.h"
#include "fcp/nn/runtime/network.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

TEST(ColumnOutputs, AreOutputsOfTheirOwn) {
  torch::manual_seed(0);
  const Graph graph = make_mlp({3, 5, 4});
  const Graph columns = with_column_outputs(graph, CqrOptions{.low = "y:0", .high = "y:3"});
  ASSERT_EQ(columns.outputs.size(), 3u);
  const Tensors outputs = Network(columns).run({torch::randn({6, 3})});
  EXPECT_TRUE(torch::equal(outputs[1], outputs[0].narrow(1, 0, 1)));
  EXPECT_TRUE(torch::equal(outputs[2], outputs[0].narrow(1, 3, 1)));
  // Those that are there already are not made again; other names are left to others.
  EXPECT_EQ(with_column_outputs(columns, CqrOptions{.low = "y:0", .high = "y:3"}).outputs.size(),
            3u);
  EXPECT_EQ(with_column_outputs(graph, CqrOptions{.low = "z:0", .high = "y"}).outputs.size(), 1u);
}

TEST(ColumnOutputs, AColumnThatIsNotThereIsNamed) {
  const Graph graph = make_mlp({3, 5, 4});
  EXPECT_THAT([&] { with_column_outputs(graph, CqrOptions{.low = "y:4"}); },
              ::testing::ThrowsMessage<Error>(
                  ::testing::StrEq("output 'y' has no column 4 (from 0); it has 4")));
}

}  // namespace
}  // namespace fcp
