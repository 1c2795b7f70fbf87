// A trained Mlp as an ONNX graph (operator set 17) that takes the raw columns and answers in the
// target's own unit: scaling is part of the graph, dropout is not.
//
//   input ─ Sub ─ Div ─ scaled ─ Gemm ─ layer1 ─ Relu ─ hidden1 ─ …
//   … ─ hidden(L−1) ─ Gemm ─ layerL ─ Mul ─ prediction
//
// The output is `prediction` [batch, K] after mse, `logits` [batch, classes] after cross-entropy
// (without Mul), and two, `low` and `high` [batch, K], after quantile: the halves of `quantiles`.
// Without scaling there is no Sub, Div and Mul, and the last Gemm makes the output.
// Tested by tests/training/export_test.cc.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/nn/graph/graph.h"
#include "fcp/training/ensemble_fit.h"
#include "fcp/training/input_encoding.h"
#include "fcp/training/loss.h"
#include "fcp/training/mlp.h"
#include "fcp/training/training_data.h"
#include "fcp/training/tree_members.h"

namespace fcp {

// The weights are copied. For quantile the network's outputs are all low quantiles, then all high.
Graph export_mlp(const Mlp& mlp, const NetworkScaling& scaling, Loss loss);

// What the last layer makes: "prediction", "quantiles" or "logits".
std::string output_name(Loss loss);

// Adds the outputs `low` and `high`: the halves of the tensor `value` [batch, columns].
void append_halves(Graph& graph, const std::string& value, int64_t columns);

// Small steps in which the graphs of trained networks are put together.

// [batch, columns], the batch being of any size.
inline TensorInfo batch_of(const std::string& name, int64_t columns) {
  return {.name = name,
          .type = ElementType::kFloat,
          .shape = {kDynamic, columns},
          .dimension_names = {"batch", ""}};
}

// output = op(inputs)
inline void append_node(Graph& graph, const char* op, std::vector<std::string> inputs,
                        const std::string& output,
                        std::map<std::string, Attribute> attributes = {}) {
  graph.nodes.push_back({.name = concat(output, "/", op),
                         .op = op,
                         .domain = "",
                         .inputs = std::move(inputs),
                         .outputs = {output},
                         .attributes = std::move(attributes)});
}

// Members of an ensemble as one ONNX graph (operator set 17) that takes the raw columns and answers
// in the target's unit:
//
//   input ─ encoding ─ Gemm ─ Relu ─ hidden1 ─ … ─ features ─ Gemm ─ prediction
//
// The members' values stand side by side in every layer, [batch, E · width]. The first layer is one
// Gemm, because all members read the same columns; in the others each member has a Gemm of its own
// between Split and Concat. `features` is the last hidden layer; every hidden layer separates the
// graph, all that follows has bounds, and the output is affine in `features`: the mean over members
// is part of the last Gemm.
//
// With trees (tree_members.h) the last hidden layer is `hiddenL`, and `features` has a block for
// each member: its part of that layer, what its trees answer, log |residual| as its trees see it,
// and |network − trees| of its answers, the last two where heads will read them. The output stays
// affine in `features`, which separates the graph; hidden layers no longer do. Networks of weight 0
// whose features no head reads are left out.
//
// Of a target that is learned by its logarithm, `log_prediction` is what is affine in `features`.
//
// The output is `prediction` [batch, K] after mse, `logits` [batch, classes] after cross-entropy,
// and two, `low` and `high` [batch, K], after quantile. Tested by
// tests/training/export_test.cc.

// What a network's outputs are in the target's unit: output[columns[i]] · scale[i] + offset[i]; of
// a logarithm (training_data.h) e to the power of that, kept within least and most, less shift.
struct OutputScaling {
  std::vector<int64_t> columns;
  std::vector<double> scale;
  std::vector<double> offset;
  bool log = false;
  double shift = 0, least = 0, most = 0;
};

// From the features of one member to its answer in the target's unit.
struct AnswerLayer {
  torch::Tensor weight;  // [D, outputs]
  torch::Tensor bias;    // [outputs]
};
// The affine answers [n, outputs] in the target's unit, as the graph maps them back.
torch::Tensor mapped_back(const OutputScaling& scaling, const torch::Tensor& answers);

AnswerLayer answer_layer(const EnsembleFit& fit, int64_t network, const OutputScaling& scaling,
                         const TreeMembers& trees = {});

// `networks` of the fit become the members, in this order. Trees that are not used() are left out.
Graph export_ensemble(const EnsembleFit& fit, const std::vector<int64_t>& networks,
                      const InputEncoding& encoding, const OutputScaling& scaling, Loss loss,
                      const TreeMembers& trees = {});

}  // namespace fcp
