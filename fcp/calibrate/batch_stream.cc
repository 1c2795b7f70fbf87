#include "fcp/calibrate/batch_stream.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include <ATen/Parallel.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/utils.h>

#include "fcp/base/parallel.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/provenance.h"

namespace fcp {
namespace {

constexpr size_t kThreadCopied = size_t{1} << 21;  // bytes; fewer are not worth a thread
constexpr size_t kCopyingThreads = 4;

// A copy of the numbers in memory that the device reads by itself, without the processor.
torch::Tensor pinned(const torch::Tensor& host) {
  const torch::Tensor copy = torch::empty(host.sizes(), host.options().pinned_memory(true));
  const auto* from = static_cast<const char*>(host.data_ptr());
  auto* to = static_cast<char*>(copy.data_ptr());
  const size_t threads = std::min(kCopyingThreads, static_cast<size_t>(at::get_num_threads()));
  parallel_rows(host.nbytes(), kThreadCopied, threads, [=](size_t first, size_t last) {
    std::memcpy(to + first, from + first, last - first);
  });
  return copy;
}

// Copies on a stream of its own.
class Uploader {
 public:
  explicit Uploader(torch::Device device) : device_(device) {}

  torch::Tensor copy(const torch::Tensor& host) {
    if (!device_.is_cuda()) return host;
    if (!stream_) {  // waits until the device has started
      const c10::impl::VirtualGuardImpl guard(device_.type());
      stream_ = guard.getStreamFromGlobalPool(guard.getDevice());
    }
    const c10::StreamGuard own(*stream_);
    return pinned(host).to(device_);
  }

 private:
  torch::Device device_;
  std::optional<c10::Stream> stream_;
};

}  // namespace

BatchStream::BatchStream(RowSource& source, const TrainingRows& training,
                         const BatchStreamOptions& options)
    : source_(source), training_(training), options_(options) {
  if (!options.ahead) return;
  hashed_.emplace(kHashedAhead, [this, number = size_t{0}](ReadyBatch& out) mutable {
    out.x = torch::Tensor();
    return read(number++, out);
  });
  ready_.emplace(1, [this, uploader = Uploader(options.device)](ReadyBatch& out) mutable {
    const torch::NoGradGuard no_grad;
    if (!hashed_->next(out)) return false;
    out.x = uploader.copy(view(out.rows.x));
    return true;
  });
}

bool BatchStream::read(size_t number, ReadyBatch& batch) {
  if (number > place_) source_.skip((number - place_) * options_.batch);
  place_ = number + 1;
  if (!source_.next(options_.batch, batch.rows)) return false;
  if (options_.hashes) batch.sha256 = hash_rows(batch.rows);
  const auto threads = static_cast<size_t>(at::get_num_threads());
  batch.trained = training_.codes(batch.rows.x, batch.rows.y, threads);
  return true;
}

bool BatchStream::next(size_t number, ReadyBatch& batch) {
  if (!ready_) {
    if (!read(number, batch)) return false;
    batch.x = view(batch.rows.x);
    return true;
  }
  if (!ready_->next(batch)) return false;
  if (batch.x.is_cuda()) {  // its memory is not given to the next copy before this stream is done
    const c10::impl::VirtualGuardImpl guard(batch.x.device().type());
    batch.x.record_stream(guard.getStream(batch.x.device()));
  }
  return true;
}

}  // namespace fcp
