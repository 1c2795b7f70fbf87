// One rank's share of a source's rows, batch by batch, with what calibration needs of each beside
// its scores. Batch b, rows b · size and following, is that of one rank; the others pass over it.
//
// Where one rank computes on a CUDA device, and the rows can be prefetched (rows.h), other threads
// make batches ready while the last one is scored:
//
//   read (row_sources.h)  →  hashed  →  copied to pinned memory and from there to the device
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
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <torch/types.h>

#include "fcp/base/prefetch.h"
#include "fcp/calibrate/choose.h"
#include "fcp/data/row_digest.h"
#include "fcp/data/rows.h"
#include "fcp/methods/scores/support.h"
#include "fcp/predictor/distribution.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/scored_network.h"

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

// The scores of one batch of rows, and what calibration keeps of them besides.

// The lists are those of CalibrationScores, of the rows that are calibrated on.
struct ScoredBatch {
  std::string sha256{};  // hash_rows, where that is wanted
  uint64_t seen = 0;     // rows, those left out included
  std::vector<double> scores{};
  std::vector<double> baseline{};
  std::vector<int64_t> groups{};
  std::vector<double> weights{};
  std::vector<float> features{};
  // For calibrated probabilities, of the rows whose label is one of the classes: what LogitShares
  // scores them by, and their labels.
  std::vector<double> chances{};
  std::vector<int64_t> labels{};
  uint64_t reached = 0;             // surrogate: rows whose search came within 1 % of the truth
  std::vector<uint64_t> trained{};  // TrainingRows::codes (row_digest.h)

  std::string pack() const;
  static ScoredBatch unpack(std::string_view bytes);
};

class BatchScorer {
 public:
  // All must outlive this. `check_search`: counts the surrogates that come near the truth, which
  // costs another search.
  BatchScorer(const ScoredNetwork& predictor, const CalibrationPlan& plan, const RowFacts& facts,
              bool check_search = true);

  // Everything but the hash and `trained`; x are the batch's, on any device. An Error names the
  // row whose score is NaN.
  ScoredBatch score(const Rows& batch, const torch::Tensor& x) const;

  const ScoredNetwork& predictor() const { return predictor_; }
  const CalibrationPlan& plan() const { return plan_; }
  const RowFacts& facts() const { return facts_; }

 private:
  void score_rows_of(const Rows& batch, const torch::Tensor& x, ScoredBatch& out) const;
  void check_numbers(const std::vector<double>& scores, int64_t score_sides,
                     const Rows& batch) const;
  // An OptionError names the row whose target is outside of what was said of all.
  void check_support(const Rows& batch) const;
  bool calibrates_by_label() const;
  std::vector<int64_t> kept_rows(const Rows& batch) const;
  std::vector<double> kept_scores(std::vector<double> all, int64_t sides, const Rows& batch) const;
  void add_chances(const Rows& batch, const torch::Tensor& features, ScoredBatch& out) const;
  void add_facts(const Rows& batch, const torch::Tensor& features, ScoredBatch& out) const;
  std::vector<int64_t> groups_for(const Rows& batch, const torch::Tensor& features) const;

  const ScoredNetwork& predictor_;
  const CalibrationPlan& plan_;
  const RowFacts& facts_;
  std::unique_ptr<Score> baseline_;
  std::optional<LogitShares> shares_;  // where probabilities are calibrated
  Support support_;
  bool check_search_;
};

}  // namespace fcp
