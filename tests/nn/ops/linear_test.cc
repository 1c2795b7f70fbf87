// Gemm, MatMul, Conv, ConvTranspose and the normalisations against slow loops and literals.
#include <array>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/nn/ops/op_testing.h"

namespace fcp {
namespace {

using Ints = std::vector<int64_t>;
using testing::HasSubstr;

TEST(Gemm, ScalesTransposesAndBroadcasts) {
  const torch::Tensor a = random_tensor({5, 3});
  const torch::Tensor b = random_tensor({3, 4});
  const torch::Tensor product = (a.unsqueeze(2) * b.unsqueeze(0)).sum(1);  // [5, 3, 4] over 3
  for (const Ints& shape : {Ints{4}, Ints{5, 4}, Ints{1, 4}, Ints{5, 1}, Ints{1}, Ints{}}) {
    const torch::Tensor c = random_tensor(shape);
    expect_close(run(node("Gemm", 3), {a, b, c}), product + c);
    expect_close(run(node("Gemm", 3, {{"alpha", 0.5f}, {"beta", -2.0f}}), {a, b, c}),
                 0.5 * product - 2 * c);
    expect_close(run(node("Gemm", 3, {{"transB", int64_t{1}}}), {a, b.t().contiguous(), c}),
                 product + c);
    expect_close(run(node("Gemm", 3, {{"transA", int64_t{1}}}), {a.t().contiguous(), b, c}),
                 product + c);
  }
  expect_close(run(node("Gemm", 2, {{"alpha", 3.0f}}), {a, b}), 3 * product);
  expect_close(run(node("Gemm", 3), {a, b, torch::Tensor()}), product);
  EXPECT_EQ(run(node("Gemm", 2), {a.to(torch::kFloat), b.to(torch::kFloat)}).scalar_type(),
            torch::kFloat);
  expect_gradient(node("Gemm", 3, {{"transB", int64_t{1}}}),
                  {a, b.t().contiguous(), random_tensor({4})});
}

TEST(Gemm, CountsTwoPerMultiplyAdd) {
  const Node gemm = node("Gemm", 2, {{"transA", int64_t{1}}});
  const Tensors inputs = {random_tensor({3, 5}), random_tensor({3, 4})};
  const auto op = make_op(gemm, 17);
  EXPECT_EQ(op->flops(inputs, op->forward(inputs)), 2.0 * 5 * 3 * 4);
}

TEST(Gemm, RefusesMalformedNodes) {
  const torch::Tensor a = random_tensor({5, 3});
  EXPECT_THAT(error_of(node("Gemm", 2), {a, a}),
              HasSubstr("Gemm node 'it': cannot multiply [5, 3] by [5, 3]"));
  EXPECT_THAT(error_of(node("Gemm", 3), {a, random_tensor({3, 4}), random_tensor({5})}),
              HasSubstr("C has shape [5], which does not broadcast to [5, 4]"));
  EXPECT_THAT(error_of(node("Gemm", 2), {random_tensor({2, 5, 3}), a}), HasSubstr("rank 2"));
  EXPECT_THAT(error_of(node("Gemm", 2), {a, a.to(torch::kFloat)}), HasSubstr("B is of type"));
  EXPECT_THAT(error_of(node("Gemm", 2), {a.to(torch::kLong), a}), HasSubstr("floating-point"));
  EXPECT_THAT(error_of(node("Gemm", 2), {a, a}, 9), HasSubstr("has 2 inputs"));
  EXPECT_THAT(error_of(node("Gemm", 2, {{"broadcast", int64_t{1}}}), {a, a}),
              HasSubstr("'broadcast' is not known"));
  EXPECT_THAT(error_of(node("Gemm", 2), {torch::zeros({1 << 20, 1}), torch::zeros({1, 1 << 20})}),
              HasSubstr("more than"));
}

TEST(MatMul, FollowsNumpy) {
  const auto check = [](const Ints& a_shape, const Ints& b_shape, const Ints& shape) {
    const torch::Tensor a = random_tensor(a_shape);
    const torch::Tensor b = random_tensor(b_shape);
    const torch::Tensor rows = a.dim() == 1 ? a.unsqueeze(0) : a;
    const torch::Tensor columns = b.dim() == 1 ? b.unsqueeze(1) : b;
    const torch::Tensor slow = (rows.unsqueeze(-1) * columns.unsqueeze(-3)).sum(-2);
    const torch::Tensor fast = run(node("MatMul", 2), {a, b});
    EXPECT_EQ(fast.sizes(), torch::IntArrayRef(shape));
    expect_close(fast, slow.reshape(shape));
  };
  check({3, 4}, {4, 5}, {3, 5});
  check({4}, {4, 5}, {5});
  check({3, 4}, {4}, {3});
  check({4}, {4}, {});
  check({2, 3, 4}, {4, 5}, {2, 3, 5});
  check({3, 4}, {7, 4, 5}, {7, 3, 5});
  check({2, 1, 3, 4}, {6, 4, 5}, {2, 6, 3, 5});
  check({4}, {2, 4, 5}, {2, 5});
  check({2, 3, 4}, {4}, {2, 3});
  EXPECT_THAT(error_of(node("MatMul", 2), {random_tensor({2, 3}), random_tensor({2, 3})}),
              HasSubstr("cannot multiply [2, 3] by [2, 3]"));
  EXPECT_THAT(error_of(node("MatMul", 2), {random_tensor({2, 3, 4}), random_tensor({3, 4, 5})}),
              HasSubstr("cannot multiply"));
  EXPECT_THAT(error_of(node("MatMul", 2), {torch::zeros({}), torch::zeros({2})}),
              HasSubstr("A has shape []"));
}

// One spatial axis, so that the loop is obviously right; begins and ends may differ.
torch::Tensor slow_conv1d(const torch::Tensor& x, const torch::Tensor& w, int64_t group,
                          int64_t stride, int64_t dilation, int64_t begin, int64_t end) {
  const int64_t size = x.size(2), kernel = w.size(2), filters = w.size(0) / group;
  const int64_t out = (size + begin + end - (kernel - 1) * dilation - 1) / stride + 1;
  torch::Tensor y = torch::zeros({x.size(0), w.size(0), out}, x.options());
  for (int64_t m = 0; m < w.size(0); ++m) {
    for (int64_t i = 0; i < out; ++i) {
      for (int64_t c = 0; c < w.size(1); ++c) {
        for (int64_t k = 0; k < kernel; ++k) {
          const int64_t place = i * stride - begin + k * dilation;
          if (place < 0 || place >= size) continue;
          y.select(1, m).select(1, i) +=
              x.select(1, (m / filters) * w.size(1) + c).select(1, place) * w[m][c][k];
        }
      }
    }
  }
  return y;
}

TEST(Conv, OneDimensionAgainstALoop) {
  const torch::Tensor x = random_tensor({2, 4, 11});
  for (const int64_t group : {1, 2, 4}) {
    const torch::Tensor w = random_tensor({8, 4 / group, 3});
    const torch::Tensor b = random_tensor({8});
    for (const int64_t stride : {1, 2, 3}) {
      for (const int64_t dilation : {1, 2}) {
        for (const auto& pads : {Ints{0, 0}, Ints{1, 1}, Ints{0, 2}, Ints{3, 1}, Ints{7, 7}}) {
          const Node conv = node("Conv", 3,
                                 {{"strides", Ints{stride}},
                                  {"dilations", Ints{dilation}},
                                  {"pads", pads},
                                  {"kernel_shape", Ints{3}},
                                  {"group", group}});
          expect_close(
              run(conv, {x, w, b}),
              slow_conv1d(x, w, group, stride, dilation, pads[0], pads[1]) + b.view({1, 8, 1}));
        }
      }
    }
  }
}

// Float32 numbers of one spatial axis run by loops of our own, as images of one row.
TEST(Conv, RowsOfOneDimensionDoNotSeeEachOther) {
  struct Shape {
    int64_t channels, filters, group, kernel;
  };
  for (const Shape& shape : {Shape{3, 8, 1, 5}, Shape{6, 6, 6, 3}, Shape{4, 7, 1, 1}}) {
    const Node made = node("Conv", 3,
                           {{"pads", std::vector<int64_t>{2, 1}},
                            {"strides", std::vector<int64_t>{2}},
                            {"group", shape.group}});
    const Tensors exact = {
        random_tensor({9, shape.channels, 31}),
        random_tensor({shape.filters, shape.channels / shape.group, shape.kernel}),
        random_tensor({shape.filters})};
    Tensors given;
    for (const torch::Tensor& each : exact) given.push_back(each.to(torch::kFloat));
    const std::unique_ptr<Op> op = make_op(made, 17);
    ASSERT_TRUE(op->batch_free({{}, given[1], given[2]}, {false, true, true}));
    const torch::Tensor found = op->forward(given)[0];
    expect_close(found.to(torch::kDouble), op->forward(exact)[0], 2e-6);
    for (int64_t row = 0; row < 9; ++row) {
      const torch::Tensor one = op->forward({given[0].narrow(0, row, 1), given[1], given[2]})[0];
      EXPECT_TRUE(torch::equal(one, found.narrow(0, row, 1)));
    }
    Tensors wanted = given;
    wanted[0] = given[0].clone().requires_grad_();
    const torch::Tensor with = op->forward(wanted)[0];
    EXPECT_TRUE(torch::equal(with, found));
    with.sum().backward();
    Tensors doubled = exact;
    doubled[0] = exact[0].clone().requires_grad_();
    op->forward(doubled)[0].sum().backward();
    expect_close(wanted[0].grad().to(torch::kDouble), doubled[0].grad(), 2e-5);
  }
}

TEST(Conv, AutoPadGivesCeilOfSizeByStride) {
  for (const int64_t size : {5, 6, 7}) {
    for (const int64_t stride : {1, 2, 3}) {
      for (const int64_t dilation : {1, 2}) {
        const torch::Tensor x = random_tensor({1, 1, size});
        const torch::Tensor w = random_tensor({1, 1, 2});
        const int64_t positions = (size + stride - 1) / stride;
        const int64_t total = std::max<int64_t>(0, (positions - 1) * stride + dilation + 1 - size);
        const auto with = [&](const std::string& auto_pad) {
          return run(node("Conv", 2,
                          {{"strides", Ints{stride}},
                           {"dilations", Ints{dilation}},
                           {"auto_pad", auto_pad}}),
                     {x, w});
        };
        EXPECT_EQ(with("SAME_UPPER").size(2), positions);
        expect_close(with("SAME_UPPER"),
                     slow_conv1d(x, w, 1, stride, dilation, total / 2, total - total / 2));
        expect_close(with("SAME_LOWER"),
                     slow_conv1d(x, w, 1, stride, dilation, total - total / 2, total / 2));
        expect_close(with("VALID"), slow_conv1d(x, w, 1, stride, dilation, 0, 0));
      }
    }
  }
}

TEST(Conv, TwoAndThreeDimensions) {
  const torch::Tensor x = random_tensor({2, 3, 6, 7});
  const torch::Tensor w = random_tensor({4, 3, 3, 2});
  const Node conv = node("Conv", 2, {{"pads", Ints{1, 0, 2, 3}}, {"strides", Ints{2, 1}}});
  const torch::Tensor padded = torch::constant_pad_nd(x, {0, 3, 1, 2});
  expect_close(run(conv, {x, w}), torch::conv2d(padded, w, {}, {2, 1}));
  expect_gradient(conv, {x, w});
  const auto op = make_op(conv, 11);
  const Tensors y = op->forward({x, w});
  EXPECT_EQ(op->flops({x, w}, y), 2.0 * static_cast<double>(y[0].numel()) * 3 * 3 * 2);

  const torch::Tensor volume = random_tensor({1, 2, 4, 5, 6});
  const torch::Tensor filter = random_tensor({2, 1, 2, 2, 3});
  expect_close(run(node("Conv", 2, {{"group", int64_t{2}}, {"pads", Ints{1, 1, 1, 1, 1, 1}}}),
                   {volume, filter}),
               torch::conv3d(volume, filter, {}, 1, 1, 1, 2));
  EXPECT_EQ(run(node("Conv", 2), {torch::zeros({0, 3, 6, 7}), w.to(torch::kFloat)}).size(0), 0);
}

TEST(Conv, RefusesMalformedNodes) {
  const torch::Tensor x = random_tensor({1, 3, 5, 5});
  const torch::Tensor w = random_tensor({4, 3, 3, 3});
  const auto error = [&](std::map<std::string, Attribute> attributes) {
    return error_of(node("Conv", 2, std::move(attributes)), {x, w});
  };
  EXPECT_THAT(error({{"kernel_shape", Ints{3, 2}}}), HasSubstr("kernel_shape is [3, 2]"));
  EXPECT_THAT(error({{"pads", Ints{1, 1}}}), HasSubstr("'pads' has 2 numbers, expected 4"));
  EXPECT_THAT(error({{"pads", Ints{1, 1, -1, 0}}}), HasSubstr("'pads' holds -1"));
  EXPECT_THAT(error({{"strides", Ints{0, 1}}}), HasSubstr("'strides' holds 0"));
  EXPECT_THAT(error({{"dilations", Ints{4, 1}}}), HasSubstr("does not fit into 5"));
  EXPECT_THAT(error({{"group", int64_t{0}}}), HasSubstr("group is 0"));
  EXPECT_THAT(error({{"group", int64_t{3}}}), HasSubstr("multiple of group"));
  EXPECT_THAT(error({{"group", int64_t{2}}}), HasSubstr("X has 3 channels"));
  EXPECT_THAT(error({{"auto_pad", std::string("SAME")}}), HasSubstr("auto_pad is 'SAME'"));
  EXPECT_THAT(error({{"auto_pad", std::string("VALID")}, {"pads", Ints{1, 1, 1, 1}}}),
              HasSubstr("both pads and auto_pad"));
  EXPECT_THAT(error({{"pads", Ints{1 << 27, 1 << 27, 0, 0}}}), HasSubstr("more than"));
  EXPECT_THAT(error_of(node("Conv", 2), {x, random_tensor({4, 3, 3})}), HasSubstr("W has shape"));
  EXPECT_THAT(error_of(node("Conv", 3), {x, w, random_tensor({3})}),
              HasSubstr("B has shape [3], expected [4]"));
}

// Scatter: every input place adds w to the output around place · stride.
torch::Tensor slow_transpose1d(const torch::Tensor& x, const torch::Tensor& w, int64_t group,
                               int64_t stride, int64_t dilation, int64_t begin, int64_t out) {
  const int64_t inside = w.size(0) / group;
  torch::Tensor y = torch::zeros({x.size(0), w.size(1) * group, out}, x.options());
  for (int64_t c = 0; c < w.size(0); ++c) {
    for (int64_t m = 0; m < w.size(1); ++m) {
      for (int64_t i = 0; i < x.size(2); ++i) {
        for (int64_t k = 0; k < w.size(2); ++k) {
          const int64_t place = i * stride + k * dilation - begin;
          if (place < 0 || place >= out) continue;
          y.select(1, (c / inside) * w.size(1) + m).select(1, place) +=
              x.select(1, c).select(1, i) * w[c][m][k];
        }
      }
    }
  }
  return y;
}

TEST(ConvTranspose, OneDimensionAgainstALoop) {
  const torch::Tensor x = random_tensor({2, 4, 5});
  for (const int64_t group : {1, 2}) {
    const torch::Tensor w = random_tensor({4, 3, 3});
    const torch::Tensor b = random_tensor({3 * group});
    for (const int64_t stride : {2, 3}) {
      for (const int64_t dilation : {1, 2}) {
        for (const int64_t extra : {0, 1}) {
          for (const auto& pads : {Ints{0, 0}, Ints{1, 1}, Ints{0, 2}, Ints{3, 1}}) {
            const Node transpose = node("ConvTranspose", 3,
                                        {{"strides", Ints{stride}},
                                         {"dilations", Ints{dilation}},
                                         {"pads", pads},
                                         {"output_padding", Ints{extra}},
                                         {"group", group}});
            const int64_t out = stride * 4 + extra + 2 * dilation + 1 - pads[0] - pads[1];
            expect_close(
                run(transpose, {x, w, b}),
                slow_transpose1d(x, w, group, stride, dilation, pads[0], out) + b.view({1, -1, 1}));
          }
        }
      }
    }
  }
}

TEST(ConvTranspose, OutputShapeAndAutoPadChooseThePadding) {
  const torch::Tensor x = random_tensor({1, 2, 5});
  const torch::Tensor w = random_tensor({2, 1, 3});
  const torch::Tensor b = random_tensor({1});
  // Full size is 2 · 4 + 3 = 11; beyond it only the bias remains.
  for (const int64_t wanted : {6, 9, 10, 11, 12, 14}) {
    const int64_t total = std::max<int64_t>(0, 11 - wanted);
    const auto with = [&](const std::string& auto_pad) {
      return run(
          node("ConvTranspose", 3,
               {{"strides", Ints{2}}, {"output_shape", Ints{wanted}}, {"auto_pad", auto_pad}}),
          {x, w, b});
    };
    expect_close(with("SAME_UPPER"), slow_transpose1d(x, w, 1, 2, 1, total / 2, wanted) + b);
    expect_close(with("NOTSET"), slow_transpose1d(x, w, 1, 2, 1, total - total / 2, wanted) + b);
  }
  const auto same = [&](const std::string& auto_pad, int64_t stride) {
    return run(node("ConvTranspose", 2, {{"strides", Ints{stride}}, {"auto_pad", auto_pad}}),
               {x, w});
  };
  expect_close(same("SAME_UPPER", 2), slow_transpose1d(x, w, 1, 2, 1, 0, 10));
  expect_close(same("SAME_LOWER", 2), slow_transpose1d(x, w, 1, 2, 1, 1, 10));
  expect_close(same("SAME_LOWER", 4), slow_transpose1d(x, w, 1, 4, 1, 0, 20));
  expect_close(same("VALID", 2), slow_transpose1d(x, w, 1, 2, 1, 0, 11));
}

TEST(ConvTranspose, TwoAndThreeDimensions) {
  const torch::Tensor x = random_tensor({2, 4, 3, 4});
  const torch::Tensor w = random_tensor({4, 2, 3, 3});
  const Node transpose = node("ConvTranspose", 2,
                              {{"strides", Ints{2, 2}},
                               {"pads", Ints{1, 1, 1, 1}},
                               {"output_padding", Ints{1, 1}},
                               {"kernel_shape", Ints{3, 3}}});
  expect_close(run(transpose, {x, w}), torch::conv_transpose2d(x, w, {}, 2, 1, 1));
  expect_gradient(transpose, {x, w});
  const auto op = make_op(transpose, 11);
  EXPECT_EQ(op->flops({x, w}, op->forward({x, w})), 2.0 * 2 * 4 * 12 * 2 * 9);
  const torch::Tensor volume = random_tensor({1, 2, 2, 3, 4});
  const torch::Tensor filter = random_tensor({2, 2, 2, 2, 2});
  expect_close(run(node("ConvTranspose", 2, {{"strides", Ints{2, 2, 2}}}), {volume, filter}),
               torch::conv_transpose3d(volume, filter, {}, 2));
}

TEST(ConvTranspose, RefusesMalformedNodes) {
  const torch::Tensor x = random_tensor({1, 2, 5});
  const torch::Tensor w = random_tensor({2, 1, 3});
  const auto error = [&](std::map<std::string, Attribute> attributes) {
    return error_of(node("ConvTranspose", 2, std::move(attributes)), {x, w});
  };
  EXPECT_THAT(error({{"output_padding", Ints{1}}}), HasSubstr("output_padding is [1]"));
  EXPECT_THAT(error({{"output_shape", Ints{1, 2}}}), HasSubstr("output_shape has 2 numbers"));
  EXPECT_THAT(error({{"output_shape", Ints{-1}}}), HasSubstr("'output_shape' holds -1"));
  EXPECT_THAT(error({{"output_shape", Ints{int64_t{1} << 28}}, {"strides", Ints{1 << 28}}}),
              HasSubstr("more than"));
  EXPECT_THAT(error({{"pads", Ints{4, 3}}}), HasSubstr("output would have 0 places"));
  EXPECT_THAT(error_of(node("ConvTranspose", 2), {x, random_tensor({3, 1, 3})}),
              HasSubstr("X has 2 channels"));
}

TEST(BatchNormalization, IsAffineAtInference) {
  const torch::Tensor scale = random_tensor({3}), b = random_tensor({3}), mean = random_tensor({3});
  const torch::Tensor variance = random_tensor({3}).abs() + 0.1;
  for (const Ints& shape : {Ints{4, 3}, Ints{4, 3, 5}, Ints{2, 3, 4, 5}, Ints{2, 3, 2, 2, 2}}) {
    const torch::Tensor x = random_tensor(shape);
    Ints channel(shape.size(), 1);
    channel[1] = 3;
    const auto c = [&](const torch::Tensor& t) { return t.view(channel); };
    const Node norm = node("BatchNormalization", 5, {{"epsilon", 0.5f}, {"momentum", 0.7f}});
    const torch::Tensor expected = (x - c(mean)) / torch::sqrt(c(variance) + 0.5) * c(scale) + c(b);
    for (const int64_t opset : {9, 14, 15}) {
      expect_close(run(norm, {x, scale, b, mean, variance}, opset), expected);
    }
    expect_gradient(norm, {x, scale, b, mean, variance});
  }
  const torch::Tensor one = torch::ones({1}, torch::kDouble);
  expect_close(run(node("BatchNormalization", 5, {{"epsilon", 0.0f}}),
                   {torch::arange(4, torch::kDouble), one, one, one, one}),
               torch::arange(4, torch::kDouble));
  // From opset 14 on, the statistics may be of another type than the data.
  const torch::Tensor half = torch::ones({2, 1}, torch::kFloat);
  EXPECT_EQ(run(node("BatchNormalization", 5), {half, one, one, one, one}).scalar_type(),
            torch::kFloat);
}

TEST(BatchNormalization, RefusesOldTrainingAndWrongChannels) {
  const torch::Tensor x = random_tensor({2, 3}), v = torch::ones({3}, torch::kDouble);
  const Tensors inputs = {x, v, v, v, v};
  EXPECT_THAT(error_of(node("BatchNormalization", 5, {{"spatial", int64_t{0}}}), inputs, 9),
              HasSubstr("spatial = 0"));
  EXPECT_THAT(error_of(node("BatchNormalization", 5, {{"training_mode", int64_t{0}}}), inputs, 9),
              HasSubstr("'training_mode' is not known"));
  Node training = node("BatchNormalization", 5);
  training.outputs = {"y", "mean"};
  EXPECT_THAT(error_of(training, inputs, 9), HasSubstr("'mean' of training mode"));
  EXPECT_THAT(error_of(node("BatchNormalization", 5), {random_tensor({2, 4}), v, v, v, v}),
              HasSubstr("scale has shape [3], expected [4]"));
}

TEST(InstanceNormalization, NormalisesEachChannelOfEachSample) {
  const torch::Tensor x = random_tensor({2, 3, 4, 5});
  const torch::Tensor scale = random_tensor({3}), b = random_tensor({3});
  const torch::Tensor mean = x.mean(Ints{2, 3}, true);
  const torch::Tensor variance = (x - mean).pow(2).mean(Ints{2, 3}, true);
  const Node norm = node("InstanceNormalization", 3, {{"epsilon", 0.25f}});
  expect_close(
      run(norm, {x, scale, b}),
      (x - mean) / torch::sqrt(variance + 0.25) * scale.view({3, 1, 1}) + b.view({3, 1, 1}));
  expect_gradient(norm, {x, scale, b});
  EXPECT_THAT(error_of(norm, {x, random_tensor({4}), b}), HasSubstr("scale has shape [4]"));
  EXPECT_THAT(error_of(norm, {random_tensor({2, 3}), scale, b}), HasSubstr("X has shape [2, 3]"));
}

TEST(LayerNormalization, NormalisesTheTrailingAxes) {
  const torch::Tensor x = random_tensor({2, 3, 4});
  for (const int64_t axis : {-1, 1, 2, -3}) {
    const int64_t first = axis < 0 ? axis + 3 : axis;
    Ints axes, shape;
    for (int64_t i = first; i < 3; ++i) {
      axes.push_back(i);
      shape.push_back(x.size(i));
    }
    const torch::Tensor scale = random_tensor(shape), b = random_tensor(shape);
    const torch::Tensor mean = x.mean(axes, true);
    const torch::Tensor inverse =
        torch::rsqrt((x - mean).pow(2).mean(axes, true) + static_cast<double>(1e-3f));
    Node norm = node("LayerNormalization", 3, {{"axis", axis}, {"epsilon", 1e-3f}});
    const Tensors y = make_op(norm, 17)->forward({x, scale, b});
    expect_close(y[0], (x - mean) * inverse * scale + b);
    EXPECT_EQ(y[1].scalar_type(), torch::kFloat);
    expect_close(y[1].to(torch::kDouble), mean, 1e-6);
    expect_close(y[2].to(torch::kDouble), inverse, 1e-5);
    expect_gradient(norm, {x, scale, b});
    norm.inputs.resize(2);
    const torch::Tensor one = random_tensor({1});  // broadcast
    expect_close(run(norm, {x, one}), (x - mean) * inverse * one);
  }
  EXPECT_THAT(error_of(node("LayerNormalization", 2), {x, random_tensor({5})}),
              HasSubstr("Scale has shape [5]"));
  EXPECT_THAT(error_of(node("LayerNormalization", 2, {{"axis", int64_t{3}}}), {x, x}),
              HasSubstr("axis 3"));
  EXPECT_THAT(error_of(node("LayerNormalization", 2, {{"stash_type", int64_t{7}}}), {x, x}),
              HasSubstr("stash_type is 7"));
}

// With offsets of whole pixels a tap reads another pixel; the mask weights it.
TEST(DeformConv, MovesItsTaps) {
  const torch::Tensor x = random_tensor({2, 4, 5, 6}), w = random_tensor({6, 2, 3, 2});
  const torch::Tensor b = random_tensor({6});
  const std::map<std::string, Attribute> attributes = {{"pads", std::vector<int64_t>{1, 0, 1, 1}},
                                                       {"strides", std::vector<int64_t>{2, 1}},
                                                       {"dilations", std::vector<int64_t>{1, 2}},
                                                       {"group", int64_t{2}},
                                                       {"offset_group", int64_t{2}}};
  const int64_t height = 3, width = 5, taps = 6;
  const torch::Tensor offset = random_tensor({2, 2 * taps * 2, height, width}) * 3;
  const torch::Tensor mask = random_tensor({2, 2 * taps, height, width});
  const auto pixel = [&](int64_t n, int64_t c, int64_t i, int64_t j) {
    return i < 0 || j < 0 || i >= 5 || j >= 6 ? 0.0 : x[n][c][i][j].item<double>();
  };
  const torch::Tensor y = run(node("DeformConv", 5, attributes), {x, w, offset, b, mask}, 19);
  ASSERT_EQ(y.sizes(), torch::IntArrayRef({2, 6, height, width}));
  for (const auto& [n, o, p, q] : std::vector<std::array<int64_t, 4>>{
           {0, 0, 0, 0}, {1, 5, 2, 4}, {0, 3, 1, 2}, {1, 2, 0, 4}, {1, 4, 2, 0}}) {
    double sum = b[o].item<double>();
    for (int64_t c = 0; c < 2; ++c) {
      const int64_t channel = o / 3 * 2 + c, group = channel / 2;
      for (int64_t k = 0; k < taps; ++k) {
        const double row = static_cast<double>(2 * p - 1 + k / 2) +
                           offset[n][(group * taps + k) * 2][p][q].item<double>();
        const double column = static_cast<double>(q + 2 * (k % 2)) +
                              offset[n][(group * taps + k) * 2 + 1][p][q].item<double>();
        const auto i = static_cast<int64_t>(std::floor(row));
        const auto j = static_cast<int64_t>(std::floor(column));
        const double down = row - std::floor(row), across = column - std::floor(column);
        const double value = (1 - down) * (1 - across) * pixel(n, channel, i, j) +
                             (1 - down) * across * pixel(n, channel, i, j + 1) +
                             down * (1 - across) * pixel(n, channel, i + 1, j) +
                             down * across * pixel(n, channel, i + 1, j + 1);
        sum += value * mask[n][group * taps + k][p][q].item<double>() *
               w[o][c][k / 2][k % 2].item<double>();
      }
    }
    EXPECT_NEAR(y[n][o][p][q].item<double>(), sum, 1e-12);
  }
  const torch::Tensor still = torch::zeros_like(offset);
  expect_close(
      run(node("DeformConv", 4, attributes), {x, w, still, b}, 19),
      torch::conv2d(torch::constant_pad_nd(x, {0, 1, 1, 1}), w, b, std::vector<int64_t>{2, 1},
                    std::vector<int64_t>{0, 0}, std::vector<int64_t>{1, 2}, 2));
  expect_gradient(node("DeformConv", 5, attributes), {x, w, offset, b, mask}, 19);
  EXPECT_THAT(error_of(node("DeformConv", 4, attributes), {x, w, still.narrow(1, 0, 12), b}, 19),
              HasSubstr("offset has shape [2, 12, 3, 5], expected [2, 24, 3, 5]"));
}

// The half of a real signal's spectrum says everything of it.
TEST(Fourier, TheInverseOfHalfASpectrumIsTheSignal) {
  for (const int64_t n : {1, 2, 7, 8}) {
    const torch::Tensor x = random_tensor({3, n, 2, 1});
    const torch::Tensor axis = torch::tensor(1, torch::kLong),
                        length = torch::tensor(n, torch::kLong);
    const std::map<std::string, Attribute> forward = {{"onesided", int64_t{1}}};
    const std::map<std::string, Attribute> inverse = {{"onesided", int64_t{1}},
                                                      {"inverse", int64_t{1}}};
    const torch::Tensor half = run(node("DFT", 3, forward), {x, length, axis}, 20);
    EXPECT_EQ(half.size(1), n / 2 + 1);
    expect_close(run(node("DFT", 3, inverse), {half, length, axis}, 20), x);
    if (n % 2 == 0) {
      expect_close(run(node("DFT", 3, inverse), {half, torch::Tensor(), axis}, 20), x);
    }
    expect_gradient(node("DFT", 3, inverse), {half, length, axis}, 20);
  }
  EXPECT_THAT(error_of(node("DFT", 1, {{"onesided", int64_t{1}}, {"inverse", int64_t{1}}}),
                       {random_tensor({2, 4, 1})}, 17),
              HasSubstr("the last axis has 1 numbers, expected 2"));
}

}  // namespace
}  // namespace fcp
