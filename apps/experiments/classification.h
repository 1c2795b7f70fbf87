// Label sets in feature space beside their baselines, as in the paper's Table 3 and its ablation of
// the cut: random halvings of the rows into calibration and test, several levels and scores over
// one head. What a score has to choose (temperature, rank term, number of steps) it chooses on a
// slice of the calibration half that is then dropped.
//
// Tested by tests/experiments/classification_test.cc and classification_slow_test.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/level.h"
#include "fcp/methods/scores/feature_sampled.h"
#include "fcp/methods/scores/score.h"
#include "fcp/nn/runtime/network.h"

namespace fcp {

// lac, aps, raps, saps, feature_sampled, feature_margin and feature_margin+rank. The first four are
// over a softmax of fitted temperature, which raps and saps choose with their rank terms; they and
// aps are randomised. feature_margin+rank chooses its rank term.
const std::vector<std::string>& classification_methods();

struct ClassificationOptions {
  std::vector<std::string> methods = classification_methods();
  std::vector<Level> levels = {Level(0.1), Level(0.05)};
  uint64_t halvings = 20;
  double selection_share = 0.2;     // of the calibration half
  int64_t most_rows = 0;            // of each half; 0: all
  FeatureSampledOptions sampled{};  // steps 0: chosen
  uint64_t seed = 0;
};

// One score at one level on one halving.
struct ClassificationCell {
  std::string method;
  std::string level;
  uint64_t halving = 0;
  std::string note;                 // "T = 1.21", "M = 12", …
  double coverage = 0;              // share of rows whose label is in their set
  std::optional<double> detection;  // share of rows with score ≤ radius, for feature_sampled
  double size = 0;                  // mean
  double worst_stratum = 0;         // coverage of the worst stratum of set sizes
  double violation = 0;             // largest |coverage − (1 − α)| of a stratum
  double seconds = 0;               // choices, calibration scores and test sets
  std::string failed;               // why there is no result; empty: there is one
};

// A head, one feature per row [N, …], and labels [N].
struct ClassificationData {
  std::shared_ptr<const Network> head;
  torch::Tensor features;
  torch::Tensor labels;
};

std::vector<ClassificationCell> run_classification(const ClassificationData& data,
                                                   const ClassificationOptions& options);

}  // namespace fcp
