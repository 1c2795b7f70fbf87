// One step of a recurrent network. Gates are stacked as ONNX stacks them: i o f c (LSTM), z r h
// (GRU), h (RNN). ⊙ multiplies element by element; x' stands for W x + b of the gate.
//
//   LSTM  i = f(i' + R h + p_i ⊙ c)   f = f(f' + R h + p_f ⊙ c)   g = g(c' + R h)
//         C = f ⊙ c + i ⊙ g           o = f(o' + R h + p_o ⊙ C)   H = o ⊙ h(C)
//   GRU   z = f(z' + R h)             r = f(r' + R h)             n = g(h' + R (r ⊙ h))
//         H = (1 − z) ⊙ n + z ⊙ h     with linear_before_reset    n = g(h' + r ⊙ (R h + b))
//   RNN   H = f(h' + R h)
#pragma once

#include <functional>
#include <vector>

#include <torch/types.h>

#include "fcp/nn/kernels/cpu/recurrent_rows.h"
#include "fcp/nn/ops/op.h"

namespace fcp {

int64_t gate_count(CellKind kind);

struct Cell {
  CellKind kind = CellKind::kRnn;
  std::vector<std::function<torch::Tensor(const torch::Tensor&)>> activations;  // f, g, h
  double clip = 0;           // of what enters an activation; 0: none
  bool coupled = false;      // LSTM: f = 1 − i
  bool reset_after = false;  // GRU: linear_before_reset
  bool usual = true;         // the activations that the specification takes by itself, unclipped
};

struct CellWeights {
  torch::Tensor input, state;            // [gates·H, I], [gates·H, H]
  torch::Tensor input_bias, state_bias;  // [gates·H]
  torch::Tensor peephole;                // [3·H], i o f; undefined: none
  // x · wᵀ where it is not the plain product; `input` says which of the two weights.
  std::function<torch::Tensor(const torch::Tensor& x, bool input)> product;
};

struct CellState {
  torch::Tensor hidden, cell;  // [N, H]; `cell` is the LSTM's
};

// The cell of direction `index`, from the node's attributes.
Cell read_cell(OpArguments& arguments, CellKind kind, size_t index);

// `share` [N, gates·H] is what the input brings, its bias included.
CellState cell_step(const Cell& cell, const CellWeights& weights, const torch::Tensor& share,
                    const CellState& state);

}  // namespace fcp
