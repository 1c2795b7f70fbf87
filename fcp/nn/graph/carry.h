// Cuts that masks pass. A transformer's attention mask reaches every block, so that no tensor
// before the last block separates the graph. What passes such a cut is carried along:
//
//   joint = [feature, mask]  →  feature, mask  →  the rest of the network
//
// The joint tensor is the cut. Balls have the scale 0 where it carries something: a mask stays what
// it is for its row, and bounds take it for a constant. This is the score over the head
// g(v; mask of the row). It is as valid as one without a mask, because it is a function of x and y
// alone, and its bounds are as sound, because they are those of one row's own g.
//
// That would hold for whatever is carried. But a feature past which the input's own numbers reach
// the output is not what a cut asks for: a ball around it would hold a part of what the network
// knows. Carried are therefore flags, numbers of the feature's type, and the indices of a Gather,
// if they were computed without learned weights (layers, normalisations, tables that are looked up)
// from flags and integers: inputs of such types, and comparisons of others. What else passes a cut
// makes it invalid, as cut.h says. Cost: two runs of the part before the cut.
// Tested by tests/bounds/moved_rows_test.cc.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fcp/nn/graph/graph.h"

namespace fcp {

struct CarriedCut {
  Graph network;              // the whole network, with the joint tensor in it
  std::string cut;            // the joint tensor
  std::vector<double> scale;  // for each of its numbers 1, or 0 where it is carried
};

// The network, and the part of it that matters for a score (outputs.h), whose cut `where` is
// as resolve_cut takes it. Nothing where the tensor separates that part already, or where something
// passes it that cannot be carried.
std::optional<CarriedCut> carry_past_cut(const Graph& network, const Graph& part,
                                         const std::string& where);

// Whether the node takes what is carried out of a joint tensor. Its indices are its second input.
bool takes_carried(const Node& node);

}  // namespace fcp
