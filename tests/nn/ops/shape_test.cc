// Operators that reshape, cut, join, pad and repeat: literals, slow loops after the ONNX operator
// definitions, the differences between operator sets, and messages for bad nodes.
#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/nn/ops/op.h"
#include "fcp/nn/ops/shared.h"

namespace fcp {
namespace {

using Attributes = std::map<std::string, Attribute>;
using Integers = std::vector<int64_t>;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

Tensors run_shape(const std::string& op, const Tensors& inputs, const Attributes& attributes = {},
                  int64_t opset = 17, size_t outputs = 1) {
  Node node{"n", op, "", {}, {}, attributes};
  for (const torch::Tensor& input : inputs) node.inputs.push_back(input.defined() ? "i" : "");
  for (size_t i = 0; i < outputs; ++i) node.outputs.push_back(concat("o", i));
  return make_op(node, opset)->forward(inputs);
}

std::string shape_error(const std::string& op, const Tensors& inputs,
                        const Attributes& attributes = {}, int64_t opset = 17, size_t outputs = 1) {
  try {
    run_shape(op, inputs, attributes, opset, outputs);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

torch::Tensor list(const Integers& values) { return torch::tensor(values, torch::kLong); }

torch::Tensor counting(const Integers& shape) {
  int64_t count = 1;
  for (const int64_t dimension : shape) count *= dimension;
  return torch::arange(count, torch::kDouble).reshape(shape);
}

Integers shape_of(const torch::Tensor& x) { return x.sizes().vec(); }

TEST(Flatten, MakesAMatrix) {
  const torch::Tensor x = counting({2, 3, 4});
  const auto flat = [&](int64_t axis) { return run_shape("Flatten", {x}, {{"axis", axis}})[0]; };
  EXPECT_EQ(shape_of(run_shape("Flatten", {x})[0]), (Integers{2, 12}));
  EXPECT_EQ(shape_of(flat(0)), (Integers{1, 24}));
  EXPECT_EQ(shape_of(flat(2)), (Integers{6, 4}));
  EXPECT_EQ(shape_of(flat(3)), (Integers{24, 1}));
  EXPECT_EQ(shape_of(flat(-1)), (Integers{6, 4}));
  EXPECT_EQ(shape_of(flat(-3)), (Integers{1, 24}));
  EXPECT_TRUE(torch::equal(flat(2).flatten(), x.flatten()));
  EXPECT_EQ(shape_of(run_shape("Flatten", {torch::zeros({0, 3, 2})})[0]), (Integers{0, 6}));
  EXPECT_EQ(shape_error("Flatten", {x}, {{"axis", int64_t{4}}}),
            "Flatten node 'n': axis 4 is outside a tensor of rank 3");
}

TEST(Reshape, CopiesAndInfersDimensions) {
  const torch::Tensor x = counting({2, 3, 4});
  const auto shape = [&](const Integers& to, const Attributes& attributes = {}) {
    const torch::Tensor y = run_shape("Reshape", {x, list(to)}, attributes)[0];
    EXPECT_TRUE(torch::equal(y.flatten(), x.flatten()));
    return shape_of(y);
  };
  EXPECT_EQ(shape({4, 6}), (Integers{4, 6}));
  EXPECT_EQ(shape({0, -1}), (Integers{2, 12}));
  EXPECT_EQ(shape({-1, 0}), (Integers{8, 3}));
  EXPECT_EQ(shape({-1}), (Integers{24}));
  const torch::Tensor none = torch::zeros({0, 4}), one = torch::ones({1, 1});
  EXPECT_EQ(shape_of(run_shape("Reshape", {none, list({5, 0})}, {{"allowzero", int64_t{1}}})[0]),
            (Integers{5, 0}));
  EXPECT_EQ(shape_of(run_shape("Reshape", {none, list({0, 2, 2})})[0]), (Integers{0, 2, 2}));
  EXPECT_EQ(shape_of(run_shape("Reshape", {one, list({})})[0]), Integers{});
}

TEST(Reshape, RefusesShapesThatDoNotFit) {
  const torch::Tensor x = counting({2, 3});
  const auto error = [&](const Integers& to) { return shape_error("Reshape", {x, list(to)}); };
  EXPECT_EQ(error({4}), "Reshape node 'n': cannot reshape [2, 3] to [4]");
  EXPECT_EQ(error({-1, 4}), "Reshape node 'n': cannot reshape [2, 3] to [-1, 4]");
  EXPECT_EQ(error({-1, -1}), "Reshape node 'n': cannot reshape [2, 3] to [-1, -1]");
  EXPECT_EQ(error({-2, -3}), "Reshape node 'n': cannot reshape [2, 3] to [-2, -3]");
  EXPECT_EQ(error({2, 3, 0}), "Reshape node 'n': cannot reshape [2, 3] to [2, 3, 0]");
  EXPECT_EQ(error({int64_t{1} << 62, 4, 6}),
            "Reshape node 'n': cannot reshape [2, 3] to [4611686018427387904, 4, 6]");
  EXPECT_EQ(shape_error("Reshape", {torch::zeros({0}), list({0, -1})}, {{"allowzero", int64_t{1}}}),
            "Reshape node 'n': cannot reshape [0] to [0, -1]");
  EXPECT_EQ(shape_error("Reshape", {x, torch::ones({1})}),
            "Reshape node 'n': shape must be integers in one dimension, found Float of rank 1");
  EXPECT_EQ(shape_error("Reshape", {x, list({6})}, {{"allowzero", int64_t{0}}}, 13),
            "Reshape node 'n': attribute 'allowzero' is not known for Reshape at opset 13");
}

TEST(Transpose, ReversesOrPermutes) {
  const torch::Tensor x = counting({2, 3, 4});
  const torch::Tensor y = run_shape("Transpose", {x})[0];
  const torch::Tensor z = run_shape("Transpose", {x}, {{"perm", Integers{1, 2, 0}}})[0];
  ASSERT_EQ(shape_of(y), (Integers{4, 3, 2}));
  ASSERT_EQ(shape_of(z), (Integers{3, 4, 2}));
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t j = 0; j < 3; ++j) {
      for (int64_t k = 0; k < 4; ++k) {
        EXPECT_EQ(y[k][j][i].item<double>(), x[i][j][k].item<double>());
        EXPECT_EQ(z[j][k][i].item<double>(), x[i][j][k].item<double>());
      }
    }
  }
  EXPECT_EQ(shape_error("Transpose", {x}, {{"perm", Integers{0, 1, 1}}}),
            "Transpose node 'n': perm [0, 1, 1] is not a permutation");
  EXPECT_EQ(shape_error("Transpose", {x}, {{"perm", Integers{1, 0}}}),
            "Transpose node 'n': perm [1, 0] does not fit an input of shape [2, 3, 4]");
}

TEST(Squeeze, TakesAxesByAttributeThenByInput) {
  const torch::Tensor x = counting({1, 3, 1, 2});
  const Attributes axes = {{"axes", Integers{-2, 0}}};
  EXPECT_EQ(shape_of(run_shape("Squeeze", {x})[0]), (Integers{3, 2}));
  EXPECT_EQ(shape_of(run_shape("Squeeze", {x}, {}, 11)[0]), (Integers{3, 2}));
  EXPECT_EQ(shape_of(run_shape("Squeeze", {x}, axes, 11)[0]), (Integers{3, 2}));
  EXPECT_EQ(shape_of(run_shape("Squeeze", {x, list({2})})[0]), (Integers{1, 3, 2}));
  EXPECT_EQ(shape_error("Squeeze", {x}, axes, 13),
            "Squeeze node 'n': attribute 'axes' is not known for Squeeze at opset 13");
  EXPECT_EQ(shape_error("Squeeze", {x, list({0, -4})}), "Squeeze node 'n': axis 0 is given twice");
  EXPECT_EQ(shape_error("Squeeze", {x, list({0, 1})}),
            "Squeeze node 'n': squeezes axis 1 of [1, 3, 1, 2], which is not 1");
}

TEST(Unsqueeze, CountsAxesInTheOutput) {
  const torch::Tensor x = counting({3, 2});
  EXPECT_EQ(shape_of(run_shape("Unsqueeze", {x}, {{"axes", Integers{3, 0}}}, 11)[0]),
            (Integers{1, 3, 2, 1}));
  EXPECT_EQ(shape_of(run_shape("Unsqueeze", {x, list({-1, 1})})[0]), (Integers{3, 1, 2, 1}));
  EXPECT_EQ(shape_error("Unsqueeze", {x, list({0, -4})}),
            "Unsqueeze node 'n': axis 0 is given twice");
  EXPECT_EQ(shape_error("Unsqueeze", {x, list({3})}),
            "Unsqueeze node 'n': axis 3 is outside a tensor of rank 3");
  EXPECT_EQ(shape_error("Unsqueeze", {x}, {}, 11),
            "Unsqueeze node 'n': attribute 'axes' is missing");
}

TEST(Shape, GivesARangeOfTheDimensions) {
  const torch::Tensor x = torch::zeros({2, 3, 4});
  const auto range = [&](int64_t start, int64_t end) {
    return run_shape("Shape", {x}, {{"start", start}, {"end", end}}, 15)[0];
  };
  EXPECT_TRUE(torch::equal(run_shape("Shape", {x}, {}, 9)[0], list({2, 3, 4})));
  EXPECT_TRUE(torch::equal(range(-1, 3), list({4})));
  EXPECT_TRUE(torch::equal(range(0, -1), list({2, 3})));
  EXPECT_TRUE(torch::equal(range(-9, 9), list({2, 3, 4})));
  EXPECT_TRUE(torch::equal(range(2, 1), list({})));
  EXPECT_EQ(shape_error("Shape", {x}, {{"start", int64_t{1}}}, 14),
            "Shape node 'n': attribute 'start' is not known for Shape at opset 14");
  EXPECT_FALSE(make_op(Node{"n", "Shape", "", {"x"}, {"y"}, {}}, 15)->differentiable());
}

TEST(DepthToSpace, FollowsBothModes) {
  const torch::Tensor x = counting({2, 8, 2, 3});
  for (const std::string mode : {"DCR", "CRD"}) {
    const torch::Tensor y =
        run_shape("DepthToSpace", {x}, {{"blocksize", int64_t{2}}, {"mode", mode}})[0];
    ASSERT_EQ(shape_of(y), (Integers{2, 2, 4, 6}));
    for (int64_t n = 0; n < 2; ++n) {
      for (int64_t c = 0; c < 2; ++c) {
        for (int64_t i = 0; i < 4; ++i) {
          for (int64_t j = 0; j < 6; ++j) {
            const int64_t in_block = (i % 2) * 2 + j % 2;
            const int64_t channel = mode == "DCR" ? in_block * 2 + c : c * 4 + in_block;
            EXPECT_EQ(y[n][c][i][j].item<double>(), x[n][channel][i / 2][j / 2].item<double>());
          }
        }
      }
    }
  }
  EXPECT_EQ(shape_error("DepthToSpace", {x}, {{"blocksize", int64_t{3}}}),
            "DepthToSpace node 'n': input of shape [2, 8, 2, 3], expected [N, C, H, W] with C a "
            "multiple of 3 squared");
  EXPECT_EQ(shape_error("DepthToSpace", {x}, {{"blocksize", kMost}}),
            "DepthToSpace node 'n': input of shape [2, 8, 2, 3], expected [N, C, H, W] with C a "
            "multiple of 9223372036854775807 squared");
  EXPECT_EQ(shape_error("DepthToSpace", {x}),
            "DepthToSpace node 'n': attribute 'blocksize' is 0, expected at least 1");
}

TEST(Concat, JoinsAlongAnAxis) {
  const torch::Tensor a = counting({2, 1}), b = counting({2, 2}) + 10;
  EXPECT_TRUE(
      torch::equal(run_shape("Concat", {a, b, a}, {{"axis", int64_t{-1}}})[0],
                   torch::tensor({{0., 10., 11., 0.}, {1., 12., 13., 1.}}, torch::kDouble)));
  EXPECT_TRUE(torch::equal(run_shape("Concat", {list({2}), list({-1})}, {{"axis", int64_t{0}}})[0],
                           list({2, -1})));
  EXPECT_EQ(shape_error("Concat", {a, b}, {{"axis", int64_t{0}}}),
            "Concat node 'n': cannot join shapes [2, 1] and [2, 2] along axis 0");
  // libtorch would skip an empty one-dimensional tensor whatever the other shapes are.
  EXPECT_EQ(shape_error("Concat", {a, torch::zeros({0}, torch::kDouble)}, {{"axis", int64_t{0}}}),
            "Concat node 'n': cannot join shapes [2, 1] and [0] along axis 0");
  EXPECT_EQ(shape_error("Concat", {a, list({1, 2}).reshape({2, 1})}, {{"axis", int64_t{0}}}),
            "Concat node 'n': inputs are Double and Long, expected one type");
  EXPECT_EQ(shape_error("Concat", {a, b}), "Concat node 'n': attribute 'axis' is missing");
}

TEST(Split, TakesLengthsByAttributeThenByInput) {
  const torch::Tensor x = counting({2, 7});
  const Attributes last = {{"axis", int64_t{-1}}};
  Attributes lengths = last;
  lengths["split"] = Integers{3, 0, 4};
  for (const Tensors& parts : {run_shape("Split", {x}, lengths, 11, 3),
                               run_shape("Split", {x, list({3, 0, 4})}, last, 13, 3),
                               run_shape("Split", {x, list({3, 0, 4})}, last, 18, 3)}) {
    ASSERT_EQ(parts.size(), 3u);
    EXPECT_TRUE(torch::equal(parts[0], x.slice(1, 0, 3)));
    EXPECT_EQ(shape_of(parts[1]), (Integers{2, 0}));
    EXPECT_TRUE(torch::equal(parts[2], x.slice(1, 3, 7)));
  }
  EXPECT_EQ(shape_of(run_shape("Split", {x}, {}, 13, 2)[1]), (Integers{1, 7}));
  EXPECT_EQ(shape_error("Split", {x}, last, 13, 3),
            "Split node 'n': cannot split 7 elements into 3 equal parts");
  EXPECT_EQ(shape_error("Split", {x, list({3, 3})}, last, 13, 2),
            "Split node 'n': split [3, 3] does not divide 7 elements among 2 outputs");
  EXPECT_EQ(shape_error("Split", {x, list({3, 4})}, last, 13, 3),
            "Split node 'n': split [3, 4] does not divide 7 elements among 3 outputs");
  EXPECT_EQ(shape_error("Split", {x, list({-1, 8})}, last, 13, 2),
            "Split node 'n': split [-1, 8] does not divide 7 elements among 2 outputs");
}

TEST(Split, MayBeUnevenSinceOpset18) {
  const torch::Tensor x = counting({7});
  const auto count = [](int64_t n) { return Attributes{{"num_outputs", n}}; };
  const Tensors parts = run_shape("Split", {x}, count(3), 18, 3);
  EXPECT_TRUE(torch::equal(parts[1], x.slice(0, 3, 6)));
  EXPECT_TRUE(torch::equal(parts[2], x.slice(0, 6, 7)));
  EXPECT_EQ(shape_error("Split", {x}, count(2), 18, 3),
            "Split node 'n': attribute 'num_outputs' is 2 but there are 3 outputs");
  EXPECT_EQ(shape_error("Split", {x}, {}, 18, 3),
            "Split node 'n': needs either input 'split' or attribute 'num_outputs', has neither");
  EXPECT_EQ(shape_error("Split", {x, list({3, 4})}, count(2), 18, 2),
            "Split node 'n': needs either input 'split' or attribute 'num_outputs', has both");
  EXPECT_EQ(shape_error("Split", {x}, count(6), 18, 6),
            "Split node 'n': cannot split 7 elements into 6 parts");
}

// The definition, element by element: clamp the start, walk while inside and before the end.
std::vector<double> slow_slice(int64_t size, int64_t start, int64_t end, int64_t step) {
  __int128 from = start < 0 ? __int128{start} + size : __int128{start};
  const __int128 to = end < 0 ? __int128{end} + size : __int128{end};
  from = std::max<__int128>(0, std::min<__int128>(from, step > 0 ? size : size - 1));
  std::vector<double> result;
  for (__int128 i = from; i >= 0 && i < size && (step > 0 ? i < to : i > to); i += step) {
    result.push_back(static_cast<double>(i));
  }
  return result;
}

TEST(Slice, FollowsTheDefinitionForAllRanges) {
  const auto op = make_op(Node{"n", "Slice", "", {"x", "s", "e", "a", "t"}, {"y"}, {}}, 13);
  const Integers positions = {kLeast, -7, -5, -2, -1, 0, 1, 3, 4, 5, 6, kMost};
  const Integers steps = {kLeast, -6, -2, -1, 1, 2, 3, kMost};
  for (const int64_t size : {0, 1, 5}) {
    const torch::Tensor x = torch::arange(size, torch::kDouble);
    for (const int64_t start : positions) {
      for (const int64_t end : positions) {
        for (const int64_t step : steps) {
          const torch::Tensor y =
              op->forward({x, list({start}), list({end}), list({0}), list({step})})[0];
          ASSERT_TRUE(
              torch::equal(y, torch::tensor(slow_slice(size, start, end, step), torch::kDouble)))
              << size << ": " << start << " " << end << " " << step << " gave " << y;
        }
      }
    }
  }
}

TEST(Slice, TakesAttributesThenInputs) {
  const torch::Tensor x = torch::tensor({{1, 2, 3, 4}, {5, 6, 7, 8}});
  const torch::Tensor none;
  const Attributes both = {{"starts", Integers{0, 1}}, {"ends", Integers{-1, 1000}}};
  const Attributes second = {{"starts", Integers{1}}, {"ends", Integers{3}}, {"axes", Integers{1}}};
  const torch::Tensor row = torch::tensor({{2, 3, 4}});
  EXPECT_TRUE(torch::equal(run_shape("Slice", {x}, both, 9)[0], row));
  EXPECT_TRUE(torch::equal(run_shape("Slice", {x}, second, 9)[0], torch::tensor({{2, 3}, {6, 7}})));
  EXPECT_TRUE(
      torch::equal(run_shape("Slice", {x, list({0, 1}), list({-1, 1000})}, {}, 10)[0], row));
  EXPECT_TRUE(
      torch::equal(run_shape("Slice", {x, list({-1}), list({kLeast}), list({-1}), list({-2})})[0],
                   torch::tensor({{4, 2}, {8, 6}})));
  EXPECT_TRUE(torch::equal(run_shape("Slice", {x, list({1}), list({2}), none, list({1})})[0],
                           x.slice(0, 1, 2)));
}

TEST(Slice, RefusesWhatDoesNotFit) {
  const torch::Tensor x = counting({2, 3});
  EXPECT_EQ(shape_error("Slice", {x, list({0}), list({1, 2})}),
            "Slice node 'n': has 1 starts, 2 ends, 1 axes and 1 steps, expected as many of each");
  EXPECT_EQ(shape_error("Slice", {x, list({0}), list({1}), list({0}), list({0})}),
            "Slice node 'n': a step is 0");
  EXPECT_EQ(shape_error("Slice", {x, list({0, 0}), list({1, 1}), list({1, -1})}),
            "Slice node 'n': axis 1 is given twice");
  EXPECT_EQ(shape_error("Slice", {x, list({0}), list({1}), list({2})}),
            "Slice node 'n': axis 2 is outside a tensor of rank 2");
  EXPECT_EQ(shape_error("Slice", {x}, {{"starts", Integers{0}}}, 9),
            "Slice node 'n': attribute 'ends' is missing");
}

TEST(Gather, ReplacesTheAxisByTheIndices) {
  const torch::Tensor x = counting({2, 3, 4});
  const torch::Tensor indices = torch::tensor({{0, -1}, {2, 1}}, torch::kInt);
  const torch::Tensor y = run_shape("Gather", {x, indices}, {{"axis", int64_t{1}}})[0];
  ASSERT_EQ(shape_of(y), (Integers{2, 2, 2, 4}));
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t j = 0; j < 2; ++j) {
      for (int64_t k = 0; k < 2; ++k) {
        const int64_t at = (indices[j][k].item<int64_t>() + 3) % 3;
        EXPECT_TRUE(torch::equal(y[i][j][k], x[i][at]));
      }
    }
  }
  EXPECT_TRUE(torch::equal(run_shape("Gather", {list({5, 6, 7}), list({1})[0]})[0],
                           torch::tensor(6, torch::kLong)));
  EXPECT_EQ(shape_of(run_shape("Gather", {x, list({})}, {{"axis", int64_t{-1}}})[0]),
            (Integers{2, 3, 0}));
  EXPECT_EQ(shape_error("Gather", {x, list({0, 2})}),
            "Gather node 'n': index 2 is outside an axis of 2 elements");
  EXPECT_EQ(shape_error("Gather", {x, list({-3})}),
            "Gather node 'n': index -3 is outside an axis of 2 elements");
  EXPECT_EQ(shape_error("Gather", {x, torch::zeros({1})}),
            "Gather node 'n': indices are Float, expected int32 or int64");
}

