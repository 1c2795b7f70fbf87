// Forests out of the attributes of tree nodes, as versions 1 to 3 and version 5 of ai.onnx.ml lay
// them out, and the labels of classifiers.
#pragma once

#include <string>
#include <vector>

#include "fcp/nn/ops/ml/forest.h"
#include "fcp/nn/ops/op.h"

namespace fcp {

// Attribute `name`, or `name`_as_tensor in double precision.
std::vector<double> numbers_or_tensor(OpArguments& arguments, const std::string& name);

// `votes` is "target" or "class".
PlainForest read_forest(OpArguments& arguments, const std::string& votes);
PlainForest read_forest_v5(OpArguments& arguments);

Aggregate read_aggregate(OpArguments& arguments);
Aggregate read_aggregate_v5(OpArguments& arguments);

// The labels of a classifier. Strings stay in the file: there is no tensor of them.
struct ClassLabels {
  torch::Tensor integers;  // undefined: strings
  int64_t count = 0;

  // The label of each row's class; undefined for strings.
  torch::Tensor of(const torch::Tensor& classes) const;
};
ClassLabels read_labels(OpArguments& arguments);

}  // namespace fcp
