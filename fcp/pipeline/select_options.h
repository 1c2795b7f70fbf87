// Selects what calibration must not choose itself: the cut, the floor, the surrogate's number of
// steps, the options of label scores, the bandwidth of localized and the likelihood ratio of
// weighted calibration. All of it looks at a slice of the rows only, which is then left out of
// calibration.
//
// Tested by tests/pipeline/calibrate_test.cc, tests/cli/test_calibration.py.
#pragma once

#include <string>
#include <vector>

#include "fcp/data/rows.h"
#include "fcp/network/graph.h"
#include "fcp/pipeline/calibrate.h"

namespace fcp {

// Key of the provenance: which of several outputs were taken by their names.
inline constexpr char kOutputsTaken[] = "outputs taken";

// Rows by number: which ones are set aside for choices. Empty: none.
using RowMask = std::vector<bool>;

// Every option, given or chosen.
struct SelectedOptions {
  Graph network{};  // with the heads and the rectifier that were learned
  ScoreOptions score{};
  CalibrationOptions calibration{};
  std::string cut{};     // empty: the network's input
  DensityRatio ratio{};  // weighted: where it is estimated
  RowMask left_out{};    // the rows that choices looked at
  Choices choices{};
};

// Whether select_options looks at rows: whether anything is left open.
bool chooses_on_rows(const Graph& network, const CalibrateSettings& settings);

SelectedOptions select_options(const Graph& network, RowSource& source,
                               const CalibrateSettings& settings, const Context& context);

// The rest of calibrate() (calibrate.h), where every option is known: what an update does with the
// options of a file. Of the settings, method, shifted and head_rows are not looked at.
CalibrateResult calibrate_selected(const SelectedOptions& options, RowSource& source,
                                   const CalibrateSettings& settings, const Context& context);

}  // namespace fcp
