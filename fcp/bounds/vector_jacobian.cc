#include "fcp/bounds/vector_jacobian.h"

#include <exception>
#include <vector>

#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"

namespace fcp {
namespace {

// Whether running S copies of the rows at once gives S copies of the outputs.
bool copies(const Tensors& outputs, const Tensors& coefficients) {
  for (size_t i = 0; i < coefficients.size(); ++i) {
    if (!coefficients[i].defined()) continue;
    std::vector<int64_t> shape = coefficients[i].sizes().slice(1).vec();
    shape[0] *= coefficients[i].size(0);
    if (outputs[i].sizes() != torch::IntArrayRef(shape)) return false;
  }
  return true;
}

// Coefficients of the varying inputs at one call of the function: the vector-Jacobian product.
// Undefined where the function does not accept that many rows.
Tensors product_at_once(const LinearFunction& function, const LinearStep& step,
                        const Tensors& coefficients, int64_t count) {
  Tensors inputs = step.inputs, variables;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!step.varies[i]) continue;
    std::vector<int64_t> shape = inputs[i].sizes().vec();
    if (step.rule == BoundRule::kBilinear || step.rule == BoundRule::kSmooth) {
      shape.insert(shape.begin(), count);
      inputs[i] = inputs[i].unsqueeze(0).expand(shape).flatten(0, 1).detach().requires_grad_();
    } else {
      shape[0] *= count;
      inputs[i] = zeros_like_shape(inputs[i], shape).requires_grad_();
    }
    variables.push_back(inputs[i]);
  }
  Tensors outputs;
  try {
    outputs = function(inputs);
  } catch (const std::exception&) {
    if (count == 1) throw;
    return {};
  }
  if (!copies(outputs, coefficients)) return {};
  Tensors wanted, weights;
  for (size_t i = 0; i < coefficients.size(); ++i) {
    if (!coefficients[i].defined()) continue;
    wanted.push_back(outputs[i]);
    weights.push_back(coefficients[i].reshape(outputs[i].sizes()));
  }
  bool graph = false;
  for (const torch::Tensor& weight : weights) graph = graph || weight.requires_grad();
  Tensors gradients = torch::autograd::grad(wanted, variables, weights, graph, graph, true);
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) gradients[i] = torch::zeros_like(variables[i]);
    std::vector<int64_t> shape = variables[i].sizes().vec();
    shape[0] /= count;
    shape.insert(shape.begin(), count);
    gradients[i] = gradients[i].reshape(shape);
  }
  return gradients;
}

}  // namespace

torch::Tensor zeros_like_shape(const torch::Tensor& like, std::vector<int64_t> shape) {
  return torch::zeros({1}, like.options()).expand(shape).detach();
}

Tensors vector_jacobian(const LinearFunction& function, const LinearStep& step,
                        const Tensors& coefficients) {
  const torch::AutoGradMode mode(true);
  int64_t count = 0;
  for (const torch::Tensor& each : coefficients) {
    if (each.defined()) count = each.size(0);
  }
  Tensors result = product_at_once(function, step, coefficients, count);
  if (!result.empty()) return result;
  std::vector<Tensors> parts;
  for (int64_t s = 0; s < count; ++s) {
    Tensors one;
    for (const torch::Tensor& each : coefficients) {
      one.push_back(each.defined() ? each.narrow(0, s, 1) : each);
    }
    const Tensors gradients = product_at_once(function, step, one, 1);
    if (gradients.empty()) fail("linear bounds need an operator to keep rows apart");
    parts.resize(gradients.size());
    for (size_t i = 0; i < gradients.size(); ++i) parts[i].push_back(gradients[i]);
  }
  for (const Tensors& part : parts) result.push_back(torch::cat(part));
  return result;
}

}  // namespace fcp
