#include "fcp/nn/runtime/parallel_alone.h"

#include <atomic>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace fcp {
namespace {

TEST(ParallelAlone, EveryThreadIsAloneAndLikeItsCaller) {
  at::set_num_threads(3);
  for (const bool gradients : {false, true}) {
    const torch::AutoGradMode mode(gradients);
    std::atomic<int> rows = 0, wrong = 0;
    parallel_alone(7, 1, 4, [&](size_t first, size_t last) {
      rows += static_cast<int>(last - first);
      if (at::get_num_threads() != 1) ++wrong;
      if (torch::GradMode::is_enabled() != gradients) ++wrong;
      if (torch::ones({2}).requires_grad_().mul(2).requires_grad() != gradients) ++wrong;
    });
    EXPECT_EQ(rows, 7);
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(at::get_num_threads(), 3) << "as before";
  }
}

TEST(ParallelAlone, ThrowsWhatAShareThrew) {
  at::set_num_threads(2);
  EXPECT_THROW(parallel_alone(4, 1, 2, [](size_t, size_t) { throw 7; }), int);
  EXPECT_EQ(at::get_num_threads(), 2);
}

}  // namespace
}  // namespace fcp
