#include "fcp/nn/runtime/fuse_bytes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "fcp/nn/ops/byte_product.h"
#include "fcp/nn/runtime/fuse.h"

namespace fcp {
namespace {

// One scale and zero point for all numbers.
struct StepSize {
  float scale = 1;
  int32_t zero = 0;
  torch::ScalarType type = torch::kByte;
  bool operator==(const StepSize&) const = default;
};

// A product and what follows it, in bytes; for other inputs the steps one after the other.
class ByteOp : public Op {
 public:
  ByteOp(std::shared_ptr<const Op> steps, std::shared_ptr<const Op> product, const StepSize& input,
         std::shared_ptr<const ByteFilters> filters, ByteEnd end)
      : steps_(std::move(steps)),
        owner_(std::move(product)),
        product_(dynamic_cast<const ByteProduct*>(owner_.get())),
        input_(input),
        filters_(std::move(filters)),
        end_(std::move(end)) {}

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    if (x.is_cpu() && x.scalar_type() == input_.type && x.numel() > 0) {
      const torch::Tensor y = product_->forward_bytes(x, input_.zero, *filters_, end_);
      if (y.defined()) return {y};
    }
    return steps_->forward(inputs);
  }

 private:
  std::shared_ptr<const Op> steps_, owner_;
  const ByteProduct* product_;
  StepSize input_;
  std::shared_ptr<const ByteFilters> filters_;
  ByteEnd end_;
};

std::vector<float> floats_of(const torch::Tensor& x) {
  const torch::Tensor plain = x.contiguous();
  return {plain.data_ptr<float>(), plain.data_ptr<float>() + plain.numel()};
}

// What multiplies the sums: x_scale · w_scale, one number for each filter.
torch::Tensor product_scale(float input, const torch::Tensor& weights, int64_t filters) {
  return (weights.reshape({-1}) * input).expand({filters}).contiguous();
}

constexpr int64_t kOperatorSet = 17;  // of operators that are made of others' nodes

class ByteFuser {
 public:
  ByteFuser(const std::vector<Step>& steps, const Tensors& constants,
            const std::vector<int>& outputs, const std::map<int, QuantizedConstant>& quantized)
      : steps_(steps),
        constants_(constants),
        outputs_(outputs.begin(), outputs.end()),
        quantized_(quantized) {
    for (size_t i = 0; i < steps.size(); ++i) {
      for (const int slot : std::set<int>(steps[i].inputs.begin(), steps[i].inputs.end())) {
        readers_[slot].push_back(i);
      }
      if (steps[i].outputs.size() == 1) makers_[steps[i].outputs[0]] = i;
    }
  }

  std::vector<Step> fused() {
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (!take_product(i) && !take_quantized(i)) take_move(i);
    }
    std::vector<Step> result;
    std::set<int> read = outputs_;
    for (size_t i = 0; i < steps_.size(); ++i) {
      const auto found = whole_.find(i);
      if (found == whole_.end() && inner_.contains(i)) continue;
      const Step& step = found == whole_.end() ? steps_[i] : found->second;
      read.insert(step.inputs.begin(), step.inputs.end());
    }
    for (size_t i = 0; i < steps_.size(); ++i) {
      const auto found = whole_.find(i);
      if (found != whole_.end()) {
        result.push_back(found->second);
      } else if (!inner_.contains(i) &&
                 (!dequantizes_.contains(i) || read.contains(steps_[i].outputs[0]))) {
        result.push_back(steps_[i]);
      }
    }
    return result;
  }

 private:
  static bool is_one(const Step& step, const char* op) {
    const std::string& domain = step.node.domain;
    return step.node.op == op &&
           (domain.empty() || domain == "ai.onnx" || domain == "com.microsoft");
  }
  const torch::Tensor& constant(int slot) const {
    static const torch::Tensor none;
    return slot < 0 ? none : constants_[static_cast<size_t>(slot)];
  }

