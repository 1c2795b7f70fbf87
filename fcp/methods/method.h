// A method: everything that decides which interval or set a calibrated network gives, but for the
// calibration rows. It is what an artifact stores and what is passed around once all options are
// given or chosen.
//
//   Method method{.score = NestedOptions{.norm = Norm::kTwo}, .cut = "hidden"};
//   method.calibration = GroupedOptions{.group = "city"};
//
// options.h has what a caller asks for, which may leave values open.
#pragma once

#include <iosfwd>
#include <string>

#include "fcp/methods/calibrations/calibration_table.h"
#include "fcp/methods/scores/score_table.h"

namespace fcp {

struct Method {
  ScoreOptions score{};
  CalibrationOptions calibration{};
  std::string cut{};  // tensor that is the feature; empty: the network's input

  bool operator==(const Method&) const = default;
};

// "nested norm=2 cut=hidden, grouped group=city": what differs from the defaults.
std::ostream& operator<<(std::ostream& out, const Method& method);

}  // namespace fcp
