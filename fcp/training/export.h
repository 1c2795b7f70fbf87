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
#include <string>

#include "fcp/nn/graph/graph.h"
#include "fcp/training/loss.h"
#include "fcp/training/mlp.h"
#include "fcp/training/training_data.h"

namespace fcp {

// The weights are copied. For quantile the network's outputs are all low quantiles, then all high.
Graph export_mlp(const Mlp& mlp, const NetworkScaling& scaling, Loss loss);

// What the last layer makes: "prediction", "quantiles" or "logits".
std::string output_name(Loss loss);

// Adds the outputs `low` and `high`: the halves of the tensor `value` [batch, columns].
void append_halves(Graph& graph, const std::string& value, int64_t columns);

}  // namespace fcp