  // Of QuantizeLinear or DequantizeLinear of bytes.
  std::optional<StepSize> step_size(const Step& step, const char* op) const {
    if (!is_one(step, op) || step.node.attributes.contains("output_dtype")) return std::nullopt;
    return step_size(slot_of(step, 1), slot_of(step, 2));
  }
  static int slot_of(const Step& step, size_t input) {
    return input < step.inputs.size() ? step.inputs[input] : -1;
  }
  std::optional<StepSize> step_size(int scale_slot, int zero_slot) const {
    const torch::Tensor& scale = constant(scale_slot);
    const torch::Tensor zero =
        zero_slot >= 0 ? constant(zero_slot) : torch::zeros({}, torch::kByte);
    if (!scale.defined() || scale.numel() != 1 || scale.scalar_type() != torch::kFloat ||
        !zero.defined() || zero.numel() != 1) {
      return std::nullopt;
    }
    const torch::ScalarType type = zero.scalar_type();
    const float number = scale.item<float>();
    if ((type != torch::kByte && type != torch::kChar) || !(number > 0) || !std::isfinite(number)) {
      return std::nullopt;
    }
    return StepSize{number, zero.item<int32_t>(), type};
  }

  // The DequantizeLinear that makes a step's first input.
  std::optional<size_t> dequantizer(size_t i) const {
    if (steps_[i].inputs.empty()) return std::nullopt;
    const auto maker = makers_.find(steps_[i].inputs[0]);
    if (maker == makers_.end() || !step_size(steps_[maker->second], "DequantizeLinear")) {
      return std::nullopt;
    }
    return maker->second;
  }

  std::optional<size_t> only_reader(size_t i) const {
    if (steps_[i].outputs.size() != 1) return std::nullopt;
    const auto found = readers_.find(steps_[i].outputs[0]);
    const bool one = found != readers_.end() && found->second.size() == 1;
    if (!one || outputs_.contains(steps_[i].outputs[0])) return std::nullopt;
    return found->second[0];
  }

  // A product with constant weights of known steps.
  bool take_product(size_t i) {
    const Step& step = steps_[i];
    const auto* product = dynamic_cast<const ByteProduct*>(step.op.get());
    const auto first = product == nullptr ? std::nullopt : dequantizer(i);
    const auto weights = first ? quantized_.find(step.inputs[1]) : quantized_.end();
    if (weights == quantized_.end()) return false;
    const QuantizedConstant& w = weights->second;
    const StepSize input = *step_size(steps_[*first], "DequantizeLinear");
    const torch::Tensor filters = product->byte_filters(w.steps);
    if (!filters.defined() || !scaled_by_filter(*product, w, filters.size(0))) return false;
    const auto packed = make_byte_filters(filters, w.zero);
    if (packed == nullptr) return false;
    const torch::Tensor scale = product_scale(input.scale, w.scale, filters.size(0));
    ByteEnd end = endless(scale);
    if (step.inputs.size() > 2 && step.inputs[2] >= 0 && !add_bias(step.inputs[2], scale, end)) {
      return false;
    }
    FusedChain chain;
    chain.steps = {*first, i};
    follow(chain, end);
    Step whole = fused_step(steps_, chain);
    whole.op = std::make_shared<ByteOp>(whole.op, step.op, input, packed, std::move(end));
    inner_.insert(chain.steps.begin() + 1, chain.steps.end());
    dequantizes_.insert(*first);
    whole_.emplace(chain.steps.back(), std::move(whole));
    return true;
  }

  // QLinearConv, QLinearMatMul and QGemm: the step's inputs say all.
  bool take_quantized(size_t i) {
    const Step& step = steps_[i];
    const bool conv = is_one(step, "QLinearConv"), gemm = is_one(step, "QGemm");
    if (!conv && !gemm && !is_one(step, "QLinearMatMul")) return false;
    const auto input = step_size(step.inputs[1], step.inputs[2]);
    const auto output = step_size(slot_of(step, gemm ? 7 : 6), slot_of(step, gemm ? 8 : 7));
    const torch::Tensor &steps = constant(step.inputs[3]), &scales = constant(step.inputs[4]),
                        &zero = constant(slot_of(step, 5));
    const int bias = conv ? slot_of(step, 8) : gemm ? slot_of(step, 6) : -1;
    if (!input || !output || !steps.defined() || !scales.defined() ||
        scales.scalar_type() != torch::kFloat || (slot_of(step, 5) >= 0 && !zero.defined())) {
      return false;
    }
    Node node = step.node;
    node.op = conv ? "Conv" : gemm ? "Gemm" : "MatMul";
    node.domain.clear();
    node.inputs.resize(2);
    const auto right = node.attributes.find("transB");
    const bool rows = gemm && right != node.attributes.end() && std::get<int64_t>(right->second);
    const std::shared_ptr<const Op> op = make_op(node, kOperatorSet);
    const auto* product = dynamic_cast<const ByteProduct*>(op.get());
    const torch::Tensor filters =
        product == nullptr ? torch::Tensor() : product->byte_filters(steps);
    const QuantizedConstant w = {steps, scales, zero, conv || rows ? 0 : 1};
    if (!filters.defined() || !scaled_by_filter(*product, w, filters.size(0))) return false;
    const auto packed = make_byte_filters(filters, zero);
    if (packed == nullptr) return false;
    ByteEnd end = endless(product_scale(input->scale, scales, filters.size(0)));
    if (bias >= 0 && !add_steps(constant(bias), filters.size(0), end)) return false;
    quantize(*output, end);
    Step whole = step;
    whole.op = std::make_shared<ByteOp>(step.op, op, *input, packed, std::move(end));
    whole_.emplace(i, std::move(whole));
    return true;
  }

