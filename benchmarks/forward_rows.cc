// The forward of all rows by the path that predictors take (batch_free.h), on one thread, so that
// against_onnxruntime.py can take turns between fcp and ONNX Runtime.
//
//   forward_rows model.onnx input.npy …          one file for each input, in the network's order
//
// Prints the mean absolute output after a forward to warm up. Then, for each line "go" of stdin,
// the processor seconds of one forward, the mean of those that fill a few milliseconds; for a line
// "batch N", those of all rows, N at a time; for a line "profile", those of each operator, the
// largest first.
#include <algorithm>
#include <ctime>
#include <iomanip>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/memory.h"
#include "fcp/data/npy.h"
#include "fcp/nn/graph/onnx_reader.h"
#include "fcp/nn/runtime/batch_free.h"
#include "fcp/nn/runtime/network.h"

namespace {

double processor_seconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Share {
  std::string name;
  double seconds = 0;
  int nodes = 0;
};

// The seconds between two steps belong to the second of them. The rows run as predictors run them:
// together where the network is batch-free, the first alone otherwise.
void print_profile(const fcp::Network& network, const fcp::Tensors& inputs) {
  fcp::Tensors some = inputs;
  if (!fcp::is_batch_free(network)) {
    for (torch::Tensor& input : some) input = input.narrow(0, 0, 1);
  }
  std::map<std::string, Share> shares;
  double total = 0, last = processor_seconds();
  const auto observe = [&](const fcp::Step& step, const fcp::Tensors&, const fcp::Tensors&) {
    const double now = processor_seconds();
    Share& share = shares[step.node.op];
    share.name = step.node.op;
    share.seconds += now - last;
    total += now - last;
    ++share.nodes;
    last = processor_seconds();
  };
  network.run_fused(some, observe);
  std::vector<Share> sorted;
  for (const auto& [name, share] : shares) sorted.push_back(share);
  std::sort(sorted.begin(), sorted.end(),
            [](const Share& a, const Share& b) { return a.seconds > b.seconds; });
  std::cout << "operator                  nodes       ms  share\n" << std::fixed;
  for (const Share& share : sorted) {
    std::cout << std::left << std::setw(24) << share.name << std::right << std::setw(7)
              << share.nodes << std::setw(9) << std::setprecision(3) << 1e3 * share.seconds
              << std::setw(7) << std::setprecision(3) << share.seconds / total << "\n";
  }
  std::cout << "end" << std::defaultfloat << std::endl;
}

// All rows, `batch` at a time.
void run_batches(const fcp::Network& network, const fcp::Tensors& inputs, int64_t batch) {
  const int64_t rows = inputs[0].size(0);
  for (int64_t first = 0; first < rows; first += batch) {
    fcp::Tensors some = inputs;
    for (torch::Tensor& input : some) input = input.narrow(0, first, std::min(batch, rows - first));
    fcp::run_apart(network, some);
  }
}

void serve(const std::string& model, const std::vector<std::string>& files) {
  fcp::keep_freed_memory();  // as the program does
  at::set_num_threads(1);
  const torch::NoGradGuard no_grad;
  const fcp::Network network(fcp::read_onnx(model));
  fcp::Tensors inputs;
  for (const std::string& file : files) {
    fcp::Array array = fcp::read_npy(file);
    inputs.push_back(torch::from_blob(array.values.data(), array.shape).clone());
  }
  fcp::run_apart(network, inputs);
  std::cout << std::setprecision(9)
            << fcp::run_apart(network, inputs)[0].abs().mean().item<double>() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "profile") {
      print_profile(network, inputs);
      continue;
    }
    const bool batches = line.starts_with("batch ");
    const int64_t batch = batches ? std::stoll(line.substr(6)) : inputs[0].size(0);
    const double start = processor_seconds();
    int runs = 0;
    do {
      run_batches(network, inputs, batch);
      ++runs;
    } while (processor_seconds() - start < 0.005);
    std::cout << std::setprecision(9) << (processor_seconds() - start) / runs << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: forward_rows model.onnx input.npy …\n";
    return 2;
  }
  try {
    serve(argv[1], {argv + 2, argv + argc});
  } catch (const std::exception& problem) {
    std::cerr << "forward_rows: " << problem.what() << "\n";
    return 1;
  }
  return 0;
}
