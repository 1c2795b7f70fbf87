// Bounds of a network over balls, for against_lirpa.py.
//
//   bound_widths NETWORK.onnx CENTERS.npy RADIUS METHOD ITERATIONS REPEATS OUT.npy [DEVICE]
//
// ℓ∞ balls, plain arithmetic, one thread. Prints the median seconds of a walk over all rows, of
// processor time on the CPU and of the clock on a CUDA device, and writes lower and upper ends
// [2, N, K].
#include <algorithm>
#include <chrono>
#include <ctime>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <ATen/Context.h>
#include <torch/cuda.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/memory.h"
#include "fcp/bounds/bounds.h"
#include "fcp/data/npy.h"
#include "fcp/nn/graph/onnx_reader.h"

namespace fcp {
namespace {

double seconds_on(torch::Device device) {
  if (device.is_cuda()) {
    torch::cuda::synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  return static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC);
}

int run(const std::vector<std::string>& words) {
  at::set_num_threads(1);
  keep_freed_memory();  // as the program does
  const torch::Device device(words.size() > 7 ? words[7] : "cpu");
  at::globalContext().setAllowTF32CuDNN(false);
  const auto network =
      std::make_shared<const Network>(read_onnx(words[0]), NetworkOptions{.device = device});
  const Array rows = read_npy(words[1]);
  const torch::Tensor center =
      torch::tensor(rows.values).view(rows.shape).to(device, torch::kFloat);
  BoundOptions options;
  options.method = parse_bound(words[3]);
  options.iterations = std::stoi(words[4]);
  options.outward = false;
  const auto bounds = make_bounds(network, options);
  const Ball ball = {
      center, torch::full({center.size(0)}, std::stod(words[2]), center.options()), Norm::kInf, {}};
  std::vector<double> seconds;
  Range range;
  for (int i = 0; i <= std::stoi(words[5]); ++i) {
    const double start = seconds_on(device);
    range = bounds->ranges(ball)[0];
    if (i > 0) seconds.push_back(seconds_on(device) - start);
  }
  std::sort(seconds.begin(), seconds.end());
  std::cout << seconds[seconds.size() / 2] << "\n";
  const torch::Tensor ends = torch::stack({range.lower.flatten(1), range.upper.flatten(1)})
                                 .to(torch::kCPU, torch::kFloat)
                                 .contiguous();
  const float* first = ends.data_ptr<float>();
  write_npy(words[6], {ends.sizes().vec(), {first, first + ends.numel()}});
  return 0;
}

}  // namespace
}  // namespace fcp

int main(int count, char** words) {
  if (count != 8 && count != 9) {
    std::cerr
        << "expected NETWORK.onnx CENTERS.npy RADIUS METHOD ITERATIONS REPEATS OUT.npy [DEVICE]\n";
    return 2;
  }
  try {
    return fcp::run({words + 1, words + count});
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
