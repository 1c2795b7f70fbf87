// Attention of operator set 23 taken apart into the operators whose bounds are known:
//
//   softmax(tanh-cap(√s Q · √s Kᵀ) + mask) V      by Reshape, Transpose, Mul, MatMul, Add, Softmax
//
// so that linear bounds go through it as through a transformer that was exported before there was
// such an operator. Sizes that only a run knows are computed by Shape and Range nodes, which for
// bounds are constants.
//
// Assumes that nobody reads the operator's other outputs, that no keys come from the past, and that
// the mask, where there is one, is a constant that leaves every query a key. What does not fit
// stays as it is, and has no bounds.
// Tested by tests/nn/graph/lower_attention_test.cc and tests/bounds/transformer_test.cc.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "fcp/nn/graph/graph.h"

namespace fcp {

class Network;

// Whether this node of a graph with these constants can be taken apart.
bool can_lower(const Node& node, const std::map<std::string, ConstantTensor>& initializers);

// The graph with every such node taken apart.
Graph lower_attention(Graph graph);

// The network itself where there is none.
std::shared_ptr<const Network> with_attention_lowered(std::shared_ptr<const Network> network);

}  // namespace fcp
