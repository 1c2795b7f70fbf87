// What is known of an operator by its name alone: the columns of operators.inc. What depends on
// attributes or constants, the operator's class says (op.h).
#pragma once

#include <vector>

#include <torch/types.h>

#include "fcp/nn/graph/graph.h"

namespace fcp {

enum OpTraits : unsigned {
  kNoTraits = 0,
  kBatchFree = 1 << 0,   // its rows have the same bits in batches of any size (batch_free.h)
  kAnyLayout = 1 << 1,   // the same bits however the numbers of the inputs lie in memory
  kLayer = 1 << 2,       // multiplies by weights, which training has usually learned
  kNormalizes = 1 << 3,  // scales by such weights
  kConvolves = 1 << 4,   // makes far more numbers on the way than it gives
  kGathers = 1 << 5,     // the second input says places in the first
  kShapeOnly = 1 << 6,   // looks at the shape of its input alone
  kQuantized = 1 << 7,   // steps of integers stand for numbers
};

// The type of output `output` from those of the inputs; what is absent counts as float.
using TypeRule = torch::ScalarType (*)(const Node& node, size_t output,
                                       const std::vector<torch::ScalarType>& inputs);
torch::ScalarType type_of_first(const Node& node, size_t output,
                                const std::vector<torch::ScalarType>& inputs);

// At least this many bytes of output, told from the inputs where it can be more than they are;
// 0: not known. The first input is there.
using BytesRule = double (*)(const Node& node, const std::vector<torch::Tensor>& inputs);

struct OpFacts {
  // How the range of an output is written as ONNX nodes (fcp/export/ranges.h). That of a curve
  // (BoundRule::kCurve) follows from the curve.
  enum class Range {
    kNone,           // it is refused
    kEnds,           // no output falls when an input rises: the node of both ends
    kOneFactor,      // so it is of one factor; of two, a sum of their products
    kPlaced,         // so it is unless numbers are multiplied where they are put
    kProduct,        // a product with a constant
    kMatrixProduct,  // … or of two matrices that vary
    kGemm,           // … and a third input, which is added
    kCorners,        // the least and the largest at the corners of the inputs' ranges
    kQuotient,       // … where the second, the divisor, is not 0
    kReciprocal,     // … of the one input, where it is not 0, though it is a curve
    kDifference,     // rises with the first input and falls with the second
    kSine,
    kCosine,
    kSoftmax,
    kNormalizedRow,       // of LayerNormalization
    kNormalizedChannels,  // of InstanceNormalization
  };

  // How it is written when its inputs get one axis more before all others (rows_first.h).
  enum class Axes {
    kNone,        // it is refused
    kEachNumber,  // as it is: each number by those at its place, stretched against each other
    kMatrices,    // likewise, of matrices
    kImages,      // each image by itself, without the axis
    kRows,        // the rows of all matrices at once
    kReshape,     // the same numbers in another shape
    kOrder,       // "perm"
    kTarget,      // a shape as the second input
    kFromFirst,   // "axis", 0 where it is not given
    kFromLast,    // "axis", -1 where it is not given
    kSoftmax,     // likewise; before operator set 13 the axis 1 and all behind it
    kJoined,      // "axis", of any number of inputs
    kSlice,       // axes as the fourth input
    kReduced,     // axes as an attribute or the second input
  };

  unsigned traits = kNoTraits;
  TypeRule type = type_of_first;
  BytesRule bytes = nullptr;  // never more than the inputs
  Range range = Range::kNone;
  Axes axes = Axes::kNone;
};

// Of an operator that is not known: the defaults.
const OpFacts& facts_of(const Node& node);

// Whether the operator of a node has all of these.
inline bool has_traits(const Node& node, unsigned traits) {
  return (facts_of(node).traits & traits) == traits;
}

}  // namespace fcp
