// From one table to a Predictor: rows are split, a network is trained on one part, calibrated on
// another and evaluated on the rest.
//
//   const fcp::FitResult r = fcp::fit("data.csv", "price");
//   r.predictor.save("model.onnx");
//
// Thread-safe, as calibrate.h. Tested by tests/api/api_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fcp/evaluate.h"
#include "fcp/level.h"
#include "fcp/predictor.h"

namespace fcp {

struct FitOptions {
  std::string task = "auto";   // "regression", "classification" or "auto": by the target
  std::string score = "auto";  // as of CalibrateOptions
  // "split", "rectified", "cross" (CV+), or "auto": by the number of rows
  std::string calibration = "auto";
  // A column whose groups stay together, in the split and in all that is learned; it is no feature.
  std::string keep_together = "";
  std::string group = "";  // its old name
  // A column: evaluate on the newest rows, then train on all but the newest, which calibrate.
  std::string time = "";
  std::string cover_each = "";  // coverage for each group of this column; "label": each class
  // A column, or an .npy file: how much each row counts in training. It is no feature. Calibration
  // and evaluation are unweighted: the guarantee is for a row like those of the table.
  std::string row_weights = "";
  std::vector<std::string> drop = {};             // columns that are not read
  std::vector<std::string> categorical = {};      // columns of categories
  std::map<std::string, std::string> types = {};  // of columns: "number", "date:dmy", …
  std::vector<std::string> missing = {};          // cells that stand for no value
  std::vector<double> shares = {};    // training, calibration, test; empty: by the number of rows
  Level level = Level(0.1);           // of the evaluation, and of choices
  int64_t members = 5;                // networks of the ensemble
  int64_t epochs = 0;                 // at most; 0: by the number of rows
  std::string target_scale = "auto";  // "identity", "log" or "auto": by short boosted runs
  bool trees = true;  // boosted trees beside the networks, where the build has XGBoost
  std::map<std::string, std::string> more = {};  // as of CalibrateOptions
  uint64_t seed = 0;
  int threads = 0;  // at most; 0: as many as libtorch has
  std::string device = "cpu";
};

struct FitResult {
  Predictor predictor;
  EvaluationResult evaluation;                                    // on the test rows
  size_t training_rows = 0, calibration_rows = 0, test_rows = 0;  // of the evaluation
  std::string split = {};                                         // how rows were split, in words
  std::vector<std::string> warnings = {};
};

// `data` is a CSV file, or an .npy file with `target` another one. Column types, categories and
// missing values are inferred. An Error where there are too few rows for three parts.
FitResult fit(const std::string& data, const std::string& target, const FitOptions& options = {});

}  // namespace fcp