TEST(Pad, FollowsEveryMode) {
  const torch::Tensor x = torch::tensor({0.0, 1.0, 2.0}, torch::kDouble);
  const auto pad = [&](const std::string& mode, const Integers& pads) {
    const torch::Tensor y = run_shape("Pad", {x, list(pads)}, {{"mode", mode}}, 19)[0];
    return std::vector<double>(y.data_ptr<double>(), y.data_ptr<double>() + y.numel());
  };
  using Row = std::vector<double>;
  EXPECT_EQ(pad("constant", {2, 1}), (Row{0, 0, 0, 1, 2, 0}));
  EXPECT_EQ(pad("reflect", {2, 1}), (Row{2, 1, 0, 1, 2, 1}));
  EXPECT_EQ(pad("reflect", {6, 5}), (Row{2, 1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1}));
  EXPECT_EQ(pad("edge", {2, 1}), (Row{0, 0, 0, 1, 2, 2}));
  EXPECT_EQ(pad("wrap", {4, 2}), (Row{2, 0, 1, 2, 0, 1, 2, 0, 1}));
  EXPECT_EQ(pad("constant", {-1, 1}), (Row{1, 2, 0}));
  EXPECT_EQ(pad("reflect", {-1, 1}), (Row{1, 2, 1}));
  EXPECT_EQ(pad("edge", {1, -2}), (Row{0, 0}));
  EXPECT_EQ(pad("constant", {-1, -2}), Row{});
}

