// LSTM, GRU, RNN and com.microsoft's DynamicQuantizeLSTM: a cell that goes along a sequence,
// forwards, backwards or both, with every option of the specification: sequence lengths, initial
// states, peepholes, chosen activations, clipping, coupled gates, both layouts. Gradients flow
// through all of it; there are no bounds.
//
// Cells of float32 with constant weights, their usual activations and neither peepholes nor
// sequence lengths run by loops of our own (recurrent_rows.h), batch-free. Of others the inputs'
// share of all gates is one product for the whole sequence; a step multiplies only the state. A row
// whose sequence has ended keeps its state and gives zeros.
//
// DynamicQuantizeLSTM has its weights in 8 bits, turned round: W [D, I, 4·H], R [D, H, 4·H]. What
// they multiply, the whole input or the state of all rows, is quantised by its own range as
// DynamicQuantizeLinear does, so that rows that run together depend on each other. No gradient.
// Cost: 2 · T · N · gates · H · (I + H). Reference: ONNX operator specification; ONNX Runtime,
// docs/ContribOperators.md.
// Tested by tests/nn/ops/recurrent_test.cc.
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/nn/kernels/cpu/gradient_of.h"
#include "fcp/nn/kernels/cpu/packed_product.h"
#include "fcp/nn/kernels/cpu/recurrent_rows.h"
#include "fcp/nn/ops/cells.h"
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
    const bool own = runs_own(inputs);
    std::vector<Tensors> walked;
    if (own) {
      for (int64_t d = 0; d < count; ++d) walked.push_back(walk_own(inputs, d, x, hidden));
    }
    const bool graph = std::any_of(inputs.begin(), inputs.end(), [](const torch::Tensor& input) {
      return input.defined() && wants_gradient(input);
    });
    if (own && !graph) return outputs_of(turned(walked));
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
    if (!own) return outputs_of(all);
    for (size_t d = 0; d < walked.size(); ++d) {
      for (size_t i = 0; i < 3; ++i) all[i][d] = with_gradient_of(all[i][d], walked[d][i]);
    }
    return outputs_of(all);
  }

  bool batch_free(const Tensors& inputs, const std::vector<bool>& constant) const override {
    const bool floats = inputs[1].defined() && inputs[1].scalar_type() == torch::kFloat;
    for (const size_t i : {2, 3, 4, 7}) {
      if (i < constant.size() && !constant[i]) return false;
    }
    return floats && is_usual(inputs);
  }

  bool differentiable() const override { return !quantized_; }

  double flops(const Tensors& inputs, const Tensors&) const override {
    const auto rows = static_cast<double>(inputs[0].size(0) * inputs[0].size(1));
    return 2 * rows * static_cast<double>(inputs[1].numel() + inputs[2].numel());
  }

 private:
  size_t directions() const { return direction_ == "bidirectional" ? 2 : 1; }

  // What recurrent_rows.h takes, of float32 numbers on the CPU.
  bool is_usual(const Tensors& inputs) const {
    if (given(inputs, 4).defined() || given(inputs, 7).defined()) return false;
    return !quantized_ &&
           std::all_of(cells_.begin(), cells_.end(), [](const Cell& cell) { return cell.usual; });
  }

  bool runs_own(const Tensors& inputs) const {
    if (!is_usual(inputs)) return false;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const torch::Tensor& input = inputs[i];
      if (!input.defined()) continue;
      if (!input.is_cpu() || input.scalar_type() != torch::kFloat) return false;
      if (i > 0 && i < 4 && input.requires_grad()) return false;
    }
    return inputs[0].numel() > 0 && inputs[2].numel() > 0;
  }

  // The weights of a direction, packed, and what holds them.
  struct OwnWeights {
    std::shared_ptr<const PackedMatrix> input, state, reset;
    torch::Tensor bias, reset_bias;
    RecurrentPanels panels;
  };

  OwnWeights own_weights(const Tensors& inputs, int64_t d, int64_t hidden,
                         const torch::Tensor& x) const {
    const CellWeights weights = weights_of(inputs, d, hidden, x);
    const bool gru = kind_ == CellKind::kGru;
    const bool resets = gru && !cells_[static_cast<size_t>(d)].reset_after;
    const int64_t states = resets ? 2 * hidden : weights.state.size(0);
    PackedCache& cache = packed_[static_cast<size_t>(d)];
    OwnWeights own;
    own.input = cache.packed(weights.input.t());
    own.state = cache.packed(weights.state.narrow(0, 0, states).t());
    if (resets) own.reset = cache.packed(weights.state.narrow(0, states, hidden).t());
    own.bias = weights.input_bias + weights.state_bias;
    if (gru && !resets) {  // that of the state is multiplied by r
      const torch::Tensor last = weights.input_bias.narrow(0, 2 * hidden, hidden);
      own.bias.narrow(0, 2 * hidden, hidden).copy_(last);
      own.reset_bias = weights.state_bias.narrow(0, 2 * hidden, hidden).contiguous();
    }
    own.panels.kind = kind_;
    own.panels.hidden = static_cast<size_t>(hidden);
    own.panels.input = &own.input->floats;
    own.panels.state = &own.state->floats;
    if (resets) own.panels.reset = &own.reset->floats;
    own.panels.bias = own.bias.data_ptr<float>();
    if (own.reset_bias.defined()) own.panels.reset_bias = own.reset_bias.data_ptr<float>();
    return own;
  }

  // Y [T, N, H], Y_h and Y_c [N, H] of a direction; x [T, N, I].
  Tensors walk_own(const Tensors& inputs, int64_t d, const torch::Tensor& x, int64_t hidden) const {
    const torch::Tensor numbers = x.stride(2) == 1 ? x.detach() : x.detach().contiguous();
    const OwnWeights weights = own_weights(inputs, d, hidden, x);
    CellState state = state_of(inputs, d, x.size(1), hidden, x);
    state.hidden = state.hidden.detach().clone(at::MemoryFormat::Contiguous);
    state.cell = state.cell.detach().clone(at::MemoryFormat::Contiguous);
    torch::Tensor y = torch::empty({x.size(0), x.size(1), hidden}, numbers.options());
    RecurrentRows work;
    work.rows = static_cast<size_t>(x.size(1));
    work.steps = static_cast<size_t>(x.size(0));
    work.inputs = static_cast<size_t>(x.size(2));
    work.x = numbers.data_ptr<float>();
    work.x_row = numbers.stride(1);
    work.x_step = numbers.stride(0);
    work.y = y.data_ptr<float>();
    work.y_row = y.stride(1);
    work.y_step = y.stride(0);
    work.h = state.hidden.data_ptr<float>();
    if (kind_ == CellKind::kLstm) work.c = state.cell.data_ptr<float>();
    work.backwards = direction_ == "reverse" || d == 1;
    walk_recurrent(weights.panels, work, static_cast<size_t>(at::get_num_threads()));
    return {y, state.hidden, state.cell};
  }

  // By output instead of by direction.
  static std::vector<Tensors> turned(const std::vector<Tensors>& by_direction) {
    std::vector<Tensors> all(3);
    for (const Tensors& outputs : by_direction) {
      for (size_t i = 0; i < 3; ++i) all[i].push_back(outputs[i]);
    }
    return all;
  }

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
  mutable std::array<PackedCache, 2> packed_;  // by direction
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
