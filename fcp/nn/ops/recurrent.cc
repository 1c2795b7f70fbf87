// LSTM, GRU, RNN and com.microsoft's DynamicQuantizeLSTM: a cell that goes along a sequence,
// forwards, backwards or both, with every option of the specification: sequence lengths, initial
// states, peepholes, chosen activations, clipping, coupled gates, both layouts. Gradients flow
// through all of it; there are no bounds.
//
// The inputs' share of all gates is one product for the whole sequence; a step multiplies only the
// state. A row whose sequence has ended keeps its state and gives zeros.
//
// DynamicQuantizeLSTM has its weights in 8 bits, turned round: W [D, I, 4·H], R [D, H, 4·H]. What
// they multiply, the whole input or the state of all rows, is quantised by its own range as
// DynamicQuantizeLinear does, so that rows that run together depend on each other. No gradient.
// Cost: 2 · T · N · gates · H · (I + H). Reference: ONNX operator specification; ONNX Runtime,
// docs/ContribOperators.md.
// Tested by tests/nn/ops/recurrent_test.cc.
#include <functional>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/nn/ops/cells.h"
#include "fcp/nn/ops/checks.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/shared.h"

namespace fcp {
namespace {

class Recurrent : public Op {
 public:
  Recurrent(OpArguments& arguments, CellKind kind, bool quantized = false)
      : node_(arguments.node()),
        kind_(kind),
        quantized_(quantized),
        direction_(arguments.text("direction", "forward")),
        batch_first_(arguments.opset() >= 14 && arguments.integer("layout", 0) != 0) {
    arguments.expect_inputs(3, quantized ? 12 : kind == CellKind::kLstm ? 8 : 6);
    arguments.ignore("hidden_size");      // the recurrent weights say it
    arguments.ignore("output_sequence");  // of operator set 1; all outputs are made since
    if (direction_ != "forward" && direction_ != "reverse" && direction_ != "bidirectional") {
      fail(describe(node_), ": attribute 'direction' is '", direction_,
           "', expected 'forward', 'reverse' or 'bidirectional'");
    }
    for (size_t i = 0; i < directions(); ++i) cells_.push_back(read_cell(arguments, kind, i));
  }

  // X [T, N, I] or [N, T, I]; W [D, gates·H, I], R [D, gates·H, H], B [D, 2·gates·H].
  Tensors forward(const Tensors& inputs) const override {
    expect_rank(inputs[0], 3, 3, node_, "X");
    expect_floating(inputs[0], node_, "X");
    const torch::Tensor x = batch_first_ ? inputs[0].transpose(0, 1) : inputs[0];
    const int64_t steps = x.size(0), rows = x.size(1);
    const auto count = static_cast<int64_t>(directions());
    expect_rank(inputs[1], 3, 3, node_, "W");
    expect_rank(inputs[2], 3, 3, node_, "R");
    const int64_t hidden = inputs[2].size(quantized_ ? 1 : 2), wide = gate_count(kind_) * hidden;
    if (quantized_) {
      expect_shape(inputs[1], {count, x.size(2), wide}, "W");
      expect_shape(inputs[2], {count, hidden, wide}, "R");
    } else {
      expect_shape(inputs[1], {count, wide, x.size(2)}, "W");
      expect_shape(inputs[2], {count, wide, hidden}, "R");
    }
    const torch::Tensor mask = running(inputs, steps, rows, x);
    std::vector<Tensors> all(3);  // Y, Y_h and Y_c by direction
    for (int64_t d = 0; d < count; ++d) {
      CellWeights weights = weights_of(inputs, d, hidden, x);
      CellState state = state_of(inputs, d, rows, hidden, x);
      const bool backwards = direction_ == "reverse" || d == 1;
      const torch::Tensor shares =
          (weights.product ? weights.product(x, true) : torch::matmul(x, weights.input.t())) +
          weights.input_bias;
      all[0].push_back(
          walk(cells_[static_cast<size_t>(d)], weights, shares, mask, backwards, state));
      all[1].push_back(state.hidden);
      all[2].push_back(state.cell);
    }
    return outputs_of(all);
  }

  bool differentiable() const override { return !quantized_; }

  double flops(const Tensors& inputs, const Tensors&) const override {
    const auto rows = static_cast<double>(inputs[0].size(0) * inputs[0].size(1));
    return 2 * rows * static_cast<double>(inputs[1].numel() + inputs[2].numel());
  }

 private:
  size_t directions() const { return direction_ == "bidirectional" ? 2 : 1; }

  void expect_shape(const torch::Tensor& tensor, const std::vector<int64_t>& shape,
                    const char* what) const {
    if (tensor.sizes() != torch::IntArrayRef(shape)) {
      fail(describe(node_), ": ", what, " has shape ", shape_text(tensor.sizes()), ", expected ",
           shape_text(shape));
    }
  }

  static torch::Tensor given(const Tensors& inputs, size_t index) {
    return index < inputs.size() ? inputs[index] : torch::Tensor();
  }

  // [T, N, 1]: whether the row's sequence has not ended; undefined where none ends early.
  torch::Tensor running(const Tensors& inputs, int64_t steps, int64_t rows,
                        const torch::Tensor& x) const {
    const torch::Tensor lengths = given(inputs, 4);
    if (!lengths.defined()) return {};
    expect_vector(lengths, rows, node_, "sequence_lens");
    const torch::Tensor count = lengths.to(x.device(), torch::kLong);
    return (torch::arange(steps, count.options()).unsqueeze(1) < count).unsqueeze(2);
  }

