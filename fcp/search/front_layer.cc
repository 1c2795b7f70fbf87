#include "fcp/search/front_layer.h"

#include <mutex>
#include <utility>
#include <vector>

#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/network/cut.h"

namespace fcp {
namespace {

class LinearFront : public FrontLayer {
 public:
  // weight [M, C], bias [M] or undefined.
  LinearFront(torch::Tensor weight, torch::Tensor bias)
      : weight_(std::move(weight)), bias_(std::move(bias)), gram_(weight_.mm(weight_.t())) {}

  torch::Tensor forward(const torch::Tensor& u) const override {
    return torch::linear(u, weight_, bias_);
  }
  torch::Tensor transpose(const torch::Tensor& g) const override { return g.mm(weight_); }
  torch::Tensor gram(const torch::Tensor& g) const override { return g.mm(gram_); }

 private:
  torch::Tensor weight_, bias_, gram_;
};

// W correlated with itself: [M, C, h, w] → [M, M, 2h − 1, 2w − 1].
torch::Tensor self_correlation(const torch::Tensor& weight) {
  return torch::conv2d(weight, weight, {}, 1, {weight.size(2) - 1, weight.size(3) - 1});
}

torch::Tensor convolve_same(const torch::Tensor& g, const torch::Tensor& kernel) {
  return torch::conv2d(g, kernel, {}, 1, {kernel.size(2) / 2, kernel.size(3) / 2});
}

class ConvolutionFront : public FrontLayer {
 public:
  // weight [M, C, k, k] with k 1 or 3, bias [M] or undefined.
  ConvolutionFront(torch::Tensor weight, torch::Tensor bias)
      : weight_(std::move(weight)), bias_(std::move(bias)), padding_(weight_.size(2) / 2) {}

  torch::Tensor forward(const torch::Tensor& u) const override {
    return torch::conv2d(u, weight_, bias_, 1, padding_);
  }
  torch::Tensor transpose(const torch::Tensor& g) const override {
    return torch::conv_transpose2d(g, weight_, {}, 1, padding_);
  }

  torch::Tensor gram(const torch::Tensor& g) const override {
    std::call_once(made_, [&] { correlate(); });
    torch::Tensor result = convolve_same(g, whole_);
    for (const Border& border : borders_) {
      const auto part = [&](const torch::Tensor& image) {
        torch::Tensor at = image;
        if (border.row != kAll) at = at.narrow(2, border.row == 0 ? 0 : image.size(2) - 1, 1);
        if (border.column != kAll) at = at.narrow(3, border.column == 0 ? 0 : image.size(3) - 1, 1);
        return at;
      };
      part(result).sub_(convolve_same(part(g), border.kernel), border.sign);
    }
    return result;
  }

 private:
  static constexpr int64_t kAll = -1;

  // A side of the image or a corner of it, by the row and column of W that meets the padding there.
  struct Border {
    int64_t row, column;
    double sign;  // 1: to subtract; −1: the corners, which two sides have subtracted
    torch::Tensor kernel;
  };

  void correlate() const {
    torch::NoGradGuard no_gradients;
    whole_ = self_correlation(weight_);
    if (padding_ == 0) return;
    for (const int64_t row : {kAll, int64_t{0}, int64_t{2}}) {
      for (const int64_t column : {kAll, int64_t{0}, int64_t{2}}) {
        if (row == kAll && column == kAll) continue;
        torch::Tensor outer = weight_;
        if (row != kAll) outer = outer.narrow(2, row, 1);
        if (column != kAll) outer = outer.narrow(3, column, 1);
        const bool side = row == kAll || column == kAll;
        borders_.push_back({row, column, side ? 1.0 : -1.0, self_correlation(outer.contiguous())});
      }
    }
  }

