// The smallest radius at which something holds, for each row by itself, by bisection over float32.
//
// The bit patterns of float32 numbers are ordered like the numbers, so that bisection over the
// patterns finds the radius exactly, at any scale and without a bracket: multiplying features by a
// power of two multiplies radii by it and changes nothing else. A radius is known by its `key`, the
// pattern as an integer; −key stands for the negative radius of the same size.
//
// Where "it holds" is not monotone in the radius, the answer is by definition what the bisection
// finds. Whether it finds at most r is then decided by the radii on its path towards r alone: at a
// radius m > r it must hold (otherwise the bisection goes above m), and at one m ≤ r it suffices
// that it holds (the bisection ends at m or below). Sets {y : it holds at m} are therefore put
// together along the path, from its end to its beginning:
//
//   R = ∅ at the end;   going back:   R ← set(m) ∩ R where r < m,   R ← set(m) ∪ R where m ≤ r
//
// Cost: 31 questions per row, 32 with negative radii. Tested by
// tests/methods/scores/radius_search_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <torch/types.h>

namespace fcp {

// Which radii there are: all finite ones from 0 on, or the negative ones as well.
enum class RadiusRange { kFromZero, kSigned };

// float32 radii [N] → bool [N].
using HoldsAt = std::function<torch::Tensor(const torch::Tensor& radius)>;

// The smallest radius of each of `rows` rows at which `holds`, [N] doubles; +∞ where there is none.
torch::Tensor smallest_radius(int64_t rows, torch::Device device, RadiusRange range,
                              const HoldsAt& holds);

// The largest float32 radius of the range that is at most `radius` [N]; `exists` is false where
// there is none, and the radius then the smallest of all.
struct RadiusBelow {
  torch::Tensor radius;  // [N] float32, finite
  torch::Tensor exists;  // [N] bool
};
RadiusBelow radius_below(const torch::Tensor& radius, RadiusRange range);

// The radii that the bisection towards `radius` [N] looks at, from the last to the first.
struct PathStep {
  torch::Tensor radius;  // [N] float32
  torch::Tensor within;  // [N] bool: it is at most the radius asked for
  torch::Tensor active;  // [N] bool: false where the row's path has ended before
};
std::vector<PathStep> path_back(const torch::Tensor& radius, RadiusRange range);

}  // namespace fcp