TEST(Pad, ReadsPadsBySideThenAxis) {
  const torch::Tensor x = torch::tensor({{1.0f, 2.0f}});
  const torch::Tensor nine = torch::tensor(9.0f), none;
  const torch::Tensor expected =
      torch::tensor({{9.f, 1.f, 2.f, 9.f, 9.f}, {9.f, 9.f, 9.f, 9.f, 9.f}});
  const Attributes old = {{"pads", Integers{0, 1, 1, 2}}, {"value", 9.0f}};
  EXPECT_TRUE(torch::equal(run_shape("Pad", {x}, old, 10)[0], expected));
  EXPECT_TRUE(torch::equal(run_shape("Pad", {x, list({0, 1, 1, 2}), nine}, {}, 11)[0], expected));
  EXPECT_TRUE(torch::equal(
      run_shape("Pad", {x, list({1, 0, 2, 1}), nine, list({-1, 0})}, {}, 18)[0], expected));
  EXPECT_TRUE(torch::equal(run_shape("Pad", {x, list({1, 0}), none, list({1})}, {}, 18)[0],
                           torch::tensor({{0.f, 1.f, 2.f}})));
  EXPECT_TRUE(
      torch::equal(run_shape("Pad", {list({1, 2}), list({1, 0}), list({7})})[0], list({7, 1, 2})));
}

