// Calibrations that keep the radii of a few levels instead of all scores: `calibrate --levels`.
//
// Split calibration asks of n scores only the one of rank k = ⌈(1 − α)(n + 1)⌉. Whoever knows the
// levels beforehand can therefore drop the rest: what is kept is n, the levels, and for each side
// the scores of the ranks that the levels need, ascending. The radii are those of all scores, bit
// by bit; other levels and p-values cannot be had.
//
// Tested by tests/methods/calibrations/kept_levels_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fcp/level.h"
#include "fcp/methods/calibrations/calibration.h"

namespace fcp {

// How many rows were calibrated on, with which number of sides and whether in the paper's form:
// what the rank of a level follows from.
struct SideRanks {
  size_t rows = 0;
  int64_t sides = 1;
  bool paper = false;
  int64_t targets = 1;

  int64_t sharing() const { return sides / targets; }

  // The rank of a side's radius, from 1; rows + 1: the radius is +∞.
  size_t rank(const Level& level) const;
  // The ranks of several levels: ascending, each once, without those of infinite radii.
  std::vector<uint64_t> ranks(std::span<const Level> levels) const;
};

// Where the radius of `level` stands among the scores of a side, ascending, of which those of the
// levels `kept` are there (none named: all). Nothing: the radius is +∞. An Error where this level
// is not kept.
std::optional<size_t> radius_place(const SideRanks& ranked, std::span<const Level> kept,
                                   const Level& level);

// What to say of a level that is not kept, or of something that needs all scores: "keeps the radii
// for levels 0.05, 0.1 alone (calibrate --levels)"; nothing where it can be had.
std::optional<std::string> missing_level(std::span<const Level> kept, const Level& level);
std::optional<std::string> missing_scores(std::span<const Level> kept);

}  // namespace fcp