  CellWeights weights_of(const Tensors& inputs, int64_t d, int64_t hidden,
                         const torch::Tensor& x) const {
    const int64_t wide = gate_count(kind_) * hidden;
    CellWeights weights{inputs[1][d], inputs[2][d], {}, {}, {}, {}};
    if (quantized_) weights.product = quantized_product(inputs, d);
    weights.input_bias = weights.state_bias = torch::zeros({wide}, x.options());
    if (const torch::Tensor bias = given(inputs, 3); bias.defined()) {
      expect_shape(bias, {static_cast<int64_t>(directions()), 2 * wide}, "B");
      weights.input_bias = bias[d].narrow(0, 0, wide);
      weights.state_bias = bias[d].narrow(0, wide, wide);
    }
    if (const torch::Tensor peephole = given(inputs, 7); peephole.defined()) {
      expect_shape(peephole, {static_cast<int64_t>(directions()), 3 * hidden}, "P");
      weights.peephole = peephole[d];
    }
    return weights;
  }

  // Scales and zero points: one for a direction, or one for each of its columns.
  std::function<torch::Tensor(const torch::Tensor&, bool)> quantized_product(const Tensors& inputs,
                                                                             int64_t d) const {
    const auto dequantized = [&](size_t weight, size_t scale) {
      const auto of_direction = [&](size_t index, const char* what) {
        const torch::Tensor tensor = given(inputs, index);
        if (!tensor.defined()) fail(describe(node_), ": ", what, " is absent but required");
        expect_rank(tensor, 1, 2, node_, what);
        if (tensor.size(0) != static_cast<int64_t>(directions())) {
          fail(describe(node_), ": ", what, " has shape ", shape_text(tensor.sizes()),
               ", expected one or a row of them for each direction");
        }
        return tensor[d].to(torch::kDouble);
      };
      const torch::Tensor zero = of_direction(scale + 1, "a zero point");
      return (inputs[weight][d].to(torch::kDouble) - zero) * of_direction(scale, "a scale");
    };
    const torch::Tensor w = dequantized(1, 8), r = dequantized(2, 10);
    return [w, r](const torch::Tensor& x, bool input) {
      constexpr double kSteps = 255;
      const torch::Tensor plain = x.to(torch::kFloat);
      const torch::Tensor least = plain.min().clamp_max(0), most = plain.max().clamp_min(0);
      const torch::Tensor width = (most - least) / kSteps;
      const torch::Tensor scale = torch::where(width == 0, torch::ones_like(width), width);
      const torch::Tensor zero = torch::round(-least / scale).clamp(0, kSteps);
      const torch::Tensor q = (torch::round(plain / scale) + zero).clamp(0, kSteps) - zero;
      return (torch::matmul(q.to(torch::kDouble), input ? w : r) * scale.to(torch::kDouble))
          .to(x.scalar_type());
    };
  }

  CellState state_of(const Tensors& inputs, int64_t d, int64_t rows, int64_t hidden,
                     const torch::Tensor& x) const {
    const auto initial = [&](size_t index, const char* what) {
      const torch::Tensor tensor = given(inputs, index);
      if (!tensor.defined()) return torch::zeros({rows, hidden}, x.options());
      const torch::Tensor first = batch_first_ ? tensor.transpose(0, 1) : tensor;
      expect_shape(first, {static_cast<int64_t>(directions()), rows, hidden}, what);
      return first[d];
    };
    return {initial(5, "initial_h"), initial(6, "initial_c")};
  }

  // The states of all steps, [T, N, H], in the order of time.
  torch::Tensor walk(const Cell& cell, const CellWeights& weights, const torch::Tensor& shares,
                     const torch::Tensor& mask, bool backwards, CellState& state) const {
    const int64_t steps = shares.size(0);
    Tensors results(static_cast<size_t>(steps));
    for (int64_t i = 0; i < steps; ++i) {
      const int64_t t = backwards ? steps - 1 - i : i;
      CellState next = cell_step(cell, weights, shares[t], state);
      torch::Tensor& result = results[static_cast<size_t>(t)];
      result = next.hidden;
      if (mask.defined()) {
        result = torch::where(mask[t], next.hidden, torch::zeros_like(next.hidden));
        next.hidden = torch::where(mask[t], next.hidden, state.hidden);
        next.cell = torch::where(mask[t], next.cell, state.cell);
      }
      state = next;
    }
    return steps == 0 ? torch::zeros({0, shares.size(1), state.hidden.size(1)}, shares.options())
                      : torch::stack(results);
  }

  Tensors outputs_of(const std::vector<Tensors>& all) const {
    if (batch_first_) {  // Y [N, T, D, H], Y_h and Y_c [N, D, H]
      return {torch::stack(all[0], 2).transpose(0, 1), torch::stack(all[1], 1),
              torch::stack(all[2], 1)};
    }
    return {torch::stack(all[0], 1), torch::stack(all[1]), torch::stack(all[2])};
  }

  Node node_;
  CellKind kind_;
  bool quantized_;  // DynamicQuantizeLSTM
  std::string direction_;
  bool batch_first_;
  std::vector<Cell> cells_;
};

}  // namespace

OpPointer make_lstm(OpArguments& arguments) {
  return std::make_unique<Recurrent>(arguments, CellKind::kLstm);
}

OpPointer make_dynamic_quantize_lstm(OpArguments& arguments) {
  return std::make_unique<Recurrent>(arguments, CellKind::kLstm, /*quantized=*/true);
}

OpPointer make_gru(OpArguments& arguments) {
  return std::make_unique<Recurrent>(arguments, CellKind::kGru);
}

OpPointer make_rnn(OpArguments& arguments) {
  return std::make_unique<Recurrent>(arguments, CellKind::kRnn);
}

}  // namespace fcp