TEST(Pad, HasGradientsInEveryMode) {
  const std::map<std::string, std::vector<double>> slopes = {
      {"constant", {1, 1, 1}}, {"reflect", {1, 3, 2}}, {"edge", {3, 1, 2}}, {"wrap", {2, 2, 2}}};
  for (const auto& [mode, slope] : slopes) {  // how often each element appears
    const torch::Tensor x = torch::zeros({3}, torch::kDouble).requires_grad_();
    run_shape("Pad", {x, list({2, 1})}, {{"mode", mode}}, 19)[0].sum().backward();
    EXPECT_TRUE(torch::equal(x.grad(), torch::tensor(slope, torch::kDouble))) << mode;
  }
}

TEST(Pad, RefusesWhatDoesNotFit) {
  const torch::Tensor x = counting({2, 3});
  EXPECT_EQ(shape_error("Pad", {x, list({0, 1})}),
            "Pad node 'n': has 2 pads for 2 axes, expected two for each");
  EXPECT_EQ(shape_error("Pad", {x, list({-2, 0, -1, 0})}),
            "Pad node 'n': pads of -2 and -1 crop more than axis 0 of [2, 3] has");
  EXPECT_EQ(shape_error("Pad", {x, list({0, kMost, 0, 0})}),
            "Pad node 'n': pad 9223372036854775807 is beyond 268435456 elements");
  EXPECT_EQ(shape_error("Pad", {x, list({0, kMaxElements, 0, 0})}),
            "Pad node 'n': asks for a tensor of more than 268435456 elements");
  EXPECT_EQ(shape_error("Pad", {x, list({0, 0, 0, 0})}, {{"mode", std::string("wrap")}}, 18),
            "Pad node 'n': attribute 'mode' is 'wrap', expected constant, reflect or edge");
  EXPECT_EQ(shape_error("Pad", {x, list({0, 0, 0, 0}), torch::zeros({2})}),
            "Pad node 'n': value has shape [2], expected one number");
  EXPECT_EQ(shape_error("Pad", {x, list({0, 0, 0, 0}), list({1})}),
            "Pad node 'n': value is Long but the data is Double");
  EXPECT_EQ(shape_error("Pad", {x, list({1, 1, 0, 0}), {}, list({1, -1})}, {}, 18),
            "Pad node 'n': axis 1 is given twice");
  EXPECT_EQ(shape_error("Pad", {torch::zeros({0}), list({1, 0})}, {{"mode", std::string("edge")}}),
            "Pad node 'n': axis 0 is empty, with nothing to pad from");
  EXPECT_EQ(shape_error("Pad", {x}, {}, 10), "Pad node 'n': attribute 'pads' is missing");
}

