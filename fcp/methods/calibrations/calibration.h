// From the scores of the calibration rows to a radius for each new row. Around any score:
//
//   split      one radius for all rows: the conformal quantile of all scores
//   grouped    one per group (Mondrian): the quantile of the scores of the row's own group, so that
//              the guarantee holds in each group. A group with too few rows gets +∞.
//   localized  one per row: a weighted quantile in which calibration rows near the new one in
//              feature space count more (localized.h says why it stays valid)
//   weighted   one per row: a weighted quantile for rows of another distribution of x, whose
//              likelihood ratio to that of the calibration rows is given or estimated
//   cross      of a network that its own training rows calibrate (fcp/methods/scores/cross.h): the
//              rank of the level among them; what is guaranteed is less
//              (conformal/cross_guarantee.h)
//
// A score with S sides is calibrated side by side, each at α / S (at α in the paper's own form).
// Where T targets have a level of their own, the S / T sides of each share it.
//
// Tested by tests/methods/calibrations/calibration_test.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/level.h"

namespace fcp {

// The options that every calibration has. Each calibration's own stand beside it (GroupedOptions in
// grouped.h, …); calibration_table.h puts both together.
struct SharedCalibrationOptions {
  uint64_t seed = 0;   // localized: of its random centres
  bool paper = false;  // the paper's code: the largest score instead of +∞, and α for every side

  bool operator==(const SharedCalibrationOptions&) const = default;
};

struct Option;  // fcp/methods/option.h

// What is kept of the calibration rows.
struct CalibrationScores {
  int64_t sides = 1;
  int64_t targets = 1;                   // outputs with a level of their own
  std::vector<double> scores;            // [n × sides], row by row
  std::vector<Level> levels{};           // split: where only their scores are kept (kept_levels.h),
                                         // ascending; empty: all scores are there
  size_t total = 0;                      // with levels: n, which the scores no longer tell
  std::vector<int64_t> groups;           // grouped: [n], indices of group_names
  std::vector<std::string> group_names;  // grouped
  std::vector<double> weights;           // weighted: [n]
  torch::Tensor features;                // localized: [n, D] float

  size_t count() const {
    return levels.empty() ? scores.size() / static_cast<size_t>(sides) : total;
  }
  int64_t sharing() const { return sides / targets; }  // sides that share a level
};

// What is known of new rows; only what the calibration asks for need be there.
struct TestInputs {
  torch::Tensor features;       // [N, …]
  std::vector<int64_t> groups;  // [N]; −1, or any that is not an index: unseen
  std::vector<double> weights;  // [N]
  // localized: [N], a number that tells the row from all others, equal ones among them; empty: its
  // place in this batch.
  std::vector<uint64_t> keys{};
};

class Calibration {
 public:
  virtual ~Calibration() = default;

  // The radius of each row and side, [N, S]; where groups are labels, of each row and label [N, C].
  virtual torch::Tensor radii(const TestInputs& rows, const Level& level) const = 0;

  // The p-value of each row's scores [N × S]: p > α exactly where all are within their radii (but
  // where the paper's form puts the largest score for an infinite radius). Of several targets that
  // of each, [N × T].
  virtual std::vector<double> p_values(const TestInputs& rows,
                                       std::span<const double> scores) const = 0;
};

// Each side ascending, in place, as the artifact of split calibration has them; NaN is an Error.
void sort_sides(CalibrationScores& rows, size_t threads = 1);

// The scores of one side, in the order in which they are kept.
std::vector<double> side_scores(const CalibrationScores& rows, int64_t side);

// The level of one of `sharing` sides that share a level.
Level side_level(const Level& level, int64_t sharing, bool paper);

// The p-value of a row from the p-values of the sides that share a level: p > α where each of them
// is above its own.
double join_sides(std::span<const double> p_values, bool paper);
// Those of all targets, from the p-values of all sides.
void join_targets(std::span<const double> p_values, int64_t sharing, bool paper, double* joined);

}  // namespace fcp
