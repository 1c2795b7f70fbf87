#include "fcp/predictor/context.h"

#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <torch/cuda.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/predictor/provenance.h"

#include "tests/calibrate/memory_rows.h"
#include "tests/nn/graphs.h"

namespace fcp {
namespace {

TEST(DeviceNamed, KnowsTwo) {
  EXPECT_TRUE(device_named("cpu").is_cpu());
  EXPECT_THROW(device_named("tpu"), Error);
  if (!torch::cuda::is_available()) {
    EXPECT_THROW(device_named("cuda"), Error);
  }
}

TEST(Context, TakesMoreSmallRowsAtATimeOnCuda) {
  const MemoryRows small(zeros({1, 64}), zeros({1, 1})), large(zeros({1, 3, 224, 224}), Array());
  Context cpu, cuda;
  cuda.device = torch::kCUDA;
  EXPECT_EQ(cpu.batch_for(small), 4096u);
  EXPECT_EQ(cuda.batch_for(small), 65536u);
  EXPECT_EQ(cuda.batch_for(large), cpu.batch_for(large));
  cuda.batch = 7;
  EXPECT_EQ(cuda.batch_for(small), 7u);
}

// What the provenance says of the rows must not depend on the device.
TEST(HashRows, OfALargeBatchIsThatOfItsUsualOnes) {
  Rows all{zeros({10000, 64}), zeros({10000, 1}), 0};
  for (size_t i = 0; i < all.x.values.size(); ++i) all.x.values[i] = static_cast<float>(i % 997);
  for (size_t i = 0; i < all.y.values.size(); ++i) all.y.values[i] = static_cast<float>(i);
  std::string hashes;
  for (const auto& [first, count] :
       {std::pair<size_t, size_t>{0, 4096}, {4096, 4096}, {8192, 1808}}) {
    hashes += hash_rows({slice_rows(all.x, first, count), slice_rows(all.y, first, count), first});
  }
  EXPECT_EQ(hash_rows(all), hashes);
  EXPECT_EQ(hashes.size(), 3u * 64);
}

DeviceWork work_of(double rows, double flops, double numbers, int threads) {
  return {.rows = rows, .flops = flops, .numbers = numbers, .threads = threads};
}

TEST(DeviceChoice, TakesCudaWhereItSavesMoreThanItsStart) {
  constexpr double kSmall = 25e3, kLarge = 8e9;  // a perceptron, a residual network
  EXPECT_FALSE(cuda_is_faster(work_of(1e3, kSmall, 64, 1)));
  EXPECT_FALSE(cuda_is_faster(work_of(1e6, kSmall, 64, 8)));  // more than half a second to start
  EXPECT_TRUE(cuda_is_faster(work_of(1e7, kSmall, 64, 8)));
  EXPECT_FALSE(cuda_is_faster(work_of(1, kLarge, 150e3, 8)));
  EXPECT_TRUE(cuda_is_faster(work_of(1e3, kLarge, 150e3, 8)));
  EXPECT_FALSE(cuda_is_faster(work_of(1e9, 1, 1e3, 1)));  // hardly any arithmetic
  EXPECT_FALSE(cuda_is_faster(work_of(0, kLarge, 1, 1)));
}

TEST(DeviceChoice, LeavesADeviceThatWasNamed) {
  Graph network = make_mlp({2, 3, 1});
  MemoryRows rows(zeros({5, 2}), zeros({5, 1}));
  for (const bool choose : {false, true}) {
    Context context;
    context.choose_device = choose;
    choose_device(network, rows, context);
    EXPECT_TRUE(context.device.is_cpu());  // named, or five rows
    EXPECT_FALSE(context.choose_device);
  }
}

// TF32 keeps 10 of 23 bits: sums of 512 products would be off by some 1e-3 of their size.
TEST(DeviceNamed, ProductsOnCudaKeepAllBits) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "this machine has no CUDA device";
  at::globalContext().setAllowTF32CuDNN(true);
  at::globalContext().setAllowTF32CuBLAS(true);
  const torch::Device device = device_named("cuda");
  EXPECT_FALSE(at::globalContext().allowTF32CuDNN());
  EXPECT_FALSE(at::globalContext().allowTF32CuBLAS());
  const torch::NoGradGuard no_gradients;
  torch::manual_seed(1);
  const torch::Tensor a = torch::rand({64, 512}), b = torch::rand({512, 64});
  const torch::Tensor image = torch::rand({4, 32, 16, 16}), kernel = torch::rand({32, 32, 3, 3});
  const auto error = [](const torch::Tensor& found, const torch::Tensor& exact) {
    return ((found.cpu().to(torch::kDouble) - exact) / exact).abs().max().item<double>();
  };
  EXPECT_LT(error(torch::matmul(a.to(device), b.to(device)),
                  torch::matmul(a.to(torch::kDouble), b.to(torch::kDouble))),
            1e-5);
  EXPECT_LT(error(torch::conv2d(image.to(device), kernel.to(device)),
                  torch::conv2d(image.to(torch::kDouble), kernel.to(torch::kDouble))),
            1e-5);
}

}  // namespace
}  // namespace fcp
