// Helpers of the operator tests: nodes by hand, one-line runs, numeric gradients, error messages.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/nn/ops/op.h"

namespace fcp {

// A node named 'it' with inputs "0", "1", … and the output "y".
inline Node node(const std::string& op, size_t inputs,
                 std::map<std::string, Attribute> attributes = {}) {
  Node made;
  made.name = "it";
  made.op = op;
  for (size_t i = 0; i < inputs; ++i) made.inputs.push_back(std::to_string(i));
  made.outputs = {"y"};
  made.attributes = std::move(attributes);
  return made;
}

// The first output.
inline torch::Tensor run(const Node& made, const Tensors& inputs, int64_t opset = 17) {
  return make_op(made, opset)->forward(inputs).at(0);
}

// The message of the fcp::Error that making or running the node throws, "" when it does not throw.
inline std::string error_of(const Node& made, const Tensors& inputs, int64_t opset = 17) {
  try {
    run(made, inputs, opset);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Doubles in [-1, 1) from a fixed stream, all different.
inline torch::Tensor random_tensor(const std::vector<int64_t>& shape) {
  static at::Generator generator = torch::make_generator<at::CPUGeneratorImpl>(7);
  return torch::rand(shape, generator, torch::dtype(torch::kDouble)) * 2 - 1;
}

inline void expect_close(const torch::Tensor& found, const torch::Tensor& expected,
                         double tolerance = 1e-11) {
  ASSERT_EQ(found.sizes(), expected.sizes());
  ASSERT_EQ(found.scalar_type(), expected.scalar_type());
  if (found.numel() == 0) return;
  EXPECT_LE((found - expected).abs().max().item<double>(), tolerance) << "found\n"
                                                                      << found << "\nexpected\n"
                                                                      << expected;
}

// The gradient of a random weighting of the first output with respect to the first input, against
// central differences along random directions.
inline void expect_gradient(const Node& made, Tensors inputs, int64_t opset = 17) {
  const auto op = make_op(made, opset);
  const torch::Tensor x = inputs[0].detach().clone().requires_grad_(true);
  inputs[0] = x;
  const torch::Tensor y = op->forward(inputs)[0];
  const torch::Tensor weight = random_tensor(y.sizes().vec());
  (y * weight).sum().backward();
  constexpr double kStep = 1e-6;
  for (int direction = 0; direction < 3; ++direction) {
    const torch::Tensor step = random_tensor(x.sizes().vec());
    const auto at = [&](double length) {
      inputs[0] = x.detach() + length * step;
      return (op->forward(inputs)[0] * weight).sum().item<double>();
    };
    const double numeric = (at(kStep) - at(-kStep)) / (2 * kStep);
    EXPECT_NEAR((x.grad() * step).sum().item<double>(), numeric, 1e-6 * (1 + std::abs(numeric)));
  }
}

}  // namespace fcp