TEST(Expand, BroadcastsBothWays) {
  const torch::Tensor x = counting({3, 1}).requires_grad_();
  const torch::Tensor y = run_shape("Expand", {x, list({2, 1, 4})})[0];
  ASSERT_EQ(shape_of(y), (Integers{2, 3, 4}));
  EXPECT_TRUE(torch::equal(y[1].select(1, 3), x.select(1, 0)));
  y.sum().backward();
  EXPECT_TRUE(torch::equal(x.grad(), torch::full({3, 1}, 8.0, torch::kDouble)));
  EXPECT_EQ(shape_of(run_shape("Expand", {x, list({1})})[0]), (Integers{3, 1}));
  EXPECT_EQ(shape_error("Expand", {x, list({2, 1})}),
            "Expand node 'n': shapes [3, 1] and [2, 1] do not broadcast");
  EXPECT_EQ(shape_error("Expand", {x, list({3, -1})}),
            "Expand node 'n': asks for a dimension of -1");
  EXPECT_EQ(shape_error("Expand", {x, list({kMost, 1, kMost})}),
            "Expand node 'n': asks for a tensor of more than 268435456 elements");
}

TEST(Tile, Repeats) {
  const torch::Tensor x = torch::tensor({{1, 2}, {3, 4}});
  EXPECT_TRUE(torch::equal(run_shape("Tile", {x, list({1, 2})})[0],
                           torch::tensor({{1, 2, 1, 2}, {3, 4, 3, 4}})));
  EXPECT_EQ(shape_of(run_shape("Tile", {x, list({3, 0})})[0]), (Integers{6, 0}));
  EXPECT_EQ(shape_error("Tile", {x, list({2})}),
            "Tile node 'n': has 1 repeats for an input of shape [2, 2]");
  EXPECT_EQ(shape_error("Tile", {x, list({1, -1})}), "Tile node 'n': asks for a dimension of -1");
  EXPECT_EQ(shape_error("Tile", {x, list({kMost, 1})}),
            "Tile node 'n': asks for a tensor of more than 268435456 elements");
  EXPECT_EQ(shape_error("Tile", {x, list({1 << 20, 1 << 20})}),
            "Tile node 'n': asks for a tensor of more than 268435456 elements");
}

