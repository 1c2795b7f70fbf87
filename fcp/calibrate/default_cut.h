// Where a network is cut when nobody says where: by the shape of its graph alone, no row is seen.
// Tested by tests/calibrate/default_cut_test.cc.
#pragma once

#include <cstdint>
#include <string>

#include "fcp/methods/method.h"
#include "fcp/nn/graph/graph.h"

namespace fcp {

// The cut where none is asked for. For scores of labels but feature_sampled the last valid one that
// leaves a layer to the head, which is then one linear layer as a rule; where more than that is
// behind it, the first one with nothing but affine nodes behind it. Otherwise the last one that
// leaves two, or one where the feature would have more than kLargestFeature numbers per row. The
// feature's first axis is that of the rows.
inline constexpr int64_t kLargestFeature = 4096;
struct CutChoice {
  std::string cut;
  std::string note{};  // what was taken instead of what usually is; empty: nothing
};
CutChoice default_cut(const Graph& network, const ScoreOptions& score);

}  // namespace fcp
