// Batches for scores on a CUDA device, made ready by other threads while the last one is scored:
//
//   read (ahead_rows.h)  →  hashed  →  copied to pinned memory and from there to the device
//
// each by a thread of its own. The copy goes on a stream of its own, so that it does not wait for
// the scores of the batch before; a batch that is handed out is on the device. Batches are read and
// hashed while the device is still starting, up to kHashedAhead of them.
//
// Memory: kHashedAhead + 4 batches on the host and three on the device.
// Tested by tests/pipeline/ahead_batches_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/base/made_ahead.h"
#include "fcp/data/rows.h"

namespace fcp {

constexpr size_t kHashedAhead = 6;

struct ReadyBatch {
  Rows rows;
  std::string sha256;               // hash_rows
  std::vector<uint64_t> trained{};  // what `find` said of the rows
  torch::Tensor x;                  // rows.x on the device
};

class AheadBatches {
 public:
  using Find = std::function<std::vector<uint64_t>(const Rows&)>;

  // `source`, whose rows are read apart (rows.h), and what `find` needs must outlive this.
  AheadBatches(RowSource& source, size_t batch, Find find, torch::Device device);

  // False where there is none left. What `batch` held before is used again.
  bool next(ReadyBatch& batch);

 private:
  MadeAhead<ReadyBatch> hashed_;
  MadeAhead<ReadyBatch> ready_;  // takes from those: goes first
};

}  // namespace fcp