TEST(Constant, GivesItsValue) {
  const auto value = [](const std::string& name, const Attribute& attribute, int64_t opset = 13) {
    return run_shape("Constant", {}, {{name, attribute}}, opset)[0];
  };
  const torch::Tensor x = counting({2, 2});
  EXPECT_TRUE(torch::equal(value("value", x, 9), x));
  EXPECT_TRUE(torch::equal(value("value_int", kMost), torch::tensor(kMost, torch::kLong)));
  EXPECT_TRUE(torch::equal(value("value_ints", Integers{1, 2}), list({1, 2})));
  EXPECT_TRUE(torch::equal(value("value_float", 0.1f), torch::tensor(0.1f)));
  EXPECT_TRUE(torch::equal(value("value_floats", std::vector<float>{0.1f, 2}),
                           torch::tensor({0.1f, 2.0f})));
  EXPECT_EQ(shape_error("Constant", {}, {{"value_string", std::string("a")}}),
            "Constant node 'n': has 'value_string', expected one of value, value_int, value_ints, "
            "value_float, value_floats");
  EXPECT_EQ(shape_error("Constant", {}, {{"value_int", int64_t{1}}}, 11),
            "Constant node 'n': has 'value_int', expected one of value");
  EXPECT_EQ(shape_error("Constant", {}),
            "Constant node 'n': has 0 attributes, expected one of value, value_int, value_ints, "
            "value_float, value_floats");
}

