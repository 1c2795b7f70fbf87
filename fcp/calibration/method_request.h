// What a caller asks of a calibration: a score, a way to calibrate it, a cut, and the values that a
// slice of the rows chooses where they are left open. ScoreOptions and CalibrationOptions hold the
// values once they are resolved, and so does the artifact.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "fcp/calibration/calibration.h"
#include "fcp/scores/score.h"

namespace fcp {

struct DefaultCut {  // two layers before the output
  bool operator==(const DefaultCut&) const = default;
};
struct AutoCut {  // the cut whose intervals are shortest on the slice, and its floor
  bool operator==(const AutoCut&) const = default;
};
// The name of a tensor or a node, or a number of layers as text: cut.h.
using CutRequest = std::variant<DefaultCut, AutoCut, std::string>;

inline constexpr char kByIntervalScore[] = "interval-score";
inline constexpr char kByLength[] = "length";

// The best of the scores that suit the network, on a slice of the rows.
inline constexpr char kAutoScore[] = "auto";

// As a calibration: split, of a score that a learned quantile of itself evens out (rectified.h).
inline constexpr char kRectified[] = "rectified";

struct MethodRequest {
  // All but the members below, which stand for the fields of the same name. By default the score
  // is chosen on the slice.
  ScoreOptions score{.name = kAutoScore};
  CalibrationOptions calibration{};

  CutRequest cut{};
  // Without a value: chosen on the slice, where the score or the calibration looks at it.
  std::optional<int> steps{};              // of a surrogate search
  std::optional<double> temperature{1.0};  // lac, aps, raps
  std::optional<double> rank_weight{};     // raps, feature_margin; chosen together with rank_free
  std::optional<double> bandwidth{};       // localized
  double selection = 0.2;                  // the share of the rows that is the slice
  // What `auto` minimises there: kByIntervalScore or kByLength. Sets have no length but their size.
  std::string objective = kByIntervalScore;
};

// The score and the calibration with the values that are given; open ones keep their defaults. The
// calibration shares seed and paper with the score.
ScoreOptions requested_score(const MethodRequest& request);
CalibrationOptions requested_calibration(const MethodRequest& request);

}  // namespace fcp
