// Arithmetic, comparisons, Where and ArgMax: literals, slow loops, and messages for bad nodes.
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/nn/ops/op.h"

namespace fcp {
namespace {

using Attributes = std::map<std::string, Attribute>;

Tensors run_arithmetic(const std::string& op, const Tensors& inputs,
                       const Attributes& attributes = {}, int64_t opset = 17) {
  Node node{"n", op, "", {}, {"o"}, attributes};
  for (size_t i = 0; i < inputs.size(); ++i) node.inputs.push_back(concat("i", i));
  return make_op(node, opset)->forward(inputs);
}

std::string arithmetic_error(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

torch::Tensor integers(const std::vector<int64_t>& values) {
  return torch::tensor(values, torch::kLong);
}

const std::map<std::string, std::function<double(double, double)>>& pair_formulas() {
  static const std::map<std::string, std::function<double(double, double)>> formulas = {
      {"Add", [](double a, double b) { return a + b; }},
      {"Sub", [](double a, double b) { return a - b; }},
      {"Mul", [](double a, double b) { return a * b; }},
      {"Div", [](double a, double b) { return a / b; }},
      {"Pow", [](double a, double b) { return std::pow(a, b); }},
      {"Min", [](double a, double b) { return std::fmin(a, b); }},
      {"Max", [](double a, double b) { return std::fmax(a, b); }},
      {"Sum", [](double a, double b) { return a + b; }},
      {"Mean", [](double a, double b) { return (a + b) / 2; }},
      {"Equal", [](double a, double b) { return a == b; }},
      {"Greater", [](double a, double b) { return a > b; }},
      {"Less", [](double a, double b) { return a < b; }},
  };
  return formulas;
}

TEST(Arithmetic, BroadcastsBothWays) {
  torch::manual_seed(1);
  for (const auto type : {torch::kDouble, torch::kFloat}) {
    const torch::Tensor a = torch::rand({2, 1, 3}, type) + 0.5;
    const torch::Tensor b = torch::rand({4, 1}, type) + 0.5;
    a[1][0][2] = b[3][0];
    for (const auto& [op, formula] : pair_formulas()) {
      const torch::Tensor y = run_arithmetic(op, {a, b})[0];
      ASSERT_EQ(y.sizes(), torch::IntArrayRef({2, 4, 3})) << op;
      const bool truth = op == "Equal" || op == "Greater" || op == "Less";
      ASSERT_EQ(y.scalar_type(), truth ? torch::kBool : type) << op;
      for (int64_t i = 0; i < 2; ++i) {
        for (int64_t j = 0; j < 4; ++j) {
          for (int64_t k = 0; k < 3; ++k) {
            const double expected = formula(a[i][0][k].item<double>(), b[j][0].item<double>());
            EXPECT_NEAR(y[i][j][k].item<double>(), expected, type == torch::kDouble ? 1e-14 : 1e-6)
                << op;
          }
        }
      }
    }
  }
}

TEST(Arithmetic, HasGradientsInBothInputs) {
  const double x = 1.25, z = 0.75, h = 1e-5;
  for (const auto& [op, formula] : pair_formulas()) {
    Node node{"n", op, "", {"a", "b"}, {"o"}, {}};
    const auto made = make_op(node, 17);
    const bool truth = op == "Equal" || op == "Greater" || op == "Less";
    ASSERT_EQ(made->differentiable(), !truth) << op;
    if (truth) continue;
    const torch::Tensor a = torch::tensor({x}, torch::kDouble).requires_grad_();
    const torch::Tensor b = torch::tensor({z}, torch::kDouble).requires_grad_();
    made->forward({a, b})[0].backward();
    EXPECT_NEAR(a.grad().item<double>(), (formula(x + h, z) - formula(x - h, z)) / (2 * h), 1e-8);
    EXPECT_NEAR(b.grad().item<double>(), (formula(x, z + h) - formula(x, z - h)) / (2 * h), 1e-8);
  }
}

TEST(Arithmetic, KeepsTheTypeOfScalarsAndMixesFloatWithDouble) {
  const torch::Tensor x = torch::ones({2}, torch::kFloat), y = torch::ones({2}, torch::kDouble);
  EXPECT_EQ(run_arithmetic("Add", {x, torch::tensor(2.0, torch::kDouble)})[0].scalar_type(),
            torch::kFloat);
  EXPECT_EQ(run_arithmetic("Mul", {x, y})[0].scalar_type(), torch::kDouble);
}

TEST(Div, TruncatesIntegersTowardZero) {
  const int64_t least = std::numeric_limits<int64_t>::min();
  const torch::Tensor y = run_arithmetic(
      "Div", {integers({7, -7, 7, -7, 6, least}), integers({2, 2, -2, -2, -1, -1})})[0];
  EXPECT_TRUE(torch::equal(y, integers({3, -3, -3, 3, -6, least})));
  EXPECT_TRUE(torch::equal(run_arithmetic("Div", {torch::tensor({200, 255}, torch::kByte),
                                                  torch::tensor({7, 255}, torch::kByte)})[0],
                           torch::tensor({28, 1}, torch::kByte)));
  EXPECT_EQ(arithmetic_error([] {
              run_arithmetic("Div", {integers({1, 2}), integers({1, 0})});
            }),
            "Div node 'n': divides integers by 0");
}

TEST(Pow, HasTheTypeOfItsBase) {
  const torch::Tensor x = torch::tensor({1.0f, 2.0f, 3.0f});
  const torch::Tensor squares = run_arithmetic("Pow", {x, integers({2})})[0];
  EXPECT_TRUE(torch::equal(squares, torch::tensor({1.0f, 4.0f, 9.0f})));
  const torch::Tensor whole =
      run_arithmetic("Pow", {integers({2, 9, 3}), torch::tensor({0.5f, 0.5f, 2.0f})})[0];
  EXPECT_TRUE(torch::equal(whole, integers({1, 3, 9})));
  EXPECT_TRUE(torch::equal(run_arithmetic("Pow", {integers({3, 5}), integers({4, 0})})[0],
                           integers({81, 1})));
  const torch::Tensor wide = torch::tensor({2.0}, torch::kDouble).requires_grad_();
  run_arithmetic("Pow", {wide, torch::tensor(3.0f)})[0].backward();
  EXPECT_DOUBLE_EQ(wide.grad().item<double>(), 12);
  // A base of lower rank than the exponent takes its shape.
  EXPECT_EQ(run_arithmetic("Pow", {x, torch::full({1, 1}, 2.0f)})[0].sizes(),
            torch::IntArrayRef({1, 3}));
}

TEST(Variadic, TakesAnyNumberOfInputs) {
  const torch::Tensor a = torch::tensor({1.0, 5.0}, torch::kDouble), b = a.flip({0}),
                      c = torch::tensor({{3.0}, {6.0}}, torch::kDouble);
  EXPECT_TRUE(torch::equal(run_arithmetic("Min", {a, b, c})[0],
                           torch::tensor({{1.0, 1.0}, {1.0, 1.0}}, torch::kDouble)));
  EXPECT_TRUE(torch::equal(run_arithmetic("Max", {a, b, c})[0],
                           torch::tensor({{5.0, 5.0}, {6.0, 6.0}}, torch::kDouble)));
  EXPECT_TRUE(torch::equal(run_arithmetic("Sum", {a, b, c})[0],
                           torch::tensor({{9.0, 9.0}, {12.0, 12.0}}, torch::kDouble)));
  EXPECT_TRUE(torch::equal(run_arithmetic("Mean", {a, b, c})[0],
                           torch::tensor({{3.0, 3.0}, {4.0, 4.0}}, torch::kDouble)));
  for (const char* op : {"Min", "Max", "Sum", "Mean"}) {
    EXPECT_TRUE(torch::equal(run_arithmetic(op, {a})[0], a)) << op;
    EXPECT_EQ(arithmetic_error([&] { run_arithmetic(op, {}); }),
              concat(op, " node 'n': has 0 inputs, expected 1"));
  }
  EXPECT_TRUE(
      torch::equal(run_arithmetic("Max", {integers({1, 4}), integers({3})})[0], integers({3, 4})));
  EXPECT_EQ(arithmetic_error([&] { run_arithmetic("Mean", {integers({1})}); }),
            "Mean node 'n': input is Long, expected floating-point numbers");
}

TEST(Arithmetic, RefusesWhatDoesNotFit) {
  const torch::Tensor x = torch::zeros({2, 3});
  EXPECT_EQ(arithmetic_error([&] {
              run_arithmetic("Add", {x, torch::zeros({2})});
            }),
            "Add node 'n': shapes [2, 3] and [2] do not broadcast");
  EXPECT_EQ(arithmetic_error([&] {
              run_arithmetic("Mul", {x, integers({1})});
            }),
            "Mul node 'n': inputs are Float and Long, expected one type");
  EXPECT_EQ(arithmetic_error([&] {
              run_arithmetic("Sub", {x > 0, x > 0});
            }),
            "Sub node 'n': an input is Bool, expected numbers");
  EXPECT_EQ(arithmetic_error([&] {
              run_arithmetic("Add", {x, x, x});
            }),
            "Add node 'n': has 3 inputs, expected 2");
  EXPECT_EQ(arithmetic_error([] {
              make_op(Node{"n", "Add", "", {"a", ""}, {"o"}, {}}, 17);
            }),
            "Add node 'n': input 1 is absent but required");
}

TEST(Where, ChoosesWithBroadcastingAndGradients) {
  const torch::Tensor condition = torch::tensor({true, false}).reshape({2, 1});
  const torch::Tensor x = torch::tensor({1.0, 2.0}, torch::kDouble).requires_grad_();
  const torch::Tensor y = torch::tensor(9.0f);
  const torch::Tensor z = run_arithmetic("Where", {condition, x, y}, {}, 9)[0];
  EXPECT_TRUE(torch::equal(z, torch::tensor({{1.0, 2.0}, {9.0, 9.0}}, torch::kDouble)));
  z.sum().backward();
  EXPECT_TRUE(torch::equal(x.grad(), torch::ones({2}, torch::kDouble)));
  EXPECT_TRUE(torch::equal(
      run_arithmetic("Where", {condition.flatten(), integers({1, 2}), integers({3, 4})})[0],
      integers({1, 4})));
  EXPECT_EQ(arithmetic_error([&] {
              run_arithmetic("Where", {x, x, x});
            }),
            "Where node 'n': condition is Double, expected Bool");
  EXPECT_EQ(arithmetic_error([&] {
              run_arithmetic("Where", {torch::ones({3}, torch::kBool), x, y});
            }),
            "Where node 'n': shapes [3] and [2] do not broadcast");
}

TEST(Compare, TakesIntegersAndTruthValues) {
  EXPECT_TRUE(torch::equal(run_arithmetic("Equal", {integers({1, 2}), integers({1, 3})})[0],
                           torch::tensor({true, false})));
  const torch::Tensor truth = torch::tensor({true, false});
  EXPECT_TRUE(
      torch::equal(run_arithmetic("Equal", {truth, truth})[0], torch::tensor({true, true})));
  EXPECT_TRUE(torch::equal(run_arithmetic("Less", {integers({1, 2}), integers({2})})[0],
                           torch::tensor({true, false})));
}

TEST(ArgMax, PicksTheFirstOrTheLast) {
  const torch::Tensor x = torch::tensor({{1.0, 5.0, 5.0}, {7.0, 2.0, 7.0}}, torch::kDouble);
  EXPECT_TRUE(torch::equal(run_arithmetic("ArgMax", {x})[0], integers({1, 0, 1}).reshape({1, 3})));
  const Attributes last_axis = {{"axis", int64_t{-1}}, {"keepdims", int64_t{0}}};
  EXPECT_TRUE(torch::equal(run_arithmetic("ArgMax", {x}, last_axis, 11)[0], integers({1, 0})));
  Attributes last_index = last_axis;
  last_index["select_last_index"] = int64_t{1};
  EXPECT_TRUE(torch::equal(run_arithmetic("ArgMax", {x}, last_index, 12)[0], integers({2, 2})));
  EXPECT_EQ(arithmetic_error([&] { run_arithmetic("ArgMax", {x}, last_index, 11); }),
            "ArgMax node 'n': attribute 'select_last_index' is not known for ArgMax at opset 11");
  EXPECT_EQ(arithmetic_error([&] {
              run_arithmetic("ArgMax", {x}, {{"axis", int64_t{2}}});
            }),
            "ArgMax node 'n': axis 2 is outside a tensor of rank 2");
  EXPECT_EQ(arithmetic_error([&] {
              run_arithmetic("ArgMax", {torch::zeros({0, 2})});
            }),
            "ArgMax node 'n': axis 0 of [0, 2] is empty");
}

TEST(Bits, AreCombinedAndShifted) {
  const torch::Tensor a = integers({12, -5, 7}), b = integers({10, 3, -1});
  EXPECT_TRUE(torch::equal(run_arithmetic("BitwiseAnd", {a, b}, {}, 18)[0], integers({8, 3, 7})));
  EXPECT_TRUE(torch::equal(run_arithmetic("BitwiseOr", {a, b}, {}, 18)[0], integers({14, -5, -1})));
  EXPECT_TRUE(torch::equal(run_arithmetic("BitwiseXor", {a, b}, {}, 18)[0], integers({6, -8, -8})));
  EXPECT_TRUE(torch::equal(run_arithmetic("BitwiseNot", {a}, {}, 18)[0], integers({-13, 4, -8})));
  const torch::Tensor bytes = torch::tensor({200, 3, 255}, torch::kByte);
  const torch::Tensor by = torch::tensor({1, 4, 9}, torch::kByte);
  EXPECT_TRUE(torch::equal(
      run_arithmetic("BitShift", {bytes, by}, {{"direction", std::string("LEFT")}}, 11)[0],
      torch::tensor({144, 48, 0}, torch::kByte)));
  EXPECT_TRUE(torch::equal(
      run_arithmetic("BitShift", {bytes, by}, {{"direction", std::string("RIGHT")}}, 11)[0],
      torch::tensor({100, 0, 0}, torch::kByte)));
  EXPECT_EQ(arithmetic_error([&] {
              run_arithmetic("BitwiseAnd", {torch::rand(2), a}, {}, 18);
            }),
            "BitwiseAnd node 'n': input is Float, expected integers");
  EXPECT_EQ(arithmetic_error([&] {
              run_arithmetic("BitShift", {bytes, by}, {}, 11);
            }),
            "BitShift node 'n': attribute 'direction' is '', expected 'LEFT' or 'RIGHT'");
}

}  // namespace
}  // namespace fcp