  static ByteEnd endless(const torch::Tensor& scale) {
    ByteEnd end;
    end.scale = floats_of(scale);
    end.low = -std::numeric_limits<float>::infinity();
    end.high = std::numeric_limits<float>::infinity();
    return end;
  }

  // A bias in steps of the sums.
  static bool add_steps(const torch::Tensor& bias, int64_t filters, ByteEnd& end) {
    if (!bias.defined() || bias.scalar_type() != torch::kInt || bias.numel() != filters ||
        bias.size(-1) != filters || bias.abs().max().item<int>() >= 1 << 30) {
      return false;
    }
    const torch::Tensor steps = bias.reshape({-1}).contiguous();
    end.bias.assign(steps.data_ptr<int32_t>(), steps.data_ptr<int32_t>() + filters);
    return true;
  }

  // One scale for all, or one for each filter.
  static bool scaled_by_filter(const ByteProduct& product, const QuantizedConstant& w,
                               int64_t filters) {
    if (w.zero.defined() && w.zero.numel() != w.scale.numel()) return false;
    if (w.scale.numel() == 1) return true;
    // Where the numbers of a filter land when its weights are moved says which axis is its own.
    const int64_t axis = w.axis < 0 ? w.axis + w.steps.dim() : w.axis;
    std::vector<int64_t> shape(static_cast<size_t>(w.steps.dim()), 1);
    if (w.scale.dim() != 1 || w.scale.size(0) != filters || w.steps.size(axis) != filters) {
      return false;
    }
    shape[static_cast<size_t>(axis)] = filters;
    const torch::Tensor numbered =
        torch::arange(filters).reshape(shape).expand(w.steps.sizes()).contiguous();
    const torch::Tensor moved = product.byte_filters(numbered).flatten(1);
    return torch::equal(moved, torch::arange(filters).unsqueeze(1).expand_as(moved));
  }

  // As steps of `scale` where it has them, else as it is.
  bool add_bias(int slot, const torch::Tensor& scale, ByteEnd& end) const {
    const torch::Tensor& bias = constant(slot);
    const int64_t filters = scale.numel();
    if (!bias.defined() || bias.numel() != filters || bias.size(-1) != filters ||
        bias.scalar_type() != torch::kFloat) {
      return false;
    }
    const auto found = quantized_.find(slot);
    const bool whole =
        found != quantized_.end() &&
        (!found->second.zero.defined() ||
         found->second.zero.count_nonzero().item<int64_t>() == 0) &&
        found->second.scale.numel() <= filters &&
        torch::allclose(found->second.scale.reshape({-1}).expand({filters}), scale, 1e-6, 0);
    if (whole && add_steps(found->second.steps, filters, end)) return true;
    end.shift = floats_of(bias.reshape({-1}));
    return true;
  }

  // The activation and QuantizeLinear behind the last step of the chain.
  void follow(FusedChain& chain, ByteEnd& end) const {
    auto next = only_reader(chain.steps.back());
    if (next && is_one(steps_[*next], "Relu")) {
      end.low = 0;
      chain.steps.push_back(*next);
      next = only_reader(*next);
    } else if (next && clips(steps_[*next], end)) {
      chain.steps.push_back(*next);
      next = only_reader(*next);
    }
    const auto output = next ? step_size(steps_[*next], "QuantizeLinear") : std::nullopt;
    if (!output) return;
    chain.steps.push_back(*next);
    quantize(*output, end);
  }

