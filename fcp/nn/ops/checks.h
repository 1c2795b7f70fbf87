// Checks of a node's input tensors before libtorch sees them, so that a malformed file gives one
// line that names the node, what was found and what was expected. `what` names the input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/nn/graph/graph.h"

namespace fcp {

std::string shape_text(torch::IntArrayRef shape);  // "[2, 3]"

// The input is there, and its rank is in [least, most].
void expect_rank(const torch::Tensor& tensor, int64_t least, int64_t most, const Node& node,
                 const char* what);

// The input is there and holds floating-point numbers.
void expect_floating(const torch::Tensor& tensor, const Node& node, const char* what);

// The input is of the same type as `data`.
void expect_type_of(const torch::Tensor& data, const torch::Tensor& tensor, const Node& node,
                    const char* what);

// The input is one-dimensional with `size` numbers.
void expect_vector(const torch::Tensor& tensor, int64_t size, const Node& node, const char* what);

// The input can be broadcast to `shape` without changing it.
void expect_broadcast(const torch::Tensor& tensor, torch::IntArrayRef shape, const Node& node,
                      const char* what);

// checked_elements for one sample. The first dimension of a batch is the caller's choice and may
// be large; what a file can blow up is the rest.
void check_sample(std::vector<int64_t> shape, const Node& node);

}  // namespace fcp