  torch::Tensor weight_, bias_;
  int64_t padding_;
  mutable std::once_flag made_;  // correlating costs as much as a step: not before it is needed
  mutable torch::Tensor whole_;
  mutable std::vector<Border> borders_;
};

bool all_equal(const Node& node, const char* name, int64_t value) {
  const auto found = node.attributes.find(name);
  if (found == node.attributes.end()) return true;
  const auto* numbers = std::get_if<std::vector<int64_t>>(&found->second);
  if (!numbers) return false;
  for (const int64_t number : *numbers) {
    if (number != value) return false;
  }
  return true;
}

template <typename T>
T attribute_or(const Node& node, const char* name, T fallback) {
  const auto found = node.attributes.find(name);
  const T* value = found == node.attributes.end() ? nullptr : std::get_if<T>(&found->second);
  return value ? *value : fallback;
}

bool cheaper(int64_t outputs, int64_t inputs, int64_t kernel) {
  return outputs * (2 * kernel - 1) * (2 * kernel - 1) < 2 * inputs * kernel * kernel;
}

std::shared_ptr<const FrontLayer> linear_front(const Node& node, torch::Tensor weight,
                                               const torch::Tensor& bias) {
  if (attribute_or<float>(node, "alpha", 1) != 1 || attribute_or<float>(node, "beta", 1) != 1 ||
      attribute_or<int64_t>(node, "transA", 0) != 0 || weight.dim() != 2) {
    return nullptr;
  }
  if (attribute_or<int64_t>(node, "transB", 0) == 0) weight = weight.t().contiguous();
  if (bias.defined() && bias.sizes() != torch::IntArrayRef{weight.size(0)}) return nullptr;
  if (!cheaper(weight.size(0), weight.size(1), 1)) return nullptr;
  return std::make_shared<LinearFront>(weight, bias);
}

std::shared_ptr<const FrontLayer> convolution_front(const Node& node, const torch::Tensor& weight,
                                                    const torch::Tensor& bias) {
  if (weight.dim() != 4 || weight.size(2) != weight.size(3)) return nullptr;
  const int64_t kernel = weight.size(2);
  if (kernel != 1 && kernel != 3) return nullptr;
  if (kernel == 3 && node.attributes.find("pads") == node.attributes.end()) return nullptr;
  if (attribute_or<std::string>(node, "auto_pad", "NOTSET") != "NOTSET" ||
      attribute_or<int64_t>(node, "group", 1) != 1 || !all_equal(node, "strides", 1) ||
      !all_equal(node, "dilations", 1) || !all_equal(node, "pads", kernel / 2)) {
    return nullptr;
  }
  if (!cheaper(weight.size(0), weight.size(1), kernel)) return nullptr;
  return std::make_shared<ConvolutionFront>(weight, bias);
}

}  // namespace

SplitHead split_head(const Network& head) {
  const Graph graph = head.graph();
  if (graph.inputs.size() != 1 || graph.nodes.size() < 2 || head.fixed_batch() != kDynamic) {
    return {};
  }
  const Node& node = graph.nodes[0];
  const bool product = (node.op == "Gemm" || node.op == "Conv") && node.domain.empty() &&
                       node.inputs.size() >= 2 && node.inputs[0] == graph.inputs[0].name;
  if (!product || find_leak(graph, node.outputs[0])) return {};
  const auto constant = [&](size_t i) {
    const auto found =
        i < node.inputs.size() ? graph.initializers.find(node.inputs[i]) : graph.initializers.end();
    return found == graph.initializers.end() ? torch::Tensor() : found->second;
  };
  const bool biased = node.inputs.size() > 2 && !node.inputs[2].empty();
  if (!constant(1).defined() || (biased && !constant(2).defined())) return {};
  if (constant(1).scalar_type() != torch::kFloat) return {};
  const torch::Tensor weight = constant(1).to(head.device());
  const torch::Tensor bias = biased ? constant(2).to(head.device()) : torch::Tensor();
  SplitHead parts;
  parts.front =
      node.op == "Gemm" ? linear_front(node, weight, bias) : convolution_front(node, weight, bias);
  if (!parts.front) return {};
  TensorInfo behind;
  behind.name = node.outputs[0];
  behind.known_rank = false;
  NetworkOptions options;
  options.device = head.device();
  parts.rest = std::make_shared<const Network>(extract(graph, {behind}, graph.outputs), options);
  return parts;
}

}  // namespace fcp
