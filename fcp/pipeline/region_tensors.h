// Regions as plain numbers and names on the host, for those who count, write and show them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/scores/score.h"

namespace fcp {

// Contiguous, on the host, in double precision.
torch::Tensor host_doubles(const torch::Tensor& tensor);

// The numbers of a tensor of doubles on the host, which must outlive them.
std::span<const double> numbers(const torch::Tensor& tensor);

// The nearest float32 numbers that do not shrink the intervals of which these are the ends.
torch::Tensor round_outward(const torch::Tensor& end, bool down);

// The members [N, C] as bytes on the host.
torch::Tensor host_members(const Regions& regions);

std::vector<int64_t> host_labels(const torch::Tensor& labels);

// The labels of row `row` by name.
std::vector<std::string> member_names(const torch::Tensor& members, int64_t row,
                                      const std::vector<std::string>& names);

}  // namespace fcp
