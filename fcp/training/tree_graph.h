// Boosted members as nodes of a graph: TreeEnsembleRegressor of ai.onnx.ml, which every runtime
// has. Statistics of categories are a Gemm over one-hot columns, of which one at most is 1, so that
// their bits are the same in every runtime and batch, and no threshold is met from another side.
// Tested by tests/training/tree_members_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fcp/nn/graph/graph.h"
#include "fcp/training/tree_members.h"

namespace fcp {

inline constexpr char kTreeAnswers[] = "tree_answers";
inline constexpr char kTreeSpreads[] = "tree_spreads";

// Numbers of all members side by side: [N, E · width].
struct FeatureParts {
  std::string tensor;
  int64_t width = 0;
};

// Adds kTreeAnswers and, where there are any, kTreeSpreads, in the scale of learning, and names
// them in `parts`. Trees read the graph's `input` and `calendar`, if that is not empty; `filled` is
// the input without missing values.
void append_trees(Graph& graph, const TreeMembers& trees, int64_t members,
                  const std::string& filled, const std::string& calendar,
                  std::vector<FeatureParts>& parts);

// Adds `output`, in which the parts of each member stand side by side.
void append_blocks(Graph& graph, const std::vector<FeatureParts>& parts, int64_t members,
                   const std::string& output);

}  // namespace fcp
