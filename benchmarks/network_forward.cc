// Times one forward of a network for each line it reads, so that compare_forward.py can take turns
// between fcp and PyTorch on the same machine.
//
//   network_forward model.onnx input.npy THREADS
//
// Prints the mean absolute output after two forwards to warm up, then for each line of stdin the
// seconds of one forward.
#include <chrono>
#include <iomanip>
#include <iostream>
#include <string>

#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/memory.h"
#include "fcp/data/npy.h"
#include "fcp/nn/graph/onnx_reader.h"
#include "fcp/nn/runtime/network.h"

namespace {

double seconds_of_forward(const fcp::Network& network, const torch::Tensor& input) {
  const auto start = std::chrono::steady_clock::now();
  const torch::Tensor output = network.forward(input);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void serve(const std::string& model, const std::string& data, int threads) {
  fcp::keep_freed_memory();  // as the program does
  at::set_num_threads(threads);
  const torch::NoGradGuard no_grad;
  const fcp::Network network(fcp::read_onnx(model));
  fcp::Array array = fcp::read_npy(data);
  const torch::Tensor input = torch::from_blob(array.values.data(), array.shape).clone();
  network.forward(input);
  std::cout << std::setprecision(9) << network.forward(input).abs().mean().item<double>()
            << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << seconds_of_forward(network, input) << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: network_forward model.onnx input.npy THREADS\n";
    return 2;
  }
  try {
    serve(argv[1], argv[2], std::stoi(argv[3]));
  } catch (const std::exception& problem) {
    std::cerr << "network_forward: " << problem.what() << "\n";
    return 1;
  }
  return 0;
}
