#include "fcp/pipeline/score_quantiles.h"

#include <utility>

#include "fcp/calibration/kept_levels.h"
#include "fcp/distributed/refinement.h"
#include "fcp/distributed/selection.h"

namespace fcp {

ScoreQuantiles::ScoreQuantiles(int64_t sides, size_t rows) : sides_(static_cast<size_t>(sides)) {
  for (std::vector<uint64_t>& side : sides_) side.reserve(rows);
  baseline_.reserve(rows);
}

void ScoreQuantiles::take(std::span<const double> scores, std::span<const double> baseline) {
  for (size_t i = 0; i < scores.size(); ++i) {
    sides_[i % sides_.size()].push_back(ordered_key(scores[i]));
  }
  for (const double score : baseline) baseline_.push_back(ordered_key(score));
}

void ScoreQuantiles::finish(Communicator& ranks, CalibrationArtifact& artifact) {
  CalibrationScores& rows = artifact.rows;
  uint64_t counts[] = {sides_[0].size(), baseline_.size()};
  ranks.all_reduce(counts, Reduce::kSum);
  rows.sides = static_cast<int64_t>(sides_.size());
  rows.total = counts[0];
  const SideRanks ranked{rows.total, rows.sides, artifact.calibration};
  const std::vector<uint64_t> ks = ranked.ranks(rows.levels);
  rows.scores.resize(ks.size() * sides_.size());
  for (size_t side = 0; side < sides_.size(); ++side) {
    const auto found = distributed_select_keys(ranks, std::move(sides_[side]), ks);
    for (size_t i = 0; i < ks.size(); ++i) rows.scores[i * sides_.size() + side] = found[i];
  }
  if (counts[1] == 0) return;
  // The baseline has one side, and is never the paper's own form.
  const std::vector<uint64_t> plain = SideRanks{rows.total}.ranks(rows.levels);
  artifact.baseline = distributed_select_keys(ranks, std::move(baseline_), plain);
}

}  // namespace fcp
