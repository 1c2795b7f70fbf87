// One rank's share of a source's rows, batch by batch, with what calibration needs of each beside
// its scores. Batch b, rows b · size and following, is that of one rank; the others pass over it.
//
// Where one rank computes on a CUDA device, and the rows can be prefetched (rows.h), other threads
// make batches ready while the last one is scored:
//
//   read (prefetched_rows.h)  →  hashed  →  copied to pinned memory and from there to the device
//
// each by a thread of its own. The copy goes on a stream of its own, so that it does not wait for
// the scores of the batch before; a batch that is handed out is on the device. Batches are read and
// hashed while the device is still starting, up to kHashedAhead of them.
//
// Memory: one batch; ahead kHashedAhead + 4 batches on the host and three on the device.
// Tested by tests/calibrate/batch_stream_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/base/prefetch.h"
#include "fcp/data/row_digest.h"
#include "fcp/data/rows.h"

namespace fcp {

constexpr size_t kHashedAhead = 6;

struct ReadyBatch {
  Rows rows;
  std::string sha256;               // hash_rows, where the stream hashes
  std::vector<uint64_t> trained{};  // TrainingRows::codes
  torch::Tensor x;                  // rows.x, ahead on the device
};

struct BatchStreamOptions {
  size_t batch = 0;  // rows
  bool hashes = true;
  bool ahead = false;
  torch::Device device = torch::kCPU;
};

class BatchStream {
 public:
  // `source`, which can be prefetched where `ahead`, and `training` must outlive this.
  BatchStream(RowSource& source, const TrainingRows& training, const BatchStreamOptions& options);

  // Batch `number`, above all before; ahead each number in its turn. False where there is none.
  // What `batch` held before is used again.
  bool next(size_t number, ReadyBatch& batch);

 private:
  bool read(size_t number, ReadyBatch& batch);

  RowSource& source_;
  const TrainingRows& training_;
  BatchStreamOptions options_;
  size_t place_ = 0;  // the batch that the source is at
  std::optional<Prefetcher<ReadyBatch>> hashed_;
  std::optional<Prefetcher<ReadyBatch>> ready_;  // takes from those: goes first
};

}  // namespace fcp
