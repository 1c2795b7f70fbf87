// LSTM, GRU and RNN cells with their usual activations along a sequence, in float32 on the CPU,
// without gradients. Rows go in blocks through all steps, so that a block's gates and state stay in
// the second cache; a step is one product of the block with the input's weights and one with the
// state's (packed_product.h), to which the first is added, and one pass over the gates.
//
// Every number is one sequence of operations, whatever the rows beside it: the bits do not depend
// on the batch or on threads. Cost: 2 · T · N · gates · H · (I + H). Tested by
// tests/nn/ops/recurrent_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fcp/nn/kernels/cpu/packed_product.h"

namespace fcp {

enum class CellKind { kLstm, kGru, kRnn };

// Gates as ONNX stacks them: i o f c (LSTM), z r h (GRU), h (RNN).
struct RecurrentPanels {
  CellKind kind = CellKind::kRnn;
  size_t hidden = 0;
  const PackedPanels<float>* input = nullptr;  // [I, gates·H]
  const PackedPanels<float>* state = nullptr;  // [H, gates·H]; z and r alone where `reset` is given
  const PackedPanels<float>* reset =
      nullptr;                        // [H, H], of what r has multiplied; null: r comes after
  const float* bias = nullptr;        // [gates·H]
  const float* reset_bias = nullptr;  // [H], of what r multiplies, where it comes after
};

// Numbers of a row and step lie side by side, those of others so many numbers further.
struct RecurrentRows {
  size_t rows = 0, steps = 0, inputs = 0;
  const float* x = nullptr;
  ptrdiff_t x_row = 0, x_step = 0;
  float* y = nullptr;
  ptrdiff_t y_row = 0, y_step = 0;
  float* h = nullptr;  // [rows, H]: the state, before and after
  float* c = nullptr;  // likewise, of an LSTM
  bool backwards = false;
};

// Shared among `threads`.
void walk_recurrent(const RecurrentPanels& cell, const RecurrentRows& work, size_t threads);

}  // namespace fcp
