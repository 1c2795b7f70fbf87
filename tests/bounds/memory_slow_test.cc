// Walks keep to the memory they are allowed, whatever the size of the output.
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <unistd.h>

#include "fcp/base/error.h"
#include "fcp/bounds/cost.h"
#include "fcp/bounds/crown.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/graph/onnx_reader.h"

#include "tests/bounds/heads.h"

namespace fcp {
namespace {

torch::Tensor numbers_from(int64_t first, int64_t count) {
  return torch::arange(first, first + count, torch::kLong);
}

constexpr size_t kMegabyte = size_t{1} << 20;

BoundOptions plain_options(BoundMethod method, bool outward, size_t memory) {
  BoundOptions options;
  options.method = method;
  options.outward = outward;
  options.memory = memory;
  return options;
}

size_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<size_t>(usage.ru_maxrss) * 1024;
}

// What the child process below is to do: its budget, and how.
constexpr char kBudget[] = "FCP_MEMORY_TEST_BUDGET", kMethod[] = "FCP_MEMORY_TEST_METHOD";

// Forwards, 200 rows of a wide head; backwards, of one row, three chunks of 19 × 64 × 128 outputs.
void walk_some(BoundMethod method, size_t budget) {
  torch::manual_seed(30);
  const bool forwards = method == BoundMethod::kIbp;
  const auto head = head_of(make_dense_head(32, forwards ? 512 : 32, forwards ? 1 : 19, 8, 16));
  const int64_t rows = forwards ? 200 : 1;
  const Ball ball = {torch::randn({rows, 32, 8, 16}), torch::full({rows}, 0.1f), Norm::kInf, {}};
  if (forwards) {
    make_bounds(head, plain_options(method, false, budget))->ranges(ball);
    return;
  }
  const torch::NoGradGuard no_gradients;
  const PreparedHead prepared = prepare_head(head, plain_options(method, false, 0));
  const Ball ready = prepare_ball(prepared, ball);
  const WalkCost cost = walk_cost(prepared, method, ready.center);
  ASSERT_EQ(affordable_rows(cost, true, budget) >= 1, true);
  const int64_t chunk = std::min<int64_t>(affordable_numbers(cost, 1, budget), 400);
  HiddenRanges hidden;
  hidden.refine = true;
  const LinearHead linear =
      make_linear_head(prepared, ready, first_outputs(prepared, ready), hidden, chunk);
  for (int64_t i = 0; i < 3; ++i) {
    bound_numbers(linear, head->output_slots()[0], numbers_from(5000 + i * chunk, chunk));
  }
}

// Run by the tests below in a process of its own, whose peak nothing before it has raised.
TEST(MemoryChild, DISABLED_WalksAndTellsItsPeak) {
  ASSERT_NE(std::getenv(kBudget), nullptr);
  walk_some(parse_bound(std::getenv(kMethod)), 16 * kMegabyte);  // libraries warm up
  const size_t before = peak_bytes();
  walk_some(parse_bound(std::getenv(kMethod)), std::stoull(std::getenv(kBudget)));
  std::cout << "grown " << peak_bytes() - before << std::endl;
}

// By how many bytes the peak grows from a walk in 16 MB to one in `budget`.
double growth_of(BoundMethod method, size_t budget) {
  char self[4096] = {};
  if (readlink("/proc/self/exe", self, sizeof self - 1) <= 0) return -1;
  const std::string command =
      concat(kBudget, "=", budget, " ", kMethod, "=", bound_name(method), " '", self,
             "' --gtest_also_run_disabled_tests --gtest_filter=MemoryChild.*");
  FILE* child = popen(command.c_str(), "r");
  if (child == nullptr) return -1;
  double growth = -1;
  char line[512];
  while (fgets(line, sizeof line, child) != nullptr) sscanf(line, "grown %lf", &growth);
  pclose(child);
  return growth;
}

// A fifth of the budget is left to the allocator. A limit many times as high is felt.
TEST(Memory, StaysWithinTheBudget) {
  for (const BoundMethod method : {BoundMethod::kIbp, BoundMethod::kCrownIbp}) {
    const double small = growth_of(method, 60 * kMegabyte);
    const double large = growth_of(method, 1000 * kMegabyte);
    ASSERT_GE(small, 0);
    EXPECT_LE(small, 1.2 * 60 * kMegabyte) << bound_name(method);
    EXPECT_LE(large, 1.2 * 1000 * kMegabyte) << bound_name(method);
    EXPECT_GE(large, small + 60 * kMegabyte) << bound_name(method);
  }
}

// The head of a real segmentation network: 20 × 256 × 512 outputs of 2048 × 32 × 64 features.
TEST(SegmentationHead, IsBoundedWithinTheBudgetAndSoundly) {
  const char* data = std::getenv("FCP_DATA_DIR");
  if (data == nullptr) GTEST_SKIP() << "FCP_DATA_DIR is not set";
  const torch::NoGradGuard no_gradients;
  torch::manual_seed(40);
  const Graph graph = read_onnx(concat(data, "/../models/cityscapes_fcn_resnet50.onnx"));
  const auto head = head_of(cut(graph, "feature").head);
  const Ball ball = {torch::rand({1, 2048, 32, 64}) * 20, torch::full({1}, 0.01f), Norm::kInf, {}};
  const size_t budget = 1000 * kMegabyte;
  const size_t before = peak_bytes();
  const Range ibp =
      make_bounds(head, plain_options(BoundMethod::kIbp, true, budget))->ranges(ball)[0];
  ASSERT_EQ(ibp.lower.sizes(), (std::vector<int64_t>{1, 20, 256, 512}));
  const PreparedHead prepared =
      prepare_head(head, plain_options(BoundMethod::kCrownIbp, true, budget));
  const Ball ready = prepare_ball(prepared, ball);
  const WalkCost cost = walk_cost(prepared, BoundMethod::kCrownIbp, ready.center);
  const int64_t chunk = affordable_numbers(cost, affordable_rows(cost, true, budget), budget);
  const LinearHead linear =
      make_linear_head(prepared, ready, first_outputs(prepared, ready), {}, chunk);
  const int64_t first = 1000000;
  Tensors lower, upper;
  for (int64_t i = 0; i < 2; ++i) {
    const Range part =
        bound_numbers(linear, head->output_slots()[0], numbers_from(first + i * chunk, chunk));
    lower.push_back(part.lower);
    upper.push_back(part.upper);
  }
  const Range crown = finished(prepared, {torch::cat(lower, 1), torch::cat(upper, 1)});
  const size_t weights = size_t{8} * 9 * 2048 * 512;  // in double precision
  EXPECT_LE(peak_bytes() - before, budget + 2 * weights);
  for (int i = 0; i < 4; ++i) {
    const torch::Tensor y = head->forward(sample_ball(ball, i % 2));
    EXPECT_TRUE(contains(ibp, y));
    EXPECT_TRUE(contains(crown, y.flatten(1).narrow(1, first, 2 * chunk)));
  }
}

}  // namespace
}  // namespace fcp
