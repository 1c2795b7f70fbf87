// Localized calibration: calibration rows whose features lie near the new row's count more, so that
// the radius follows the spread of y from place to place. "Feature LCP" is nested with this.
//
// Weights that are simply centred at the new row would break exchangeability: the new row alone
// would sit at the centre of its own kernel. The valid form draws a centre at random from the
// kernel around the new feature,
//
//   c = v + h ξ,  ξ standard normal;   w_i = exp(−‖v_i − c‖² / 2h²),   w_new = exp(−‖v − c‖² / 2h²)
//
// and takes the weighted conformal quantile. Given c, the n + 1 rows are exchangeable up to these
// very weights, whichever of them the centre was drawn for, so coverage is at least 1 − α over all
// rows, for every bandwidth h; and because rows near c resemble the new one, coverage is close to
// 1 − α in every neighbourhood that is large against h. As h → ∞ it is split calibration.
//
// ξ is drawn anew for every row: a pseudo-random function of the row's key and the seed, where the
// key says which row it is: its place in the data, together with a hash of x (PredictorCore). It
// must not be a function of x alone: where few different x exist there would be few draws, and
// coverage would be that of these draws instead of the mean over all. What is reproducible: the
// same data in the same order with the same seed gives the same intervals, in batches of any size.
// The same x at another place of the data, or alone, has another centre; to have the same one, give
// it the same place (SideInformation::first).
//
// Cost: n D a row. The artifact keeps the n calibration features.
// Reference: Hore, Barber, Conformal Prediction with Local Weights, 2023; Guan, Localized Conformal
// Prediction, 2023. Tested by tests/methods/calibrations/localized_test.cc.
#pragma once

#include <memory>
#include <vector>

#include "fcp/methods/calibrations/calibration.h"
#include "fcp/methods/scores/score.h"

namespace fcp {

struct LocalizedOptions {
  static constexpr char kName[] = "localized";

  double bandwidth = 0;  // h, in the unit of the features

  static std::vector<Option> rows();
  bool operator==(const LocalizedOptions&) const = default;
};

std::unique_ptr<Calibration> make_calibration(const LocalizedOptions& options,
                                              const SharedCalibrationOptions& shared,
                                              const CalibrationScores& rows, int64_t classes);

// One bandwidth, judged on rows that are then left out of calibration.
struct BandwidthCandidate {
  double bandwidth = 0;
  double coverage = 0;
  double loss = 0;            // mean interval score; for labels mean size plus 1/α a miss
  double effective_rows = 0;  // mean of (Σ w)² / Σ w²
};

struct BandwidthChoice {
  std::vector<BandwidthCandidate> candidates;
  size_t chosen = 0;  // the smallest loss
};

// Tries bandwidths from a quarter to eight times the median distance of two rows: half of the rows
// calibrate, the other half judges, both ways round.
BandwidthChoice choose_bandwidth(const Score& score, const torch::Tensor& features,
                                 const torch::Tensor& truth, const Level& level, uint64_t seed);

}  // namespace fcp