  // What comes out are steps.
  static void quantize(const StepSize& output, ByteEnd& end) {
    const bool is_signed = output.type == torch::kChar;
    const auto quantized = [&](float number) {
      const float step = std::nearbyint(number / output.scale) + static_cast<float>(output.zero);
      return std::min(std::max(step, is_signed ? -128.0f : 0.0f), is_signed ? 127.0f : 255.0f);
    };
    end.low = quantized(end.low);
    end.high = quantized(end.high);
    end.zero = static_cast<float>(output.zero);
    end.type = output.type;
    if (!end.shift.empty()) {
      end.step = output.scale;
      return;
    }
    for (float& scale : end.scale) scale /= output.scale;
  }

  bool clips(const Step& step, ByteEnd& end) const {
    if (!is_one(step, "Clip") || !step.node.attributes.empty()) return false;
    float ends[] = {end.low, end.high};
    for (size_t i = 1; i < step.inputs.size(); ++i) {
      if (step.inputs[i] < 0) continue;
      const torch::Tensor& value = constant(step.inputs[i]);
      if (!value.defined() || value.numel() != 1 || value.scalar_type() != torch::kFloat) {
        return false;
      }
      ends[i - 1] = value.item<float>();
    }
    if (!(ends[0] <= ends[1])) return false;
    end.low = ends[0];
    end.high = ends[1];
    return true;
  }

  // An operator that only moves or chooses numbers, between two steps of the same size.
  void take_move(size_t i) {
    static const std::set<std::string> kMoves = {"MaxPool",   "Flatten", "Reshape",
                                                 "Transpose", "Squeeze", "Unsqueeze"};
    const Step& step = steps_[i];
    if (!kMoves.contains(step.node.op) || step.outputs.size() != 1) return;
    const auto first = dequantizer(i), last = only_reader(i);
    if (!first || !last) return;
    const auto size = step_size(steps_[*last], "QuantizeLinear");
    if (!size || *size != *step_size(steps_[*first], "DequantizeLinear")) return;
    Step moved = step;
    moved.inputs[0] = steps_[*first].inputs[0];
    moved.outputs = steps_[*last].outputs;
    moved.node.outputs = steps_[*last].node.outputs;
    dequantizes_.insert(*first);
    inner_.insert({i, *last});
    whole_.emplace(*last, std::move(moved));
  }

  const std::vector<Step>& steps_;
  const Tensors& constants_;
  std::set<int> outputs_;
  const std::map<int, QuantizedConstant>& quantized_;
  std::map<int, std::vector<size_t>> readers_;
  std::map<int, size_t> makers_;
  std::map<size_t, Step> whole_;  // by the last of their steps
  std::set<size_t> inner_;        // taken by them
  std::set<size_t> dequantizes_;  // what they read is read before
};

}  // namespace

std::map<std::string, QuantizedConstant> quantized_constants(const Graph& graph) {
  std::map<std::string, QuantizedConstant> found;
  const auto initializer = [&](const Node& node, size_t i) {
    const auto value =
        i < node.inputs.size() ? graph.initializers.find(node.inputs[i]) : graph.initializers.end();
    return value == graph.initializers.end() ? torch::Tensor() : value->second.tensor();
  };
  for (const Node& node : graph.nodes) {
    if (node.op != "DequantizeLinear" || node.attributes.contains("block_size")) continue;
    QuantizedConstant constant = {initializer(node, 0), initializer(node, 1), initializer(node, 2)};
    const bool zeros = node.inputs.size() > 2 && !node.inputs[2].empty();
    if (!constant.steps.defined() || !constant.scale.defined() ||
        zeros != constant.zero.defined() || constant.scale.scalar_type() != torch::kFloat ||
        constant.steps.numel() == 0) {
      continue;
    }
    const auto axis = node.attributes.find("axis");
    const auto* given =
        axis == node.attributes.end() ? nullptr : std::get_if<int64_t>(&axis->second);
    if (given != nullptr) constant.axis = *given;
    found.emplace(node.outputs[0], std::move(constant));
  }
  return found;
}

std::vector<Step> fuse_bytes(const std::vector<Step>& steps, const Tensors& constants,
                             const std::vector<int>& outputs,
                             const std::map<int, QuantizedConstant>& quantized) {
  return ByteFuser(steps, constants, outputs, quantized).fused();
}

}  // namespace fcp
