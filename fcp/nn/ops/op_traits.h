// What is known of an operator by its name alone: the columns of operators.inc. What depends on
// attributes or constants, the operator's class says (op.h).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

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
using TypeRule = ElementType (*)(const Node& node, size_t output,
                                 const std::vector<ElementType>& inputs);
ElementType type_of_first(const Node& node, size_t output, const std::vector<ElementType>& inputs);

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

  // What its output takes, told from the inputs where it can be more than they are
  // (output_bytes.h).
  enum class Bytes {
    kAsInputs,          // never more than the inputs
    kBroadcast,         // the inputs are stretched against each other
    kChoice,            // … the first of which, truth values, chooses of the others
    kProduct,           // matrices, inputs 0 and 1
    kIntegerProduct,    // … of bytes, summed in int32
    kQuantizedProduct,  // … inputs 0 and 3
    kEinsum,
    kConv,           // images and filters, inputs 0 and 1
    kIntegerConv,    // … of bytes, summed in int32
    kQuantizedConv,  // … inputs 0 and 3
    kConvTranspose,
    kGather,
    kGatherND,
    kGatherElements,
    kJoined,  // all inputs side by side
    kTiled,
    kExpanded,
    kFilled,  // a shape alone
    kOneHot,
    kPadded,
    kResized,    // sizes or scales
    kUpsampled,  // scales alone
    kRange,
    kPlaces,   // int64 places of all that is not 0
    kSampled,  // an image at the places of a grid
  };

  unsigned traits = kNoTraits;
  TypeRule type = type_of_first;
  Bytes bytes = Bytes::kAsInputs;
  Range range = Range::kNone;
  Axes axes = Axes::kNone;
};

// Of an operator that is not known: the defaults.
const OpFacts& facts_of(const Node& node);

// One thing of each operator in operators.inc, by domain and name.
template <typename Entry>
using OpTable = std::map<std::string, std::map<std::string, Entry>, std::less<>>;

// Null where nothing is known of the operator. ONNX Runtime writes one of its own in ONNX's domain.
template <typename Entry>
const Entry* find_op(const OpTable<Entry>& table, const Node& node) {
  const bool plain = node.domain.empty() || node.domain == "ai.onnx";
  const bool stray = plain && node.op == "SimplifiedLayerNormalization";
  const auto ops = table.find(stray ? "com.microsoft" : plain ? "ai.onnx" : node.domain.c_str());
  if (ops == table.end()) return nullptr;
  const auto found = ops->second.find(node.op);
  return found == ops->second.end() ? nullptr : &found->second;
}

// Whether the operator of a node has all of these.
inline bool has_traits(const Node& node, unsigned traits) {
  return (facts_of(node).traits & traits) == traits;
}

}  // namespace fcp
