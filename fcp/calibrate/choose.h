// Chooses what calibration must not choose itself. All of it looks at a slice of the rows only,
// which is then left out of calibration (heads on features at a second one, or at rows of their
// own). A step is a function: it takes what is settled so far and the rows, settles its part, and
// says in `choices` what it compared. choose_options runs them in the order below.
//
// Tested by tests/calibrate/calibrate_test.cc, tests/cli/test_calibration.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/calibrate/calibrate.h"
#include "fcp/data/rows.h"
#include "fcp/nn/graph/graph.h"

namespace fcp {

// Rows by number: which ones are set aside for choices. Empty: none.
using RowMask = std::vector<bool>;

// Every option of a calibration, given or chosen.
struct CalibrationPlan {
  Graph network{};  // with the heads and the rectifier that were learned
  Method method{};
  DensityRatio ratio{};  // weighted: where it is estimated
  RowMask left_out{};    // the rows that choices looked at
  Choices choices{};
};

// What is left open.
struct OpenOptions {
  bool score = false;   // and with it the cut and the options of the score that is chosen
  bool heads = false;   // that the score needs
  bool scales = false;  // of several targets
  bool cut = false, floor = false;
  bool steps = false;                           // of a search
  bool temperature = false, rank_term = false;  // of labels
  bool rectifier = false, bandwidth = false, ratio = false;

  bool operator==(const OpenOptions&) const = default;
  bool any() const { return *this != OpenOptions{}; }
};

struct ChoiceState {
  CalibrationPlan plan{};
  OpenOptions open{};
  bool labels = false;     // where the score is open: whether it is one of labels
  std::string no_heads{};  // where the score is open: why none on heads can be chosen
};

// What a step may look at.
struct ChoiceRows {
  RowSource& source;
  const CalibrateSettings& settings;
  const Context& context;
  size_t batch = 0;   // rows to read at a time
  size_t count = 0;   // of the source
  size_t sliced = 0;  // the slice is as many rows at the front of a random order
  Rows slice{};
  std::vector<int64_t> slice_groups{};  // of settings.keep_together, where there are any

  torch::Tensor x() const;
  torch::Tensor y() const;
};

// The steps; each leaves the state as it is where its part is not open.
ChoiceState choose_heads(ChoiceState state, const ChoiceRows& rows);          // fit_heads.cc
ChoiceState choose_scales(ChoiceState state, const ChoiceRows& rows);         // fit_heads.cc
ChoiceState choose_score(ChoiceState state, const ChoiceRows& rows);          // choose_score.cc
ChoiceState choose_label_options(ChoiceState state, const ChoiceRows& rows);  // label_options.cc
ChoiceState choose_search_steps(ChoiceState state, const ChoiceRows& rows);   // surrogate_steps.cc
ChoiceState choose_cut(ChoiceState state, const ChoiceRows& rows);            // choose_cut.cc
ChoiceState choose_rectifier(ChoiceState state, const ChoiceRows& rows);      // fit_heads.cc
ChoiceState choose_bandwidth(ChoiceState state, const ChoiceRows& rows);      // choose.cc
ChoiceState choose_ratio(ChoiceState state, const ChoiceRows& rows);          // choose.cc

// Whether choose_options looks at rows: whether anything is left open.
bool chooses_on_rows(const Graph& network, const CalibrateSettings& settings);

// The observer hears of the choices.
CalibrationPlan choose_options(const Graph& network, RowSource& source,
                               const CalibrateSettings& settings, const Context& context);

// For steps.

// The cut of a score where none is asked for; of a score that is open, that of the plainest one.
std::string usual_cut(const ChoiceState& state, Observer* observer = nullptr);

bool has_several_targets(const ChoiceState& state, const RowSource& source);

// More rows than these would be left out of the calibration for nothing.
inline constexpr size_t kLeastForHeads = 200;
size_t most_learned(const RowSource& source);

size_t count_rows(RowSource& source, size_t batch);

// The rows at the places [first, last) of a random order; of rows with groups the whole groups that
// begin there.
RowMask random_rows(size_t rows, size_t first, size_t last, uint64_t seed,
                    std::span<const int64_t> groups = {});

// The rows of the whole source whose mask is `wanted`, in memory.
Rows take_masked(RowSource& source, const RowMask& mask, bool wanted, size_t batch);

}  // namespace fcp
