// Sets of labels as plain numbers and names, for those who write and show them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/scores/score.h"

namespace fcp {

// The members [N, C] as bytes on the host.
torch::Tensor host_members(const Regions& regions);

std::vector<int64_t> host_labels(const torch::Tensor& labels);

// The labels of row `row` by name.
std::vector<std::string> member_names(const torch::Tensor& members, int64_t row,
                                      const std::vector<std::string>& names);

}  // namespace fcp
