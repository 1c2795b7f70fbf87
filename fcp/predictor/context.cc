#include "fcp/predictor/context.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <torch/cuda.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/data/bytes.h"
#include "fcp/nn/graph/inspect.h"

namespace fcp {
namespace {

constexpr int kReadingThreads = 4;  // that read rows while others work on those before

// Threads that are waited for when the process ends, before libtorch goes.
struct EndedThread {
  std::thread thread;
  ~EndedThread() {
    if (thread.joinable()) thread.join();
  }
};

}  // namespace

// A CUDA device takes some tenths of a second to start, and as long again to load what the first
// product and the first few functions need. That goes on while files are opened and networks are
// read; whoever needs the device first waits for it.
void start_cuda_ahead() {
  static EndedThread ahead;
  if (ahead.thread.joinable()) return;
  ahead.thread = std::thread([] {
    try {
      if (!torch::cuda::is_available()) return;
      const torch::NoGradGuard no_gradients;
      const torch::Tensor some = torch::ones({64, 64}, torch::kCUDA);
      const torch::Tensor product = torch::addmm(some[0], some, some.t()).relu();
      (product.to(torch::kDouble) - some).abs().amax(1).cpu();
    } catch (const std::exception&) {
      // The next to ask the device is told.
    }
  });
}

void Observer::begin(std::string_view, size_t) {}
void Observer::advance(size_t, const std::function<std::string()>&) {}
void Observer::end() {}
void Observer::chosen(const Choices&) {}
void Observer::note(const std::string&) {}
void Observer::warning(const std::string&) {}

Communicator* serial_ranks() {
  static const std::unique_ptr<Communicator> serial = make_serial_communicator();
  return serial.get();
}

Observer* silent_observer() {
  static Observer silent;
  return &silent;
}

namespace {

constexpr size_t kBatchNumbers = size_t{1} << 22, kBatchRows = 4096, kCudaBatches = 16;

}  // namespace

size_t usual_batch(size_t numbers) {
  return std::clamp<size_t>(kBatchNumbers / std::max<size_t>(1, numbers), 1, kBatchRows);
}

size_t Context::batch_for(const RowSource& source) const {
  if (batch > 0) return batch;
  if (source.usual_batch()) return *source.usual_batch();
  const size_t numbers = element_count(source.row_shape()), usual = fcp::usual_batch(numbers);
  if (!device.is_cuda()) return usual;
  const size_t batches = kBatchNumbers / std::max<size_t>(1, usual * numbers);
  return usual * std::clamp<size_t>(batches, 1, kCudaBatches);
}

Stage::Stage(const Context& context, std::string_view name, size_t total)
    : observer_(context.observer) {
  observer_->begin(name, total);
}

Stage::~Stage() { observer_->end(); }

void Stage::advance(size_t count, const std::function<std::string()>& detail) {
  observer_->advance(count, detail);
}

torch::Device device_named(const std::string& name) {
  if (name == "cpu") return torch::kCPU;
  if (name != "cuda") fail("device ", name, ": expected cpu or cuda");
  if (!torch::cuda::is_available()) {
    fail("device cuda: this machine, or this build of libtorch, has no CUDA device");
  }
  // Convolutions would drop 13 of the 23 bits of every product: bounds would not hold.
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setAllowTF32CuBLAS(false);
  set_reading_threads(static_cast<size_t>(std::min(kReadingThreads, at::get_num_threads())));
  return torch::kCUDA;
}

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
