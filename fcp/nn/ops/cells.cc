#include "fcp/nn/ops/cells.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "fcp/base/error.h"

namespace fcp {
namespace {

using CellActivation = std::function<torch::Tensor(const torch::Tensor&)>;

std::string in_lower_case(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return name;
}

// α and β are taken from their lists in order, by the activations that have them.
class ActivationReader {
 public:
  explicit ActivationReader(OpArguments& arguments)
      : node_(arguments.node()),
        alphas_(arguments.numbers("activation_alpha")),
        betas_(arguments.numbers("activation_beta")) {}

  CellActivation read(const std::string& given) {
    const std::string name = in_lower_case(given);
    if (name == "relu") return [](const torch::Tensor& x) { return torch::relu(x); };
    if (name == "tanh") return [](const torch::Tensor& x) { return torch::tanh(x); };
    if (name == "sigmoid") return [](const torch::Tensor& x) { return torch::sigmoid(x); };
    if (name == "softsign") return [](const torch::Tensor& x) { return x / (x.abs() + 1); };
    if (name == "softplus") return [](const torch::Tensor& x) { return torch::softplus(x, 1, 40); };
    if (name == "leakyrelu") {
      return [a = alpha(0.01)](const torch::Tensor& x) { return torch::leaky_relu(x, a); };
    }
    if (name == "elu") return [a = alpha(1)](const torch::Tensor& x) { return torch::elu(x, a); };
    if (name == "thresholdedrelu") {
      return [a = alpha(1)](const torch::Tensor& x) { return x.masked_fill(x <= a, 0); };
    }
    if (name == "affine") {
      return [a = alpha(1), b = beta(0)](const torch::Tensor& x) { return x * a + b; };
    }
    if (name == "scaledtanh") {
      return [a = alpha(1), b = beta(1)](const torch::Tensor& x) { return torch::tanh(x * b) * a; };
    }
    if (name == "hardsigmoid") {
      return [a = alpha(0.2), b = beta(0.5)](const torch::Tensor& x) {
        return torch::clamp(x * a + b, 0, 1);
      };
    }
    fail(describe(node_), ": activation '", given, "' is not known");
  }

 private:
  double alpha(double fallback) {
    return next_alpha_ < alphas_.size() ? alphas_[next_alpha_++] : fallback;
  }
  double beta(double fallback) {
    return next_beta_ < betas_.size() ? betas_[next_beta_++] : fallback;
  }

  const Node& node_;
  std::vector<float> alphas_, betas_;
  size_t next_alpha_ = 0, next_beta_ = 0;
};

std::vector<std::string> default_activations(CellKind kind) {
  if (kind == CellKind::kLstm) return {"Sigmoid", "Tanh", "Tanh"};
  if (kind == CellKind::kGru) return {"Sigmoid", "Tanh"};
  return {"Tanh"};
}

}  // namespace

int64_t gate_count(CellKind kind) {
  return kind == CellKind::kLstm ? 4 : kind == CellKind::kGru ? 3 : 1;
}

Cell read_cell(OpArguments& arguments, CellKind kind, size_t index) {
  Cell cell;
  cell.kind = kind;
  cell.clip = arguments.number("clip", 0);
  if (cell.clip < 0) fail(describe(arguments.node()), ": clip is ", cell.clip, ", expected >= 0");
  if (kind == CellKind::kLstm) cell.coupled = arguments.integer("input_forget", 0) != 0;
  if (kind == CellKind::kGru) cell.reset_after = arguments.integer("linear_before_reset", 0) != 0;
  const std::vector<std::string> usual = default_activations(kind);
  std::vector<std::string> names = arguments.texts("activations");
  while (names.size() < usual.size() * (index + 1)) {
    names.insert(names.end(), usual.begin(), usual.end());
  }
  cell.usual = cell.clip == 0 && !cell.coupled;
  ActivationReader reader(arguments);
  for (size_t i = 0; i < usual.size() * (index + 1); ++i) {
    const CellActivation activation = reader.read(names[i]);
    if (i < usual.size() * index) continue;
    cell.activations.push_back(activation);
    cell.usual = cell.usual && in_lower_case(names[i]) == in_lower_case(usual[i % usual.size()]);
  }
  return cell;
}

CellState cell_step(const Cell& cell, const CellWeights& weights, const torch::Tensor& share,
                    const CellState& state) {
  const int64_t hidden = state.hidden.size(1);
  const auto apply = [&](size_t which, const torch::Tensor& x) {
    return cell.activations[which](cell.clip > 0 ? torch::clamp(x, -cell.clip, cell.clip) : x);
  };
  const auto part = [&](const torch::Tensor& x, int64_t gate) {
    return x.narrow(-1, gate * hidden, hidden);
  };
  const torch::Tensor recurrent =
      weights.product ? weights.product(state.hidden, false) + weights.state_bias
                      : torch::addmm(weights.state_bias, state.hidden, weights.state.t());
  if (cell.kind == CellKind::kRnn) return {apply(0, share + recurrent), state.cell};
  if (cell.kind == CellKind::kGru) {
    const torch::Tensor z = apply(0, part(share, 0) + part(recurrent, 0));
    const torch::Tensor r = apply(0, part(share, 1) + part(recurrent, 1));
    const torch::Tensor back =
        cell.reset_after
            ? r * part(recurrent, 2)
            : torch::addmm(weights.state_bias.narrow(0, 2 * hidden, hidden), r * state.hidden,
                           weights.state.narrow(0, 2 * hidden, hidden).t());
    const torch::Tensor n = apply(1, part(share, 2) + back);
    return {(1 - z) * n + z * state.hidden, state.cell};
  }
  const torch::Tensor gates = share + recurrent;
  const auto gate = [&](int64_t which, const torch::Tensor& c) {
    const torch::Tensor x = part(gates, which);
    return apply(0, weights.peephole.defined() ? x + part(weights.peephole, which) * c : x);
  };
  const torch::Tensor i = gate(0, state.cell);
  const torch::Tensor f = cell.coupled ? 1 - i : gate(2, state.cell);
  const torch::Tensor c = f * state.cell + i * apply(1, part(gates, 3));
  return {gate(1, c) * cell.activations[2](c), c};
}

}  // namespace fcp
