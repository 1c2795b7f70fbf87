#include "fcp/predictor/device_choice.h"

#include <ATen/Parallel.h>
#include <torch/cuda.h>

#include "fcp/base/error.h"
#include "fcp/nn/graph/inspect.h"

namespace fcp {
namespace {

constexpr double kCpuFlops = 1e10;  // per second, of one thread
constexpr double kCudaFlops = 5e12, kCudaStart = 0.6, kCopiedBytes = 5e9;

// 0 where the network cannot say.
double flops_of_row(const Graph& network, const RowSource& source) {
  if (network.inputs.size() != 1) return 0;
  std::vector<int64_t> shape = {1};
  for (const int64_t size : source.row_shape()) shape.push_back(size);
  try {
    return inspect(network, {{network.inputs[0].name, shape}}).flops;
  } catch (const Error&) {  // what is wrong with it is said where it runs
    return 0;
  }
}

}  // namespace

bool cuda_is_faster(const DeviceWork& work) {
  const double cpu = work.rows * work.flops / (kCpuFlops * work.threads);
  const double cuda = kCudaStart + work.rows * work.numbers * sizeof(float) / kCopiedBytes +
                      work.rows * work.flops / kCudaFlops;
  return cuda < cpu;
}

void choose_device(const Graph& network, const RowSource& source, Context& context) {
  if (!context.choose_device) return;
  context.choose_device = false;
  const std::optional<size_t> rows = source.size();
  if (!rows || !torch::cuda::is_available()) return;
  const DeviceWork work{.rows = static_cast<double>(*rows),
                        .flops = flops_of_row(network, source),
                        .numbers = static_cast<double>(element_count(source.row_shape())),
                        .threads = at::get_num_threads()};
  if (!cuda_is_faster(work)) return;
  start_cuda_ahead();
  context.device = device_named("cuda");
  context.observer->note("runs on the CUDA device");
}

}  // namespace fcp
