// Regions as plain numbers and names on the host, for those who count, write and show them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/methods/scores/score.h"

namespace fcp {

// Contiguous, on the host, in double precision.
torch::Tensor host_doubles(const torch::Tensor& tensor);

// The numbers of a tensor of doubles on the host, which must outlive them.
std::span<const double> numbers(const torch::Tensor& tensor);

// The ends of an interval as float32 numbers, between which lie the same float32 numbers as between
// the doubles. All data are read as float32: a truth is in the one exactly where it is in the
// other, and an end that is read back as a truth is in. Where no float32 number lies between the
// doubles, the ends are those on either side of it, the lower one above the upper one: an interval
// that holds no truth.
struct FloatInterval {
  float lower, upper;
};
FloatInterval float_interval(double lower, double upper);

// Those of tensors of one shape, on the host.
struct FloatEnds {
  torch::Tensor lower, upper;
};
FloatEnds float_ends(const torch::Tensor& lower, const torch::Tensor& upper);

// Prediction, lower and upper ends as float32 numbers, [N, K, 3] on the host.
torch::Tensor interval_numbers(const Regions& regions);

// The length of each row's intervals (their mean over outputs, of unions the sum of their parts, of
// one-sided bounds how far they lie beyond the prediction),
// or the number of labels in its set.
std::vector<double> region_sizes(const Regions& regions);

// The members [N, C] as bytes on the host.
torch::Tensor host_members(const Regions& regions);

// Labels as numbers; kUnknownLabel (set_evaluation.h) for a truth that is none of the classes.
std::vector<int64_t> host_labels(const torch::Tensor& labels);

// Whether the set of each row, members [N, C], holds its truth [N, 1]: [N] bool.
torch::Tensor label_hits(const torch::Tensor& members, const torch::Tensor& truth);

// The labels of row `row` by name.
std::vector<std::string> member_names(const torch::Tensor& members, int64_t row,
                                      const std::vector<std::string>& names);

}  // namespace fcp
