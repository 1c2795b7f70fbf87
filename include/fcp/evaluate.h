// Evaluation: how often the regions of a Predictor contain the truth, and how long they are.
//
//   const fcp::EvaluationResult r = fcp::evaluate(p, "test.csv", "minutes");
//
// REQUIRES: rows that were not used for training or calibration. Thread-safe, as calibrate.h.
// Tested by tests/api/api_test.cc.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fcp/level.h"
#include "fcp/predictor.h"

namespace fcp {

struct EvaluationOptions {
  Level level = Level(0.1);
  std::string weights = "";  // weighted calibration on files: a column, or an .npy file
  int threads = 0;           // at most; 0: as many as libtorch has
};

struct EvaluationResult {
  size_t rows = 0;
  size_t covered = 0;   // rows whose truth is in the region, with all of its outputs
  double coverage = 0;  // covered / rows, and its 95 % confidence interval
  double coverage_low = 0, coverage_high = 0;
  double size = 0;  // mean length over rows and outputs; of label sets, mean number of labels
  std::optional<double> interval_score = {};  // Winkler's, mean over rows and outputs; intervals
  // The error of the point prediction: of each target; of labels, the share that is right.
  std::vector<double> rmse = {}, mae = {};
  std::optional<double> accuracy = {};
};

EvaluationResult evaluate(const Predictor& predictor, const std::string& data,
                          const std::string& target, const EvaluationOptions& options = {});

// On rows in memory; truth as of Predictor::judge.
EvaluationResult evaluate(const Predictor& predictor, const Batch& batch,
                          std::span<const float> truth, const EvaluationOptions& options = {});

}  // namespace fcp
