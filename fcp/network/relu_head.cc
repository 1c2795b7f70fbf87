#include "fcp/network/relu_head.h"

#include <cstdint>
#include <string>
#include <variant>

namespace fcp {
namespace {

struct LinearLayer {
  torch::Tensor weight;  // [out, in]
  torch::Tensor bias;    // [out]
};

// Reads a head from an output back towards the feature, step by step.
class BackwardReader {
 public:
  BackwardReader(const Network& head, int slot) : head_(head), slot_(slot) {}

  // Goes back over steps that change no number.
  void skip_identities() {
    for (const Step* step = maker(); step != nullptr; step = maker()) {
      const std::string& op = step->node.op;
      const bool same = op == "Identity" || op == "Dropout";
      if (!same && !(op == "Flatten" && integer(*step, "axis", 1) == 1)) return;
      flattened_ = flattened_ || !same;
      slot_ = step->inputs[0];
    }
  }

  // Goes back over products with a constant, one number or one for each output, and collects them.
  torch::Tensor read_factors() {
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

  bool read_relu() {
    const Step* step = maker();
    if (step == nullptr || step->node.op != "Relu") return false;
    slot_ = step->inputs[0];
    return true;
  }

  std::optional<LinearLayer> read_linear() {
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
    return layer(product.t(), shift);
  }

  // Whether the feature has been reached, and as rows: a MatMul would take any rank.
  bool at_rows_of_features() const {
    if (head_.input_slots().size() != 1 || slot_ != head_.input_slots()[0]) return false;
    const TensorInfo& feature = head_.inputs()[0];
    return flattened_ || only_rows_ || (feature.known_rank && feature.shape.size() == 2);
  }
  bool flattened() const { return flattened_; }

 private:
  const Step* maker() const {
    for (const Step& step : head_.steps()) {
      if (!step.outputs.empty() && step.outputs[0] == slot_) return &step;
    }
    return nullptr;
  }

  torch::Tensor constant_at(const Step& step, size_t input) const {
    if (input >= step.inputs.size() || step.inputs[input] < 0) return {};
    return head_.constants()[static_cast<size_t>(step.inputs[input])];
  }

  static int64_t integer(const Step& step, const std::string& name, int64_t fallback) {
    const auto found = step.node.attributes.find(name);
    return found == step.node.attributes.end() ? fallback : std::get<int64_t>(found->second);
  }

  static double number(const Step& step, const std::string& name) {
    const auto found = step.node.attributes.find(name);
    return found == step.node.attributes.end() ? 1 : std::get<float>(found->second);
  }

  std::optional<LinearLayer> read_gemm(const Step& step) {
    const torch::Tensor product = constant_at(step, 1);
    const bool shifted = step.inputs.size() > 2 && step.inputs[2] >= 0;
    const torch::Tensor shift = constant_at(step, 2);
    if (!product.defined() || shifted != shift.defined()) return std::nullopt;
    if (integer(step, "transA", 0) != 0) return std::nullopt;
    slot_ = step.inputs[0];
    only_rows_ = true;
    const torch::Tensor weight = integer(step, "transB", 0) != 0 ? product : product.t();
    return layer(weight * number(step, "alpha"), shifted ? shift * number(step, "beta") : shift);
  }

  static bool same_for_all_rows(const torch::Tensor& constant) {
    return constant.dim() < 2 || (constant.dim() == 2 && constant.size(0) == 1);
  }

  // Nothing where the shift is not the same for every row.
  static std::optional<LinearLayer> layer(const torch::Tensor& weight, const torch::Tensor& shift) {
    const int64_t outputs = weight.size(0);
    if (weight.scalar_type() != torch::kFloat) return std::nullopt;
    if (!shift.defined())
      return LinearLayer{weight.contiguous(), torch::zeros({outputs}, weight.options())};
    const bool fits = shift.numel() == 1 || (shift.dim() > 0 && shift.size(-1) == outputs);
    if (!same_for_all_rows(shift) || !fits) return std::nullopt;
    return LinearLayer{weight.contiguous(), shift.reshape({-1}).expand({outputs}).contiguous()};
  }

  const Network& head_;
  int slot_;
  bool flattened_ = false;
  bool only_rows_ = false;  // the layer read last takes nothing but matrices
};

}  // namespace

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

}  // namespace fcp
