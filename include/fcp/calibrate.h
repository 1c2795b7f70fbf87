// Calibration: a trained network becomes a Predictor.
//
//   const auto p = fcp::calibrate("model.onnx", "cal.csv", "minutes", {.score = "nested"});
//   p.save("calibrated.onnx");
//
// REQUIRES of all: rows that the network was not trained on, drawn as future rows will be. Rows on
// which fcp trained the network itself are recognised, and are an Error.
//
// Thread-safe. No thread outlives a call, and thread counts, allocator, signals and umask of the
// process stay as they were.
//
// Tested by tests/api/api_test.cc.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "fcp/level.h"
#include "fcp/predictor.h"

namespace fcp {

struct CalibrateOptions {
  // "auto": the score with the least interval score, or the smallest sets, on held-out rows.
  std::string score = "auto";
  std::string cut = "";  // a tensor, a node, a number of layers, "auto", or "": the default
  std::string calibration = "split";
  std::string group = "";    // grouped: a column, or "predicted" or "label"
  Level level = Level(0.1);  // at which lengths are compared where something is chosen
  // All other options by their names in the option table, as text: {{"floor", "0.25"}}.
  // `fcp calibrate --help` lists them. An unknown name is an Error.
  std::map<std::string, std::string> more = {};
  uint64_t seed = 0;
  int threads = 0;  // at most; 0: as many as libtorch has
  std::string device = "cpu";
  // Weighted calibration on files: a column, or an .npy file, of likelihood ratios.
  std::string weights = "";
  // Keep the radii of these levels alone, in place of all scores: a small file. Split calibration.
  std::vector<Level> keep_levels = {};
};

// On rows of files: `data` is a CSV, .npy or .npz file or a folder of images; `target` a column, or
// an .npy file for arrays. Rows are streamed; memory holds their scores alone.
Predictor calibrate(const std::string& model, const std::string& data, const std::string& target,
                    const CalibrateOptions& options = {});

// On rows in memory, N of them: x [N × row size] and y [N × outputs], or one label per row. `info`
// holds the groups of a grouped calibration, whose options.group is then only their name, and the
// likelihood ratios of a weighted one.
Predictor calibrate(const std::string& model, std::span<const float> x, std::span<const float> y,
                    const CalibrateOptions& options = {}, const RowInfo& info = {});

// The same by name: all inputs of the network, or the columns of its table.
Predictor calibrate(const std::string& model, std::span<const NamedValues> x,
                    std::span<const float> y, const CalibrateOptions& options = {},
                    const RowInfo& info = {});

}  // namespace fcp
