// Cutting a network in two at a tensor: the backbone f makes that tensor (the feature) from the
// network's inputs, the head g makes the outputs from the feature alone, and g(f(x)) is the
// network. A tensor can be a cut only if it separates the graph: every path from an input to an
// output passes through it.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fcp/nn/graph/graph.h"

namespace fcp {

// The part of the graph that computes `outputs` from the tensors `inputs` and constants. Throws an
// Error naming an input of the network that would be needed beyond `inputs`.
Graph extract(const Graph& graph, const std::vector<TensorInfo>& inputs,
              const std::vector<TensorInfo>& outputs);

// The part of the graph that makes these of its outputs; inputs that they do not need are left out.
// What is to be judged by its cuts, bounds or gradients is to be selected first: operators that
// only make other outputs then do not matter.
Graph select_outputs(const Graph& graph, const std::vector<std::string>& names);

struct CutGraph {
  std::string feature;  // name of the tensor
  Graph backbone;
  Graph head;
};

// Cuts at `where`: the name of a tensor, the name of a node (its first output), or a number of
// layers. A layer is a node with learned weights that multiply (Gemm, MatMul, Conv,
// ConvTranspose); "-2" leaves the last two layers to the head, "2" gives the first two, and what
// follows each of them, to the backbone, so "0" cuts before the first layer. Where other paths run
// past a layer, as a skip connection does, it is not counted. An Error names a
// tensor that leaks past the cut. A shape is not a leak where the file fixes all dimensions but the
// rows: what the head needs to know of shapes before the cut becomes constants, or follows from the
// number of the feature's rows; the backbone then runs on zeros, once for 1 row and once for 2.
CutGraph cut(const Graph& graph, const std::string& where);

// The same without libtorch; `shapes` gives the graph in which the head's shapes are known.
using HeadShapes = std::function<Graph(const Graph& graph, const std::string& feature)>;
CutGraph cut(const Graph& graph, const std::string& where, const HeadShapes& shapes);

// Fills in type and shape of the feature in both parts, which ONNX asks of the inputs and outputs
// of a file, by running the backbone once on zeros. `inputs` are example inputs of one row.
void declare_feature(CutGraph& parts, const std::vector<at::Tensor>& inputs);

// The tensor that `where` means, as above; whether it separates the graph is not checked.
std::string resolve_cut(const Graph& graph, const std::string& where);

// A tensor by which the graph's outputs can be reached without passing `tensor`: nothing when
// `tensor` separates the graph.
std::optional<std::string> find_leak(const Graph& graph, const std::string& tensor);

// All tensors of real numbers at which the graph can be cut, in the order in which they are
// computed, the input first. Outputs are not cuts: they would leave no head.
std::vector<std::string> valid_cuts(const Graph& graph);

// Those of them that can be features: numbers behind the rows, which are the first axis. Shapes are
// found by running the network on zeros, of 1 and of 2 rows or of those the file fixes; where it
// does not run so, no cut is left out for its shape.
std::vector<std::string> feature_cuts(const Graph& graph);

// The tensors through which inputs reach outputs: those that depend on an input, and where the file
// tells all dimensions but the rows, on more than an input's shape.
std::set<std::string> flowing_tensors(const Graph& graph);

// The graph's one output where it depends on no more than the inputs' shapes, and these tell it
// whatever the number of rows; nothing otherwise.
std::optional<ConstantTensor> value_by_shapes(const Graph& graph);

// For each node whether it is a layer, as for cut(), and the number of layers.
std::vector<bool> layer_marks(const Graph& graph);
size_t count_layers(const Graph& graph);

// The part of a network that starts at `from` and stops at `to`, each written as for resolve_cut;
// empty: at the network's own inputs or outputs.
Graph part_between(const Graph& graph, const std::string& from, const std::string& to);

}  // namespace fcp
