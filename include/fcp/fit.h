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
  std::string task = "auto";         // "regression", "classification" or "auto": by the target
  std::string score = "auto";        // as of CalibrateOptions
  std::string calibration = "auto";  // "split", "cross" (CV+), or "auto": by the number of rows
  std::string group = "";            // a column whose groups the split keeps together
  std::string time = "";             // a column: train on the oldest rows, evaluate on the newest
  std::vector<double> shares = {};   // training, calibration, test; empty: by the number of rows
  Level level = Level(0.1);          // of the evaluation, and of choices
  int64_t members = 5;               // networks of the ensemble
  int64_t epochs = 0;                // at most; 0: by the number of rows
  bool trees = true;  // boosted trees beside the networks, where the build has XGBoost
  std::map<std::string, std::string> more = {};  // as of CalibrateOptions
  uint64_t seed = 0;
  int threads = 0;  // at most; 0: as many as libtorch has
  std::string device = "cpu";
};

struct FitResult {
  Predictor predictor;
  EvaluationResult evaluation;  // on the test rows
  size_t training_rows = 0, calibration_rows = 0, test_rows = 0;
  std::vector<std::string> warnings = {};
};

// `data` is a CSV file, or an .npy file with `target` another one. Column types, categories and
// missing values are inferred. An Error where there are too few rows for three parts.
FitResult fit(const std::string& data, const std::string& target, const FitOptions& options = {});

}  // namespace fcp
