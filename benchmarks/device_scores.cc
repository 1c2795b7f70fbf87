// Times the parts of calibration and prediction on a device: rows that are copied there, the
// backbone, the scores and the regions of all of them at once.
//
//   device_scores NETWORK.onnx X.npy Y.npy DEVICE THREADS SCORE[@CUT]...
//
// Prints for each score the milliseconds of each part, medians of seven after two to warm up.
// Scores come back to the host, as calibration takes them; regions stay where they are.
#include <algorithm>
#include <chrono>
#include <functional>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

#include <torch/cuda.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/memory.h"
#include "fcp/data/npy.h"
#include "fcp/nn/graph/onnx_reader.h"
#include "fcp/predictor/scored_network.h"

namespace {

double median_ms(torch::Device device, const std::function<void()>& work) {
  constexpr int kWarmUps = 2, kRuns = 7;
  std::vector<double> times;
  for (int i = 0; i < kWarmUps + kRuns; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    if (device.is_cuda()) torch::cuda::synchronize();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    if (i >= kWarmUps) times.push_back(took.count());
  }
  std::sort(times.begin(), times.end());
  return times[kRuns / 2];
}

torch::Tensor load(const std::string& path) {
  fcp::Array array = fcp::read_npy(path);
  return torch::from_blob(array.values.data(), array.shape).clone();
}

void measure(const fcp::Graph& network, const std::string& name, const torch::Tensor& x,
             const torch::Tensor& y, torch::Device device) {
  const size_t at = name.find('@');
  fcp::ScoreOptions options(name.substr(0, at));
  if (auto* surrogate = options.as<fcp::SurrogateOptions>()) surrogate->steps = 30;
  const std::string cut = at == std::string::npos ? "" : name.substr(at + 1);
  const fcp::ScoredNetwork predictor(network, options, cut, device);
  torch::Tensor moved, features;
  const double copy = median_ms(device, [&] { moved = x.to(device); });
  const double backbone = median_ms(device, [&] { features = predictor.features(moved); });
  const double score = median_ms(device, [&] { predictor.score().score(features, y); });
  const double region = median_ms(device, [&] { predictor.score().region(features, 0.1); });
  std::cout << std::setw(12) << name << std::fixed << std::setprecision(2) << std::setw(10) << copy
            << std::setw(10) << backbone << std::setw(10) << score << std::setw(10) << region
            << std::endl;
}

}  // namespace

int main(int count, char** words) {
  if (count < 7) {
    std::cerr << "expected NETWORK.onnx X.npy Y.npy DEVICE THREADS SCORE[@CUT]...\n";
    return 2;
  }
  try {
    fcp::keep_freed_memory();  // as the program does
    at::set_num_threads(std::stoi(words[5]));
    const torch::NoGradGuard no_grad;
    const fcp::Graph network = fcp::read_onnx(words[1]);
    const torch::Tensor x = load(words[2]), y = load(words[3]);
    std::cout << std::setw(12) << "score" << std::setw(10) << "copy" << std::setw(10) << "backbone"
              << std::setw(10) << "score" << std::setw(10) << "region"
              << "   ms" << std::endl;
    for (int i = 6; i < count; ++i) measure(network, words[i], x, y, torch::Device(words[4]));
  } catch (const std::exception& problem) {
    std::cerr << "device_scores: " << problem.what() << "\n";
    return 1;
  }
  return 0;
}
