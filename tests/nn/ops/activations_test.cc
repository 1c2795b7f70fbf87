// Activations, other functions of one number, and Cast: values against the formulas of the ONNX
// operator definitions in double precision, gradients against differences, messages for bad nodes.
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/base/special_numbers.h"
#include "fcp/nn/ops/op.h"

namespace fcp {
namespace {

using Attributes = std::map<std::string, Attribute>;

Node activation_node(const std::string& op, size_t inputs, const Attributes& attributes = {},
                     size_t outputs = 1) {
  Node node{"n", op, "", {}, {}, attributes};
  for (size_t i = 0; i < inputs; ++i) node.inputs.push_back(concat("i", i));
  for (size_t i = 0; i < outputs; ++i) node.outputs.push_back(concat("o", i));
  return node;
}

Tensors run_activation(const std::string& op, const Tensors& inputs,
                       const Attributes& attributes = {}, int64_t opset = 17, size_t outputs = 1) {
  return make_op(activation_node(op, inputs.size(), attributes, outputs), opset)->forward(inputs);
}

std::string activation_error(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

double bounded(double x) { return std::fmax(0, std::fmin(1, x)); }

struct Formula {
  std::string op;
  Attributes attributes;
  std::function<double(double)> value;
  int64_t opset = 17;
  bool positive_only = false;
};

std::vector<Formula> formulas() {
  const double leak = 0.01f, slope = 0.2f, alpha = 1.67326319217681884765625,
               gamma = 1.05070102214813232421875;
  const auto elu = [](double x, double a) { return x > 0 ? x : a * (std::exp(x) - 1); };
  return {
      {"Relu", {}, [](double x) { return std::fmax(x, 0); }},
      {"LeakyRelu", {}, [=](double x) { return x < 0 ? leak * x : x; }},
      {"LeakyRelu", {{"alpha", 0.25f}}, [](double x) { return x < 0 ? 0.25 * x : x; }, 9},
      {"Elu", {}, [=](double x) { return elu(x, 1); }},
      {"Elu", {{"alpha", 1.5f}}, [=](double x) { return elu(x, 1.5); }},
      {"Selu", {}, [=](double x) { return gamma * elu(x, alpha); }},
      {"Selu", {{"alpha", 2.0f}, {"gamma", 3.0f}}, [=](double x) { return 3 * elu(x, 2); }},
      {"Celu", {}, [=](double x) { return elu(x, 1); }},
      {"Celu",
       {{"alpha", 2.0f}},
       [](double x) { return std::fmax(0, x) + std::fmin(0, 2 * (std::exp(x / 2) - 1)); }},
      {"Sigmoid", {}, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"HardSigmoid", {}, [=](double x) { return bounded(slope * x + 0.5); }},
      {"HardSigmoid",
       {{"alpha", 0.5f}, {"beta", 0.25f}},
       [](double x) { return bounded(0.5 * x + 0.25); }},
      {"HardSwish", {}, [](double x) { return x * bounded(x / 6 + 0.5); }},
      {"Tanh", {}, [](double x) { return std::tanh(x); }},
      {"Softplus", {}, [](double x) { return std::log1p(std::exp(x)); }},
      {"Gelu", {}, [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }, 20},
      {"Gelu",
       {{"approximate", std::string("tanh")}},
       [](double x) {
         return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
       },
       20},
      {"Clip",
       {{"min", -0.5f}, {"max", 2.0f}},
       [](double x) { return std::fmin(std::fmax(x, -0.5), 2); },
       10},
      {"Clip", {{"min", -0.5f}}, [](double x) { return std::fmax(x, -0.5); }, 10},
      {"Clip", {{"max", 0.5f}}, [](double x) { return std::fmin(x, 0.5); }, 10},
      {"Clip", {}, [](double x) { return x; }},
      {"Dropout", {{"ratio", 0.5f}}, [](double x) { return x; }, 10},
      {"Dropout", {{"seed", int64_t{3}}}, [](double x) { return x; }, 13},
      {"Swish", {}, [](double x) { return x / (1 + std::exp(-x)); }, 24},
      {"Swish", {{"alpha", 0.5f}}, [](double x) { return x / (1 + std::exp(-x / 2)); }, 24},
      {"Swish", {{"alpha", -1.0f}}, [](double x) { return x / (1 + std::exp(x)); }, 24},
      {"Erf", {}, [](double x) { return std::erf(x); }},
      {"Exp", {}, [](double x) { return std::exp(x); }},
      {"Log", {}, [](double x) { return std::log(x); }, 17, true},
      {"Sqrt", {}, [](double x) { return std::sqrt(x); }, 17, true},
      {"Reciprocal", {}, [](double x) { return 1 / x; }, 17, true},
      {"Abs", {}, [](double x) { return std::fabs(x); }},
      {"Neg", {}, [](double x) { return -x; }},
      {"Identity", {}, [](double x) { return x; }},
  };
}

// Points away from every kink (0, ±0.5, ±2, ±2.5, ±3), far ones, and ones beyond 20 and 40 where
// Softplus must not change its formula visibly.
torch::Tensor activation_points(const Formula& formula, torch::ScalarType type) {
  std::vector<double> points = {0.01, 0.3, 0.7, 1.3, 2.2, 2.7, 3.3, 5.5, 17.3, 21.7, 30.1, 45.9};
  const size_t count = points.size();
  for (size_t i = 0; !formula.positive_only && i < count; ++i) points.push_back(-points[i]);
  return torch::tensor(points, torch::kDouble).to(type).reshape({2, -1});
}

TEST(Activations, FollowTheirFormulas) {
  for (const Formula& formula : formulas()) {
    for (const auto type : {torch::kDouble, torch::kFloat}) {
      const torch::Tensor x = activation_points(formula, type);
      const torch::Tensor y = run_activation(formula.op, {x}, formula.attributes, formula.opset)[0];
      ASSERT_EQ(y.scalar_type(), type) << formula.op;
      ASSERT_EQ(y.sizes(), x.sizes()) << formula.op;
      const double tolerance = type == torch::kDouble ? 1e-13 : 2e-6;
      for (int64_t i = 0; i < x.numel(); ++i) {
        const double expected = formula.value(x.flatten()[i].item<double>());
        EXPECT_NEAR(y.flatten()[i].item<double>(), expected,
                    tolerance * std::fmax(1, std::fabs(expected)))
            << formula.op << " at " << x.flatten()[i].item<double>();
      }
    }
  }
}

TEST(Activations, HaveGradients) {
  for (const Formula& formula : formulas()) {
    const torch::Tensor x = activation_points(formula, torch::kDouble).requires_grad_();
    const auto op = make_op(activation_node(formula.op, 1, formula.attributes), formula.opset);
    EXPECT_TRUE(op->differentiable()) << formula.op;
    op->forward({x})[0].sum().backward();
    for (int64_t i = 0; i < x.numel(); ++i) {
      const double at = x.flatten()[i].item<double>(), h = 1e-4;
      const double slope = (formula.value(at + h) - formula.value(at - h)) / (2 * h);
      // A central difference is off by h²/6 times the third derivative, which near 0.01 is large
      // for Reciprocal, and by rounding, ε |f| / h.
      const double slack = 1e-6 * std::fmax(1, std::fabs(formula.value(at))) +
                           3e-4 * (formula.positive_only ? std::fabs(slope) : 0);
      EXPECT_NEAR(x.grad().flatten()[i].item<double>(), slope, slack) << formula.op << " at " << at;
    }
  }
}

TEST(Activations, SoftplusKeepsTheLastBitsAndItsSlopeAtZero) {
  const torch::Tensor x =
      torch::tensor({25.0, 0.0, 1000.0, -1000.0}, torch::kDouble).requires_grad_();
  const torch::Tensor y = run_activation("Softplus", {x})[0];
  EXPECT_DOUBLE_EQ(y[0].item<double>(), 25 + std::log1p(std::exp(-25.0)));
  EXPECT_NE(y[0].item<double>(), 25);
  EXPECT_EQ(y[2].item<double>(), 1000);
  EXPECT_EQ(y[3].item<double>(), 0);
  y.sum().backward();
  EXPECT_DOUBLE_EQ(x.grad()[1].item<double>(), 0.5);
}

TEST(Activations, ReluAndNegTakeIntegers) {
  const torch::Tensor x = torch::tensor({-3, 0, 4}, torch::kInt);
  EXPECT_TRUE(
      torch::equal(run_activation("Relu", {x}, {}, 14)[0], torch::tensor({0, 0, 4}, torch::kInt)));
  EXPECT_TRUE(torch::equal(run_activation("Neg", {x})[0], torch::tensor({3, 0, -4}, torch::kInt)));
  EXPECT_TRUE(torch::equal(run_activation("Abs", {x})[0], torch::tensor({3, 0, 4}, torch::kInt)));
  EXPECT_EQ(activation_error([&] { run_activation("Sigmoid", {x}); }),
            "Sigmoid node 'n': input is Int, expected floating-point numbers");
  EXPECT_EQ(activation_error([&] { run_activation("Elu", {x}); }),
            "Elu node 'n': input is Int, expected floating-point numbers");
  EXPECT_EQ(activation_error([&] { run_activation("Neg", {x > 0}); }),
            "Neg node 'n': input is Bool, expected numbers");
}

TEST(PRelu, BroadcastsFromTheLastDimension) {
  const torch::Tensor x = torch::arange(12, torch::kDouble).reshape({1, 2, 2, 3}) - 6;
  const torch::Tensor across = torch::tensor({0.1, 0.2, 0.3}, torch::kDouble);  // not per channel
  const torch::Tensor channel = torch::tensor({0.5, 0.25}, torch::kDouble).reshape({2, 1, 1});
  const torch::Tensor y = run_activation("PRelu", {x, across})[0];
  const torch::Tensor z = run_activation("PRelu", {x, channel}, {}, 9)[0];
  for (int64_t c = 0; c < 2; ++c) {
    for (int64_t i = 0; i < 2; ++i) {
      for (int64_t j = 0; j < 3; ++j) {
        const double at = x[0][c][i][j].item<double>();
        const double s = across[j].item<double>(), t = channel[c][0][0].item<double>();
        EXPECT_DOUBLE_EQ((y[0][c][i][j].item<double>()), at < 0 ? s * at : at);
        EXPECT_DOUBLE_EQ((z[0][c][i][j].item<double>()), at < 0 ? t * at : at);
      }
    }
  }
}

TEST(PRelu, HasGradients) {
  const torch::Tensor x = torch::tensor({-2.0, 3.0}, torch::kDouble).requires_grad_();
  const torch::Tensor slope = torch::tensor({0.5}, torch::kDouble);
  run_activation("PRelu", {x, slope})[0].sum().backward();
  EXPECT_TRUE(torch::equal(x.grad(), torch::tensor({0.5, 1.0}, torch::kDouble)));
}

TEST(PRelu, RefusesASlopeThatDoesNotFit) {
  const torch::Tensor x = torch::zeros({2, 3});
  EXPECT_EQ(activation_error([&] {
              run_activation("PRelu", {x, torch::zeros({2})});
            }),
            "PRelu node 'n': shapes [2, 3] and [2] do not broadcast");
  EXPECT_EQ(activation_error([&] {
              run_activation("PRelu", {x, torch::zeros({1, 2, 3})});
            }),
            "PRelu node 'n': slope of shape [1, 2, 3] does not broadcast to input of [2, 3]");
  EXPECT_EQ(activation_error([&] { make_op(activation_node("PRelu", 1), 17); }),
            "PRelu node 'n': has 1 inputs, expected 2");
}

TEST(Clip, TakesItsBoundsAsInputsSinceOpset11) {
  const torch::Tensor x = torch::tensor({-4.0, 0.5, 4.0}, torch::kDouble).requires_grad_();
  const torch::Tensor low = torch::tensor(-1.0f), high = torch::tensor({2.0f}), none;
  const torch::Tensor both = run_activation("Clip", {x, low, high}, {}, 11)[0];
  EXPECT_TRUE(torch::equal(both, torch::tensor({-1.0, 0.5, 2.0}, torch::kDouble)));
  both.sum().backward();
  EXPECT_TRUE(torch::equal(x.grad(), torch::tensor({0.0, 1.0, 0.0}, torch::kDouble)));
  EXPECT_TRUE(torch::equal(run_activation("Clip", {x, low})[0],
                           torch::tensor({-1.0, 0.5, 4.0}, torch::kDouble)));
  EXPECT_TRUE(torch::equal(run_activation("Clip", {x, none, high})[0],
                           torch::tensor({-4.0, 0.5, 2.0}, torch::kDouble)));
  EXPECT_TRUE(torch::equal(run_activation("Clip", {x, none, none})[0], x));
}

TEST(Clip, LetsTheUpperBoundWinAndTakesIntegers) {
  const torch::Tensor x = torch::tensor({-4, 0, 4}, torch::kLong);
  const torch::Tensor one = torch::tensor(1, torch::kLong), three = torch::tensor(3, torch::kLong);
  EXPECT_TRUE(torch::equal(run_activation("Clip", {x, one, three})[0],
                           torch::tensor({1, 1, 3}, torch::kLong)));
  EXPECT_TRUE(torch::equal(run_activation("Clip", {x, three, one})[0],
                           torch::tensor({1, 1, 1}, torch::kLong)));
}

TEST(Clip, RefusesBadBounds) {
  const torch::Tensor x = torch::zeros({3});
  EXPECT_EQ(activation_error([&] {
              run_activation("Clip", {x, torch::zeros({2})});
            }),
            "Clip node 'n': min has shape [2], expected one number");
  EXPECT_EQ(activation_error([&] {
              run_activation("Clip", {x, x[0], torch::tensor(1, torch::kLong)});
            }),
            "Clip node 'n': max is Long but the input is Float");
  EXPECT_EQ(activation_error([&] {
              make_op(activation_node("Clip", 1, {{"min", 0.0f}}), 11);
            }),
            "Clip node 'n': attribute 'min' is not known for Clip at opset 11");
  EXPECT_EQ(activation_error([&] { make_op(activation_node("Clip", 2), 10); }),
            "Clip node 'n': has 2 inputs, expected 1");
}

TEST(Dropout, IsTheIdentityWithAFullMask) {
  const torch::Tensor x = torch::rand({2, 3}), ratio = torch::tensor(0.5f);
  for (const int64_t opset : {9, 10, 12, 13}) {
    const Tensors outputs = run_activation("Dropout", {x}, {}, opset, 2);
    ASSERT_EQ(outputs.size(), 2u);
    EXPECT_TRUE(torch::equal(outputs[0], x));
    EXPECT_TRUE(torch::equal(outputs[1], torch::ones({2, 3}, torch::kBool)));
  }
  EXPECT_TRUE(
      torch::equal(run_activation("Dropout", {x, ratio, torch::tensor(false)}, {}, 12)[0], x));
  EXPECT_TRUE(torch::equal(run_activation("Dropout", {x, ratio, {}}, {}, 12)[0], x));
}

TEST(Dropout, InTrainingModeIsTheIdentityWhereItDropsNothing) {
  const torch::Tensor x = torch::rand({2, 3}), yes = torch::tensor(true);
  const Tensors outputs = run_activation("Dropout", {x, torch::tensor(0.0f), yes}, {}, 13, 2);
  EXPECT_TRUE(torch::equal(outputs[0], x));
  EXPECT_TRUE(torch::equal(outputs[1], torch::ones({2, 3}, torch::kBool)));
  for (const torch::Tensor& ratio : {torch::tensor(0.5f), torch::Tensor()}) {
    EXPECT_EQ(activation_error([&] {
                run_activation("Dropout", {x, ratio, yes}, {}, 12);
              }),
              "Dropout node 'n': is in training mode and drops numbers at random, so that a row "
              "would get another answer each time; export the network for inference (in PyTorch, "
              "call model.eval() first)");
  }
}

TEST(RandomNodes, AreRefusedWithTheReason) {
  for (const char* op : {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike",
                         "Multinomial", "Bernoulli"}) {
    EXPECT_EQ(activation_error([&] { make_op(activation_node(op, 1, {}), 17); }),
              concat(op,
                     " node 'n': draws random numbers, so that a row would get another answer "
                     "each time; export a network whose answer is a function of its input (in "
                     "PyTorch, call model.eval() first)"));
  }
}

TEST(Activations, RefuseBadAttributes) {
  const auto error = [](const std::string& op, const Attributes& attributes, int64_t opset = 20) {
    return activation_error([&] { make_op(activation_node(op, 1, attributes), opset); });
  };
  EXPECT_EQ(error("Gelu", {{"approximate", std::string("fast")}}),
            "Gelu node 'n': attribute 'approximate' is 'fast', expected 'none' or 'tanh'");
  EXPECT_EQ(error("Celu", {{"alpha", 0.0f}}), "Celu node 'n': attribute 'alpha' is 0, and divides");
  EXPECT_EQ(error("Elu", {{"alpha", int64_t{1}}}),
            "Elu node 'n': attribute 'alpha' must be a number");
  EXPECT_EQ(error("Relu", {{"alpha", 1.0f}}),
            "Relu node 'n': attribute 'alpha' is not known for Relu at opset 20");
  EXPECT_EQ(error("Cast", {}), "Cast node 'n': attribute 'to' is missing");
  EXPECT_THAT(
      error("Cast", {{"to", int64_t{8}}}),
      testing::StartsWith("Cast node 'n': names the ONNX type number 8, expected float (1)"));
  EXPECT_EQ(error("Cast", {{"to", int64_t{1}}, {"saturate", int64_t{1}}}, 13),
            "Cast node 'n': attribute 'saturate' is not known for Cast at opset 13");
}

TEST(Cast, ConvertsToEveryType) {
  const torch::Tensor x = torch::tensor({-1.75, 0.0, 2.5}, torch::kDouble);
  const std::map<int64_t, torch::ScalarType> types = {
      {1, torch::kFloat}, {3, torch::kChar},  {5, torch::kShort},   {6, torch::kInt},
      {7, torch::kLong},  {10, torch::kHalf}, {11, torch::kDouble}, {16, torch::kBFloat16}};
  for (const auto& [number, type] : types) {
    const auto op = make_op(activation_node("Cast", 1, {{"to", number}}), 13);
    const torch::Tensor y = op->forward({x})[0];
    EXPECT_EQ(y.scalar_type(), type);
    EXPECT_EQ(op->differentiable(), torch::isFloatingType(type));
    const bool whole = !torch::isFloatingType(type);
    EXPECT_TRUE(torch::equal(y.to(torch::kDouble),
                             whole ? torch::tensor({-1.0, 0.0, 2.0}, torch::kDouble) : x))
        << type;
  }
  EXPECT_TRUE(torch::equal(
      run_activation("Cast", {x}, {{"to", int64_t{9}}, {"saturate", int64_t{1}}}, 19)[0],
      torch::tensor({true, false, true})));
  EXPECT_TRUE(torch::equal(run_activation("Cast", {x.abs()}, {{"to", int64_t{2}}}, 9)[0],
                           torch::tensor({1, 0, 2}, torch::kByte)));
}

// Types that libtorch lacks: each number becomes one that the type has.
TEST(Cast, RoundsToNarrowTypes) {
  const auto cast = [](std::vector<double> numbers, int64_t to, int64_t saturate = 1) {
    const torch::Tensor x = torch::tensor(numbers, torch::kDouble);
    return run_activation("Cast", {x}, {{"to", to}, {"saturate", saturate}}, 23)[0].to(
        torch::kDouble);
  };
  const auto doubles = [](std::vector<double> numbers) {
    return torch::tensor(numbers, torch::kDouble);
  };
  // Halves go to the even neighbour: 17 between 16 and 18, 19 between 18 and 20.
  EXPECT_TRUE(torch::equal(cast({17, 19, -1.06, 500, kInfinity, 0.001}, 17),
                           doubles({16, 20, -1, 448, 448, 0.001953125})));
  EXPECT_TRUE(cast({500, kInfinity}, 17, 0).isnan().all().item<bool>());
  EXPECT_TRUE(torch::equal(cast({300, -0.0004}, 18), doubles({240, 0})));
  EXPECT_TRUE(cast({kInfinity}, 18).isnan().all().item<bool>());
  EXPECT_TRUE(
      torch::equal(cast({70000, -kInfinity, 1.2, 9}, 19), doubles({57344, -57344, 1.25, 8})));
  EXPECT_TRUE(torch::equal(cast({70000, -kInfinity}, 19, 0), doubles({kInfinity, -kInfinity})));
  EXPECT_TRUE(torch::equal(cast({0.3, 2.5, 100, -5}, 23), doubles({0.5, 2, 6, -4})));
  EXPECT_TRUE(torch::equal(cast({1, 3, 0.75}, 24), doubles({1, 4, 1})));
  EXPECT_TRUE(torch::equal(cast({-20, -7.9, 3.9, 20}, 22), doubles({-8, -7, 3, 7})));
  EXPECT_TRUE(torch::equal(cast({-2, 3.9, 20}, 21), doubles({0, 3, 15})));
  EXPECT_TRUE(torch::equal(cast({40000.5, 70000, -1}, 4), doubles({40000, 65535, 0})));
  const torch::Tensor whole = torch::tensor({-1, 70000, 9}, torch::kLong);
  EXPECT_TRUE(torch::equal(run_activation("Cast", {whole}, {{"to", int64_t{4}}})[0],
                           torch::tensor({65535, 4464, 9}, torch::kInt)));
  EXPECT_TRUE(torch::equal(run_activation("Cast", {whole}, {{"to", int64_t{22}}}, 21)[0],
                           torch::tensor({-1, 0, -7}, torch::kChar)));
}

}  // namespace
}  // namespace fcp
