// What calibration keeps of its rows, in two halves: ranks score batches, and rank 0 puts the
// batches together in their order; where the radii of some levels are all that is wanted, each rank
// keeps its scores instead.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fcp/calibration/artifact.h"
#include "fcp/calibration/scored_network.h"
#include "fcp/data/row_digest.h"
#include "fcp/data/rows.h"
#include "fcp/pipeline/score_quantiles.h"
#include "fcp/pipeline/select_options.h"

namespace fcp {

// Of one batch; the lists are those of CalibrationScores, of the rows that are calibrated on.
struct ScoredBatch {
  std::string sha256{};  // of x and y, where that is wanted
  uint64_t seen = 0;     // rows, those left out included
  std::vector<double> scores{};
  std::vector<double> baseline{};
  std::vector<int64_t> groups{};
  std::vector<double> weights{};
  std::vector<float> features{};
  uint64_t reached = 0;             // surrogate: rows whose search came within 1 % of the truth
  std::vector<uint64_t> trained{};  // TrainingRows::codes (row_digest.h)

  std::string pack() const;
  static ScoredBatch unpack(std::string_view bytes);
};

// SHA-256 of a batch's x and y, in hexadecimal digits; of a batch that is larger than a usual one,
// those of its usual ones one after the other, so that larger batches change no hash of all rows.
std::string hash_rows(const Rows& batch);

// What the provenance calls the SHA-256 of those of all batches, and that of the network.
inline constexpr char kDataHash[] = "calibration data sha256";
inline constexpr char kNetworkHash[] = "network sha256";

// Measures on these first rows of a calibration what rounding does (rounding.h), for exports.
void measure_first_rows(const torch::Tensor& x, CalibrationArtifact& artifact);

// What a calibration left out because it was told to (CalibrateSettings::keep_predictor): sorts the
// scores where they lie, and adds both hashes and the rounding where these batches are those it was
// not to hash.
void finish_artifact(std::span<const Rows> unhashed, CalibrationArtifact& artifact);

class BatchScorer {
 public:
  // All must outlive this. `source` names rows.
  BatchScorer(const ScoredNetwork& predictor, const SelectedOptions& options, const RowFacts& facts,
              const RowSource& source);

  // `check_search`: counts the surrogates that come near the truth, which costs another search.
  ScoredBatch score(const Rows& batch, bool check_search = true) const;

  // The same in two parts, which need not be done by one thread: the scores, with x on any device,
  // and `trained`.
  ScoredBatch score_at(const Rows& batch, const torch::Tensor& x, bool check_search = true) const;
  std::vector<uint64_t> find_trained(const Rows& batch) const;

 private:
  void score_rows_of(const Rows& batch, const torch::Tensor& x, bool check_search,
                     ScoredBatch& out) const;
  void check_numbers(const std::vector<double>& scores, int64_t score_sides,
                     size_t first_row) const;
  bool calibrates_by_label() const;
  std::vector<int64_t> kept_rows(const Rows& batch) const;
  std::vector<double> kept_scores(std::vector<double> all, int64_t sides, const Rows& batch) const;
  void add_facts(const Rows& batch, const torch::Tensor& features, ScoredBatch& out) const;
  std::vector<int64_t> groups_for(const Rows& batch, const torch::Tensor& features) const;

  const ScoredNetwork& predictor_;
  const SelectedOptions& options_;
  const RowFacts& facts_;
  const RowSource& source_;
  std::unique_ptr<Score> baseline_;
  TrainingRows training_;  // where the network says what it was trained on
};

class ScoreCollector {
 public:
  // `rows`: how many there will be, about, for memory in one piece.
  ScoreCollector(const CalibrateSettings& settings, const SelectedOptions& options,
                 const ScoredNetwork& predictor, size_t rows, const Communicator& ranks);

  // On rank 0, every batch.
  void take(ScoredBatch batch);

  // Where the radii of levels are wanted: the scores of batches that this rank made, or that rank 0
  // recalled. take() then leaves scores alone, and batches need not carry them.
  void keep(const ScoredBatch& batch);

  // The scores and what belongs to them, put into `result` on rank 0. All ranks call it.
  void finish(Communicator& ranks, CalibrateResult& result);

  size_t seen() const { return seen_; }
  size_t reached() const { return reached_; }
  // Of the rows that the network was trained on with these.
  RowOverlap training_overlap() const { return training_.overlap(); }
  // Of the hashes of all batches.
  std::string sha256() const;

 private:
  void name_groups();

  const CalibrateSettings& settings_;
  const SelectedOptions& options_;
  const ScoredNetwork& predictor_;
  ScoreQuantiles of_levels_;
  CalibrationScores rows_;
  std::vector<double> baseline_;
  std::vector<float> features_;
  std::string hashes_;
  size_t seen_ = 0;
  size_t reached_ = 0;
  TrainingRows training_;
};

}  // namespace fcp
