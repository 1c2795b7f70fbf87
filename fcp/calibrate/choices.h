// What was chosen for a calibration and why, as plain values: every candidate with the figures by
// which it was judged; and what was detected meanwhile. All of it was judged on a slice of the
// rows that is then left out of calibration.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fcp/predictor/provenance.h"

namespace fcp {

struct CutCandidate {
  std::string cut;
  double floor = 0;
  double length = 0;  // mean over rows and outputs
  double coverage = 0;
  std::string skipped{};  // why it was not tried; empty: it was
};

struct BandwidthTried {
  double bandwidth = 0;
  double loss = 0;
  double coverage = 0;
  double effective_rows = 0;
};

struct ChosenSteps {
  int steps = 0;
  double coverage = 0;  // of the slice, by the bands
};

struct ChosenRankTerm {
  double weight = 0;
  int64_t free = 0;
};

struct Choices {
  std::string score;     // whose options they are
  size_t rows = 0;       // of the slice; 0: there was nothing to choose
  bool left_out = true;  // false: the slice is calibrated on as well, which is the paper's habit
  std::optional<ScoresTried> scores{};            // where the score itself was left open
  std::optional<ChosenFrom<CutCandidate>> cut{};  // with the floor
  size_t head_rows = 0;        // rows that heads on features were fitted on; 0: none were fitted
  bool own_head_rows = false;  // other rows than those of the calibration
  bool rectified = false;      // by a quantile of the score that was learned on the slice
  std::optional<ChosenSteps> steps{};  // of the surrogate search for intervals
  std::optional<double> temperature{};
  std::optional<ChosenRankTerm> rank_term{};
  std::optional<int> sampled_steps{};  // of feature_sampled
  std::optional<ChosenFrom<BandwidthTried>> bandwidth{};
  std::optional<size_t> shifted_rows{};  // with which the slice was compared for the ratio
};

// What calibration detected about its rows besides their scores.
struct CalibrationFindings {
  size_t seen = 0;                         // rows, those left out included
  size_t kept = 0;                         // rows that are calibrated on
  int steps = 0;                           // of the surrogate search
  std::optional<double> reached{};         // surrogate: share of rows with an error below 1 %
  std::optional<double> effective_rows{};  // weighted: unweighted rows that are worth as much
};

}  // namespace fcp
