// Feature conformal prediction: a trained network becomes one that says how sure it is.
//
//   #include <fcp/fcp.h>
//
//   fcp::ConformalPredictor p = fcp::calibrate("model.onnx", "cal.csv", "y");
//   p.save("calibrated.onnx");
//   const std::vector<float> x = {3.2f, 17, 4};
//   for (const fcp::Interval& i : p.intervals(x, fcp::Level(0.1))) use(i.lower, i.upper);
//
// This is the only header that most programs include; it brings no libtorch. Tensors in place of
// spans: <fcp/tensors.h>. Whatever is wrong with a file, a row or an option is an fcp::Error whose
// message says what and where.
//
// Tested by tests/facade/facade_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/conformal/interval.h"
#include "fcp/conformal/level.h"

namespace fcp {

// One row of a table as it stands in a file: the text of each column by its name. A column that is
// not there, or is empty, is a missing value.
using Record = std::map<std::string, std::string>;

// What is known of rows besides their numbers, one entry per row; empty: nothing.
struct RowInfo {
  std::vector<std::string> groups = {};  // of a predictor that is calibrated by a column of groups
  std::vector<double> weights = {};      // likelihood ratios, where calibration was given them
};

class ConformalPredictor {
 public:
  // Reads what `save`, `fcp calibrate` or Python wrote. device: "cpu" or "cuda".
  static ConformalPredictor load(const std::string& path, const std::string& device = "cpu");

  // An existing file is replaced whole or not at all.
  void save(const std::string& path) const;

  // One interval per row and output, row by row. `x` holds the numbers of one row or of many, row
  // by row; Errors name rows from 0. All functions below are const and may be called from several
  // threads at once.
  //
  // Where group() is a column, `info` names the group of each row; Records that hold this column
  // need not. A group that calibration has not seen gets infinite intervals, or sets of all labels.
  std::vector<Interval> intervals(std::span<const float> x, const Level& level,
                                  const RowInfo& info = {}) const;
  std::vector<Interval> intervals(std::span<const Record> rows, const Level& level,
                                  const RowInfo& info = {}) const;

  // The labels in each row's set, ascending; class_names() tells what they are called.
  std::vector<std::vector<size_t>> label_sets(std::span<const float> x, const Level& level,
                                              const RowInfo& info = {}) const;
  std::vector<std::vector<size_t>> label_sets(std::span<const Record> rows, const Level& level,
                                              const RowInfo& info = {}) const;

  // What the network itself answers: outputs() numbers per row, or one label. Needs no level, group
  // or weight.
  std::vector<double> predictions(std::span<const float> x) const;
  std::vector<double> predictions(std::span<const Record> rows) const;

  // How usual the answers y (outputs() numbers or one label per row) are: small p-values are
  // strange ones. y lies in the region at level α exactly where its p-value is above α.
  std::vector<double> p_values(std::span<const float> x, std::span<const float> y,
                               const RowInfo& info = {}) const;

  bool predicts_labels() const;                          // label sets, not intervals
  size_t row_size() const;                               // numbers in a row of x
  size_t outputs() const;                                // intervals per row; 1 for labels
  const std::vector<std::string>& column_names() const;  // of Records; empty: none are known
  const std::vector<std::string>& class_names() const;   // of labels
  size_t calibration_rows() const;
  std::string score() const;
  std::string cut() const;    // the tensor that is the feature; empty: the network's input
  std::string group() const;  // a column of groups, "predicted" or "label"; empty: no groups

  // The radius at a level, one per side; empty where it differs from row to row.
  std::vector<double> radius(const Level& level) const;

  // What a user of regions at this level should know, a line each: a level at which most regions
  // may miss, a radius that is infinite, or too large for single precision. Mostly empty.
  std::vector<std::string> warnings(const Level& level) const;

  // What a reader of a report wants to know: files, hashes, options, versions.
  const std::map<std::string, std::string>& provenance() const;

  // For fcp/tensors.h and fcp's own functions.
  struct State;
  explicit ConformalPredictor(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  const State& state() const { return *state_; }

 private:
  std::shared_ptr<const State> state_;
};

// How to calibrate. Options that are not named here go into `more` by their names in the option
// table (`fcp calibrate --help` lists them), as text: {{"floor", "0.25"}, {"norm", "2"}}.
struct Settings {
  std::string score = "auto";  // the least interval score, or smallest sets, on held-out rows
  std::string cut = "";        // a tensor, a node, a number of layers, "auto", or "": the default
  std::string calibration = "split";
  std::string group = "";    // grouped: a column, or "predicted" or "label"
  Level level = Level(0.1);  // for which lengths are compared where something is chosen
  std::map<std::string, std::string> more = {};
  uint64_t seed = 0;
  int threads = 0;  // at most, while it calibrates; 0: as many as libtorch has
  std::string device = "cpu";
};

// Calibrates the network of an ONNX file on rows that it was not trained on. `data` is a CSV file,
// an .npy file or a folder of images; `target` a column, or an .npy file for .npy data.
ConformalPredictor calibrate(const std::string& model, const std::string& data,
                             const std::string& target, const Settings& settings = {});

// The same on rows in memory: x [n × columns], y [n × outputs], or one label per row. `info` holds
// the groups of grouped calibration, where settings.group is only what they are called, and the
// likelihood ratios of a weighted one.
ConformalPredictor calibrate(const std::string& model, std::span<const float> x,
                             std::span<const float> y, const Settings& settings = {},
                             const RowInfo& info = {});

}  // namespace fcp
