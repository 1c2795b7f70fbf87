// The ball around a feature over which a head is bounded: all u with ‖(u − v) / scale‖ ≤ radius.
#pragma once

#include <string>

#include <torch/types.h>

namespace fcp {

enum class Norm { kInf, kTwo, kOne };

std::string norm_name(Norm norm);          // "inf", "2", "1"
Norm parse_norm(const std::string& name);  // an Error lists the names

// The dual norm of each row of `rows` [N, …] → [N]: 1 for inf, 2 for 2, inf for 1.
torch::Tensor dual_norm(const torch::Tensor& rows, Norm norm);

struct Ball {
  torch::Tensor center;  // [N, …]
  torch::Tensor radius;  // [N], one per row, ≥ 0
  Norm norm = Norm::kInf;
  torch::Tensor scale;  // the shape of one row; undefined: 1 for every feature
};

// The scale as [1, …], ones where undefined.
torch::Tensor row_scale(const Ball& ball);

// Numbers per row [N] as [N, 1, …], to be combined with `like` [N, …].
torch::Tensor rowwise(const torch::Tensor& per_row, const torch::Tensor& like);

}  // namespace fcp
