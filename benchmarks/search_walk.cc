// Times one surrogate search for each line it reads, so that compare_search.py can take turns
// between fcp and PyTorch on the same machine.
//
//   search_walk head.onnx features.npy truth.npy STEPS RATE DEVICE THREADS found.npy
//
// Searches twice to warm up, writes the features found, and prints for each line of stdin the
// seconds of one search. Features and truth lie on the device before the clock starts.
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <ATen/Context.h>
#include <torch/cuda.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/memory.h"
#include "fcp/data/npy.h"
#include "fcp/nn/graph/onnx_reader.h"
#include "fcp/nn/runtime/network.h"
#include "fcp/search/surrogate_search.h"

namespace {

struct Task {
  std::string head, features, truth, found;
  int steps, threads;
  double rate;
  torch::Device device;
};

torch::Tensor load(const std::string& path, torch::Device device) {
  fcp::Array array = fcp::read_npy(path);
  return torch::from_blob(array.values.data(), array.shape).clone().to(device);
}

void save(const std::string& path, const torch::Tensor& tensor) {
  const torch::Tensor values = tensor.cpu().contiguous();
  fcp::write_npy(path,
                 fcp::Array{values.sizes().vec(),
                            {values.data_ptr<float>(), values.data_ptr<float>() + values.numel()}});
}

void serve(const Task& task) {
  fcp::keep_freed_memory();  // as the program does
  at::set_num_threads(task.threads);
  at::globalContext().setAllowTF32CuDNN(false);
  const torch::NoGradGuard no_grad;
  fcp::NetworkOptions options;
  options.device = task.device;
  const fcp::SurrogateSearch search(
      std::make_shared<const fcp::Network>(fcp::read_onnx(task.head), options), 0,
      {.rate = task.rate, .weights = {}});
  const torch::Tensor features = load(task.features, task.device);
  const torch::Tensor truth = load(task.truth, task.device).flatten(1);
  const auto walk = [&] {
    const torch::Tensor found = search.walk(features, truth, task.steps);
    if (task.device.is_cuda()) torch::cuda::synchronize();
    return found;
  };
  walk();
  save(task.found, walk());
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    const auto start = std::chrono::steady_clock::now();
    walk();
    std::cout << std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()
              << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 9) {
    std::cerr << "usage: search_walk head.onnx features.npy truth.npy STEPS RATE DEVICE THREADS "
                 "found.npy\n";
    return 2;
  }
  try {
    serve({argv[1], argv[2], argv[3], argv[8], std::stoi(argv[4]), std::stoi(argv[7]),
           std::stod(argv[5]), torch::Device(argv[6])});
  } catch (const std::exception& problem) {
    std::cerr << "search_walk: " << problem.what() << "\n";
    return 1;
  }
  return 0;
}
