// What the classifiers and regressors of ai.onnx.ml share: inputs as floating-point numbers, and
// transforms of scores.
#pragma once

#include <string>

#include <torch/types.h>

#include "fcp/nn/ops/op.h"

namespace fcp {

enum class PostTransform { kNone, kSoftmax, kLogistic, kSoftmaxZero, kProbit };

// From the attribute's text, or its number as TreeEnsemble of version 5 has it.
PostTransform read_post_transform(OpArguments& arguments, const std::string& name);
PostTransform post_transform_of(int64_t number, const Node& node);

// Of scores [N, C], along C.
torch::Tensor apply(PostTransform transform, const torch::Tensor& scores);

// [N, F] of float or double, contiguous, on the CPU; a vector is one row, integers become floats,
// or doubles where they are 64 bits wide. An Error where it has fewer than `features` columns.
torch::Tensor rows_of(const torch::Tensor& x, int64_t features, const Node& node);

}  // namespace fcp
