// Guaranteed ranges of a head's output over a ball of features. Four methods, each a file of its
// own, from the fastest to the tightest:
//
//   ibp          intervals forwards, op by op
//   crown-ibp    linear functions backwards, over intervals from ibp
//   crown        linear functions backwards, for every intermediate range too
//   alpha-crown  crown with the lines of its relaxations optimised, inside the head too
//
// Every method is sound: no point of the ball has an output outside the range, rounding included
// (of IEEE arithmetic: a GPU must not be allowed TF32). Rounding is allowed for as if all its
// errors added up, so that a range of radius 0 has a width, of about 1e-3 of the output for a
// perceptron of three layers and more for wide convolutions; `outward = false` leaves it out, twice
// as fast or more, and ibp is monotone either way.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/nn/runtime/network.h"

namespace fcp {

// The ball around a feature over which a head is bounded: all u with ‖(u − v) / scale‖ ≤ radius.

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

enum class BoundMethod { kIbp, kCrownIbp, kCrown, kAlphaCrown };

std::string bound_name(BoundMethod method);        // "ibp", "crown-ibp", "crown", "alpha-crown"
BoundMethod parse_bound(const std::string& name);  // an Error lists the names

struct BoundOptions {
  BoundMethod method = BoundMethod::kIbp;
  int iterations = 20;  // alpha-crown
  double rate = 0.1;    // alpha-crown
  bool outward = true;  // widen by what rounding can do; off to compare with plain arithmetic
  size_t memory = 0;    // bytes for the walks, beside the weights; 0: half of the free memory

  bool operator==(const BoundOptions&) const = default;
};

// The bounds of one head. Immutable; any number of threads may ask.
class HeadBounds {
 public:
  virtual ~HeadBounds() = default;

  // One Range (see op.h) for each output of the head, shaped as the output. Rows, and numbers on
  // their backward pass, go in pieces that fit the memory; an Error where not even one does.
  std::vector<Range> ranges(const Ball& ball) const { return around(ball)(ball.radius); }

  // The same for many radii [N] around the same centers: what does not depend on the radius, the
  // head's first product, is computed once. The ball's own radius is not looked at.
  using RangesAt = std::function<std::vector<Range>(const torch::Tensor& radius)>;
  virtual RangesAt around(const Ball& ball) const = 0;

  // Whether a larger radius never gives a smaller range, to the last bit. True of ibp alone.
  virtual bool monotone() const = 0;
};

// Throws an Error before any work when an op of the head has no rule for the method; it names the
// op and says what to do.
std::unique_ptr<HeadBounds> make_bounds(std::shared_ptr<const Network> head,
                                        const BoundOptions& options = {});

}  // namespace fcp
