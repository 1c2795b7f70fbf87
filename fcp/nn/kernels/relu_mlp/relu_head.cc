#include "fcp/nn/kernels/relu_mlp/relu_head.h"

#include <variant>

namespace fcp {

std::optional<ReluHead> match_relu_head(const Network& head, size_t output) {
  BackwardReader reader(head, head.output_slots()[output]);
  reader.skip_identities();
  const torch::Tensor factors = reader.read_factors();
  std::optional<LinearLayer> last = reader.read_linear();
  if (!last) return std::nullopt;
  if (factors.defined()) {
    if (factors.numel() != 1 && factors.numel() != last->bias.numel()) return std::nullopt;
    last = LinearLayer{last->weight * factors.unsqueeze(1), last->bias * factors};
  }
  reader.skip_identities();
  if (!reader.read_relu()) return std::nullopt;
  reader.skip_identities();
  const std::optional<LinearLayer> first = reader.read_linear();
  if (!first) return std::nullopt;
  reader.skip_identities();
  if (!reader.at_rows_of_features()) return std::nullopt;
  if (first->weight.size(0) != last->weight.size(1)) return std::nullopt;
  return ReluHead{first->weight, first->bias, last->weight, last->bias, reader.flattened()};
}

bool takes_features(const ReluHead& head, const torch::Tensor& features) {
  const int64_t dimensions = features.dim(), width = head.w1.size(1);
  if (dimensions == 2) return features.size(1) == width;
  return head.flattens && dimensions > 2 && features.numel() == features.size(0) * width;
}

bool takes_rows(const ReluHead& head, const torch::Tensor& features, const torch::Tensor& truth) {
  if (!takes_features(head, features) || features.size(0) == 0) return false;
  return truth.dim() > 0 && truth.size(0) == features.size(0) &&
         truth.numel() == features.size(0) * head.w2.size(0);
}

namespace {

int64_t integer(const Step& step, const std::string& name, int64_t fallback) {
  const auto found = step.node.attributes.find(name);
  return found == step.node.attributes.end() ? fallback : std::get<int64_t>(found->second);
}

double factor_of(const Step& step, const std::string& name) {
  const auto found = step.node.attributes.find(name);
  return found == step.node.attributes.end() ? 1 : std::get<float>(found->second);
}

bool same_for_all_rows(const torch::Tensor& constant) {
  return constant.dim() < 2 || (constant.dim() == 2 && constant.size(0) == 1);
}

// Nothing where the shift is not the same for every row.
std::optional<LinearLayer> layer_of(const torch::Tensor& weight, const torch::Tensor& shift) {
  const int64_t outputs = weight.size(0);
  if (weight.scalar_type() != torch::kFloat) return std::nullopt;
  if (!shift.defined()) {
    return LinearLayer{weight.contiguous(), torch::zeros({outputs}, weight.options())};
  }
  const bool fits = shift.numel() == 1 || (shift.dim() > 0 && shift.size(-1) == outputs);
  if (!same_for_all_rows(shift) || !fits) return std::nullopt;
  return LinearLayer{weight.contiguous(), shift.reshape({-1}).expand({outputs}).contiguous()};
}

}  // namespace

void BackwardReader::skip_identities() {
  for (const Step* step = maker(); step != nullptr; step = maker()) {
    const std::string& op = step->node.op;
    const bool same = op == "Identity" || (op == "Dropout" && !trains(*step));
    if (!same && !(op == "Flatten" && integer(*step, "axis", 1) == 1)) return;
    flattened_ = flattened_ || !same;
    slot_ = step->inputs[0];
  }
}

torch::Tensor BackwardReader::read_factors() {
  torch::Tensor factors;
  for (const Step* step = maker(); step != nullptr && step->node.op == "Mul"; step = maker()) {
    const size_t constant = constant_at(*step, 1).defined() ? 1 : 0;
    const torch::Tensor factor = constant_at(*step, constant);
    if (!factor.defined() || !same_for_all_rows(factor)) break;
    factors = factors.defined() ? factors * factor.reshape({-1}) : factor.reshape({-1});
    slot_ = step->inputs[1 - constant];
    skip_identities();
  }
  return factors;
}

bool BackwardReader::read_relu() {
  const Step* step = maker();
  if (step == nullptr || step->node.op != "Relu") return false;
  slot_ = step->inputs[0];
  return true;
}

torch::Tensor BackwardReader::read_constant_row(const std::string& op) {
  const Step* step = maker();
  if (step == nullptr || step->node.op != op) return {};
  const torch::Tensor row = constant_at(*step, 1);
  if (!row.defined() || !same_for_all_rows(row) || row.scalar_type() != torch::kFloat) return {};
  slot_ = step->inputs[0];
  return row.reshape({-1}).contiguous();
}

std::optional<LinearLayer> BackwardReader::read_linear() {
  flattened_ = false;  // what this layer makes has two dimensions, or nothing is recognised
  const Step* step = maker();
  if (step == nullptr) return std::nullopt;
  if (step->node.op == "Gemm") return read_gemm(*step);
  torch::Tensor shift;
  if (step->node.op == "Add") {
    const size_t constant = constant_at(*step, 1).defined() ? 1 : 0;
    shift = constant_at(*step, constant);
    slot_ = step->inputs[1 - constant];
    step = maker();
    if (!shift.defined() || step == nullptr) return std::nullopt;
  }
  if (step->node.op != "MatMul") return std::nullopt;
  const torch::Tensor product = constant_at(*step, 1);
  slot_ = step->inputs[0];
  only_rows_ = false;
  if (!product.defined() || product.dim() != 2) return std::nullopt;
  return layer_of(product.t(), shift);
}

bool BackwardReader::at_input() const {
  return network_.input_slots().size() == 1 && slot_ == network_.input_slots()[0];
}

bool BackwardReader::at_rows_of_features() const {
  if (!at_input()) return false;
  const TensorInfo& feature = network_.inputs()[0];
  return flattened_ || only_rows_ || (feature.known_rank && feature.shape.size() == 2);
}

const Step* BackwardReader::maker() const {
  for (const Step& step : network_.steps()) {
    if (!step.outputs.empty() && step.outputs[0] == slot_) return &step;
  }
  return nullptr;
}

torch::Tensor BackwardReader::constant_at(const Step& step, size_t input) const {
  if (input >= step.inputs.size() || step.inputs[input] < 0) return {};
  return network_.constants()[static_cast<size_t>(step.inputs[input])];
}

// Whether a Dropout may drop something: its third input says so, or is not known.
bool BackwardReader::trains(const Step& step) const {
  if (step.inputs.size() < 3 || step.inputs[2] < 0) return false;
  const torch::Tensor training = constant_at(step, 2);
  return !training.defined() || training.any().item<bool>();
}

std::optional<LinearLayer> BackwardReader::read_gemm(const Step& step) {
  const torch::Tensor product = constant_at(step, 1);
  const bool shifted = step.inputs.size() > 2 && step.inputs[2] >= 0;
  const torch::Tensor shift = constant_at(step, 2);
  if (!product.defined() || product.dim() != 2) return std::nullopt;
  if (shifted != shift.defined()) return std::nullopt;
  if (integer(step, "transA", 0) != 0) return std::nullopt;
  slot_ = step.inputs[0];
  only_rows_ = true;
  const torch::Tensor weight = integer(step, "transB", 0) != 0 ? product : product.t();
  return layer_of(weight * factor_of(step, "alpha"),
                  shifted ? shift * factor_of(step, "beta") : shift);
}

}  // namespace fcp
