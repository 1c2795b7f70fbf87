#include "fcp/nn/kernels/relu_mlp/affine_rows.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/lanes.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

TEST(ReluRows, HiddenIsTheFirstLayer) {
  torch::manual_seed(6);
  for (const auto& [features, hidden] : {std::pair{64, 64}, {5, 17}, {100, 3}, {1, 1}}) {
    const Network network(make_mlp({features, hidden, 2}));
    const ReluHead head = *match_relu_head(network, 0);
    const ReluRows rows = make_relu_rows(head);
    EXPECT_EQ(rows.hidden_width, padded(static_cast<size_t>(hidden)));
    const torch::Tensor v = torch::relu(torch::randn({9, features}));
    torch::Tensor found = torch::empty({9, static_cast<int64_t>(rows.hidden_width)});
    hidden_rows(rows, v.data_ptr<float>(), 9, found.data_ptr<float>());
    const torch::Tensor expected = v.matmul(head.w1.t()) + head.b1;
    EXPECT_TRUE(torch::allclose(found.narrow(1, 0, hidden), expected, 1e-5, 1e-5));
    EXPECT_TRUE((found.narrow(1, hidden, found.size(1) - hidden) == 0).all().item<bool>());
  }
}

}  // namespace
}  // namespace fcp