TEST(ConstantOfShape, FillsTheShape) {
  EXPECT_TRUE(torch::equal(run_shape("ConstantOfShape", {list({2, 3})})[0], torch::zeros({2, 3})));
  EXPECT_TRUE(torch::equal(run_shape("ConstantOfShape", {list({2})}, {{"value", list({7})}})[0],
                           list({7, 7})));
  EXPECT_EQ(shape_of(run_shape("ConstantOfShape", {list({})})[0]), Integers{});
  EXPECT_EQ(shape_error("ConstantOfShape", {list({1 << 15, 1 << 15})}),
            "ConstantOfShape node 'n': asks for a tensor of more than 268435456 elements");
  EXPECT_EQ(shape_error("ConstantOfShape", {list({2})}, {{"value", list({7, 8})}}),
            "ConstantOfShape node 'n': value has shape [2], expected one number");
}

// Whatever moves numbers moves their gradients along: a weighted sum of the output has, for each
// input element, the sum of the weights of the places it went to.
TEST(Movement, CarriesGradients) {
  const std::map<std::string, std::pair<Tensors, Attributes>> cases = {
      {"Flatten", {{}, {}}},
      {"Reshape", {{list({3, -1})}, {}}},
      {"Transpose", {{}, {}}},
      {"Unsqueeze", {{list({0})}, {}}},
      {"Concat", {{}, {{"axis", int64_t{0}}}}},
      {"Slice", {{list({-1}), list({kLeast}), list({1}), list({-2})}, {}}},
      {"Gather", {{list({1, 1})}, {}}},
      {"Tile", {{list({2, 2, 1})}, {}}},
  };
  for (const auto& [op, rest] : cases) {
    const torch::Tensor x = counting({2, 3, 4}).requires_grad_();
    Tensors inputs = {x};
    inputs.insert(inputs.end(), rest.first.begin(), rest.first.end());
    const torch::Tensor y = run_shape(op, inputs, rest.second)[0];
    const torch::Tensor weights = counting(shape_of(y));
    (y * weights).sum().backward();
    torch::Tensor expected = torch::zeros({24}, torch::kDouble);
    for (int64_t i = 0; i < y.numel(); ++i) {
      expected[y.detach().flatten()[i].item<int64_t>()] += weights.flatten()[i];
    }
    EXPECT_TRUE(torch::equal(x.grad().flatten(), expected)) << op;
  }
}

}  // namespace
}  // namespace fcp
