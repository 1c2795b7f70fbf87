// Poolings against a loop over the specification's words; softmax and reductions against literals.
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/nn/ops/op_testing.h"

namespace fcp {
namespace {

using Ints = std::vector<int64_t>;
using testing::HasSubstr;

struct Pooling {
  int64_t kernel = 2;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t begin = 0;
  int64_t end = 0;
  bool ceil = false;
  bool include_pad = false;
};

int64_t slow_positions(const Pooling& p, int64_t size) {
  const int64_t reach = (p.kernel - 1) * p.dilation + 1;
  int64_t count = 0;
  for (int64_t start = -p.begin;; start += p.stride, ++count) {
    const bool inside = start + reach <= size + p.end;
    // With ceil, one more window may overhang, if it begins before the padding at the end.
    const bool overhangs = p.ceil && start - p.stride + reach < size + p.end && start < size;
    if (!inside && !overhangs) return count;
  }
}

// Pools the last axis of [N, C, L].
torch::Tensor slow_pool1d(const torch::Tensor& x, const Pooling& p, bool maximum) {
  const int64_t size = x.size(2), out = slow_positions(p, size);
  torch::Tensor y = torch::zeros({x.size(0), x.size(1), out}, x.options());
  for (int64_t i = 0; i < out; ++i) {
    torch::Tensor best = torch::full({x.size(0), x.size(1)}, -1e300, x.options());
    torch::Tensor sum = torch::zeros({x.size(0), x.size(1)}, x.options());
    double count = 0;
    for (int64_t k = 0; k < p.kernel; ++k) {
      const int64_t place = i * p.stride - p.begin + k * p.dilation;
      const bool inside = place >= 0 && place < size;
      if (inside) best = torch::maximum(best, x.select(2, place));
      if (inside) sum += x.select(2, place);
      if (inside || (p.include_pad && place < size + p.end)) ++count;
    }
    y.select(2, i).copy_(maximum ? best : sum / count);
  }
  return y;
}

Node pool_node(const std::string& op, const Pooling& p) {
  Node made = node(op, 1,
                   {{"kernel_shape", Ints{p.kernel}},
                    {"strides", Ints{p.stride}},
                    {"pads", Ints{p.begin, p.end}},
                    {"ceil_mode", int64_t{p.ceil}}});
  if (p.dilation != 1) made.attributes["dilations"] = Ints{p.dilation};
  if (op == "AveragePool") made.attributes["count_include_pad"] = int64_t{p.include_pad};
  return made;
}

TEST(Pool, OneDimensionAgainstALoop) {
  int tried = 0;
  for (const int64_t size : {5, 8}) {
    const torch::Tensor x = random_tensor({2, 3, size});
    const torch::Tensor bytes = (x * 60).clamp(-128, 127).to(torch::kChar);
    for (const int64_t kernel : {1, 2, 3}) {
      for (const int64_t stride : {1, 2, 3}) {
        for (const int64_t dilation : {1, 2}) {
          const int64_t reach = (kernel - 1) * dilation + 1;
          for (int64_t begin = 0; begin < reach; ++begin) {
            for (int64_t end = 0; end < reach; ++end) {
              for (const int flags : {0, 1, 2, 3}) {
                const Pooling p = {kernel, stride,           dilation,        begin,
                                   end,    (flags & 1) != 0, (flags & 2) != 0};
                SCOPED_TRACE(testing::Message()
                             << "size " << size << " kernel " << kernel << " stride " << stride
                             << " dilation " << dilation << " pads " << begin << " " << end
                             << " ceil " << p.ceil << " include " << p.include_pad);
                if (flags < 2) {
                  expect_close(run(pool_node("MaxPool", p), {x}), slow_pool1d(x, p, true));
                  const torch::Tensor slow = slow_pool1d(bytes.to(torch::kDouble), p, true);
                  EXPECT_TRUE(
                      torch::equal(run(pool_node("MaxPool", p), {bytes}), slow.to(torch::kChar)));
                }
                expect_close(run(pool_node("AveragePool", p), {x}, 19), slow_pool1d(x, p, false));
                ++tried;
              }
            }
          }
        }
      }
    }
  }
  EXPECT_GT(tried, 500);
}

TEST(Pool, CeilWithPaddingAsTheSpecificationCounts) {
  // Windows over [1, 2, 3, 4] with one zero before and after: {0,1,2}, {2,3,4}, and {4, 0, beyond}.
  const torch::Tensor x = torch::tensor({1.0, 2.0, 3.0, 4.0}, torch::kDouble).view({1, 1, 4});
  Pooling p = {3, 2, 1, 1, 1, true, true};
  expect_close(run(pool_node("AveragePool", p), {x}),
               torch::tensor({1.0, 3.0, 2.0}, torch::kDouble).view({1, 1, 3}));
  p.include_pad = false;
  expect_close(run(pool_node("AveragePool", p), {x}),
               torch::tensor({1.5, 3.0, 4.0}, torch::kDouble).view({1, 1, 3}));
  // A window of one place that would begin in the padding at the end is dropped.
  p = {2, 4, 1, 0, 1, true, false};
  expect_close(run(pool_node("MaxPool", p), {x}), torch::full({1, 1, 1}, 2.0, torch::kDouble));
}

TEST(Pool, SeveralDimensionsAreSeparable) {
  const torch::Tensor x = random_tensor({2, 3, 7, 6});
  const Pooling rows = {3, 2, 1, 1, 2, true, true}, columns = {2, 2, 1, 0, 1, true, true};
  for (const bool maximum : {true, false}) {
    torch::Tensor y = slow_pool1d(x.transpose(2, 3).flatten(0, 1), rows, maximum);  // [6, 6, 4]
    y = slow_pool1d(y.view({2, 3, 6, -1}).transpose(2, 3).flatten(0, 1), columns, maximum);
    y = y.view({2, 3, -1, y.size(2)});
    Node pool = node(maximum ? "MaxPool" : "AveragePool", 1,
                     {{"kernel_shape", Ints{3, 2}},
                      {"strides", Ints{2, 2}},
                      {"pads", Ints{1, 0, 2, 1}},
                      {"ceil_mode", int64_t{1}}});
    if (!maximum) pool.attributes["count_include_pad"] = int64_t{1};
    expect_close(run(pool, {x}), y);
    expect_gradient(pool, {x});
    const auto op = make_op(pool, 17);
    EXPECT_EQ(op->flops({x}, op->forward({x})), 6.0 * static_cast<double>(y.numel()));
  }
  const torch::Tensor volume = random_tensor({1, 2, 4, 5, 6});
  const std::map<std::string, Attribute> cube = {{"kernel_shape", Ints{2, 3, 2}}};
  expect_close(run(node("MaxPool", 1, cube), {volume}), torch::max_pool3d(volume, {2, 3, 2}, 1));
  expect_close(run(node("AveragePool", 1, cube), {volume}),
               torch::avg_pool3d(volume, {2, 3, 2}, 1));
}

TEST(Pool, AutoPadGivesCeilOfSizeByStride) {
  for (const int64_t size : {4, 5, 6, 7}) {
    const torch::Tensor x = random_tensor({1, 2, size});
    for (const int64_t kernel : {1, 2, 3}) {
      for (const int64_t stride : {1, 2, 3}) {
        for (const bool ceil : {false, true}) {
          const int64_t positions = (size + stride - 1) / stride;
          const int64_t total = std::max<int64_t>(0, (positions - 1) * stride + kernel - size);
          const auto same = [&](const std::string& op, const std::string& auto_pad) {
            return run(node(op, 1,
                            {{"kernel_shape", Ints{kernel}},
                             {"strides", Ints{stride}},
                             {"ceil_mode", int64_t{ceil}},
                             {"auto_pad", auto_pad}}),
                       {x});
          };
          const Pooling upper = {kernel, stride, 1, total / 2, total - total / 2};
          const Pooling lower = {kernel, stride, 1, total - total / 2, total / 2};
          EXPECT_EQ(same("MaxPool", "SAME_UPPER").size(2), positions);
          expect_close(same("MaxPool", "SAME_UPPER"), slow_pool1d(x, upper, true));
          expect_close(same("MaxPool", "SAME_LOWER"), slow_pool1d(x, lower, true));
          expect_close(same("AveragePool", "SAME_UPPER"), slow_pool1d(x, upper, false));
          expect_close(same("AveragePool", "SAME_LOWER"), slow_pool1d(x, lower, false));
        }
        const Pooling valid = {kernel, stride};
        expect_close(run(node("MaxPool", 1,
                              {{"kernel_shape", Ints{kernel}},
                               {"strides", Ints{stride}},
                               {"auto_pad", std::string("VALID")}}),
                         {x}),
                     slow_pool1d(x, valid, true));
      }
    }
  }
}

TEST(Pool, RefusesMalformedNodes) {
  const torch::Tensor x = random_tensor({1, 2, 5});
  EXPECT_THAT(error_of(node("MaxPool", 1), {x}), HasSubstr("kernel_shape is []"));
  EXPECT_THAT(error_of(pool_node("MaxPool", {6}), {x}), HasSubstr("does not fit into 5"));
  EXPECT_THAT(error_of(pool_node("MaxPool", {2, 1, 1, 2, 0}), {x}),
              HasSubstr("wholly in the padding 2 and 0"));
  EXPECT_THAT(error_of(pool_node("MaxPool", {2}), {random_tensor({2, 5})}),
              HasSubstr("X has shape [2, 5]"));
  EXPECT_THAT(error_of(pool_node("MaxPool", {2}), {x.to(torch::kLong)}), HasSubstr("floating"));
  EXPECT_THAT(error_of(pool_node("AveragePool", {2, 1, 2}), {x}, 18),
              HasSubstr("'dilations' is not known"));
  EXPECT_THAT(error_of(pool_node("MaxPool", {2}), {x}, 9), HasSubstr("'ceil_mode' is not known"));
}

TEST(GlobalPool, ReducesAllSpatialAxes) {
  const torch::Tensor x = random_tensor({2, 3, 4, 5});
  expect_close(run(node("GlobalAveragePool", 1), {x}), x.flatten(2).mean(2).view({2, 3, 1, 1}));
  expect_close(run(node("GlobalMaxPool", 1), {x}),
               std::get<0>(x.flatten(2).max(2)).view({2, 3, 1, 1}));
  expect_gradient(node("GlobalAveragePool", 1), {x});
  expect_gradient(node("GlobalMaxPool", 1), {x});
  EXPECT_THAT(error_of(node("GlobalMaxPool", 1), {torch::zeros({2, 3})}), HasSubstr("[2, 3]"));
  EXPECT_THAT(error_of(node("GlobalMaxPool", 1), {torch::zeros({2, 3, 0})}), HasSubstr("empty"));
}

TEST(Softmax, FlattensBeforeOpset13) {
  const torch::Tensor x = random_tensor({2, 3, 4});
  const torch::Tensor e = x.exp();
  const torch::Tensor by_axis = e / e.sum(-1, true);
  const torch::Tensor by_row = e / e.sum(Ints{1, 2}, true);
  expect_close(run(node("Softmax", 1), {x}, 13), by_axis);
  expect_close(run(node("Softmax", 1), {x}, 12), by_row);
  expect_close(run(node("Softmax", 1), {x}, 9), by_row);
  expect_close(run(node("LogSoftmax", 1), {x}, 13), by_axis.log());
  expect_close(run(node("LogSoftmax", 1), {x}, 11), by_row.log());
  expect_close(run(node("Softmax", 1, {{"axis", int64_t{1}}}), {x}, 13), e / e.sum(1, true));
  expect_close(run(node("Softmax", 1, {{"axis", int64_t{0}}}), {x}, 11), e / e.sum());
  expect_close(run(node("Softmax", 1, {{"axis", int64_t{-1}}}), {x}, 11), by_axis);
  expect_close(run(node("Softmax", 1), {x.transpose(0, 2)}, 11),
               e.transpose(0, 2) / e.transpose(0, 2).sum(Ints{1, 2}, true));
  expect_gradient(node("Softmax", 1), {x}, 12);
  expect_gradient(node("LogSoftmax", 1), {x}, 13);
  EXPECT_THAT(error_of(node("Softmax", 1, {{"axis", int64_t{3}}}), {x}), HasSubstr("axis 3"));
  EXPECT_THAT(error_of(node("Softmax", 1), {x.to(torch::kLong)}), HasSubstr("floating-point"));
}

TEST(Reduce, AxesAsAttributeOrInput) {
  const torch::Tensor x = random_tensor({2, 3, 4});
  const torch::Tensor axes = torch::tensor({int64_t{0}, int64_t{-1}});
  const std::map<std::string, Attribute> attribute = {{"axes", Ints{0, -1}}};
  const torch::Tensor rows = x.permute({1, 0, 2}).flatten(1);  // [3, 8]
  const auto check = [&](const std::string& op, const torch::Tensor& expected) {
    const int64_t change = op == "ReduceSum" ? 13 : 18;
    auto dropped = attribute;
    dropped["keepdims"] = int64_t{0};
    expect_close(run(node(op, 1, attribute), {x}, change - 1), expected.view({1, 3, 1}));
    expect_close(run(node(op, 1, dropped), {x}, 9), expected);
    expect_close(run(node(op, 2), {x, axes}, change), expected.view({1, 3, 1}));
    expect_close(run(node(op, 2, {{"keepdims", int64_t{0}}}), {x, axes}, 21), expected);
    expect_gradient(node(op, 1, attribute), {x}, 11);
    const torch::Tensor all = run(node(op, 1), {x}, 11);
    EXPECT_EQ(all.sizes(), torch::IntArrayRef({1, 1, 1}));
    expect_close(run(node(op, 1, {{"keepdims", int64_t{0}}}), {x}, 18), all.squeeze());
    const std::map<std::string, Attribute> noop = {{"noop_with_empty_axes", int64_t{1}}};
    expect_close(run(node(op, 1, noop), {x}, 18), x);
    expect_close(run(node(op, 2, noop), {x, torch::zeros({0}, torch::kLong)}, 18), x);
    expect_close(run(node(op, 2, noop), {x, axes}, 18), expected.view({1, 3, 1}));
    expect_close(run(node(op, 1), {torch::full({}, 3.0, torch::kDouble)}, 18),
                 torch::full({}, 3.0, torch::kDouble));
    EXPECT_THAT(error_of(node(op, 2), {x, axes}, change - 1), HasSubstr("has 2 inputs"));
    EXPECT_THAT(error_of(node(op, 1, attribute), {x}, change), HasSubstr("'axes' is not known"));
  };
  check("ReduceMean", rows.mean(1));
  check("ReduceSum", rows.sum(1));
  check("ReduceMax", std::get<0>(rows.max(1)));
  check("ReduceMin", std::get<0>(rows.min(1)));
}

TEST(Reduce, IntegersStayIntegersAndErrorsAreClear) {
  const torch::Tensor x = torch::tensor({-3, 4, 6}, torch::kInt);
  const auto one = [](int64_t value) { return torch::full({1}, value, torch::kInt); };
  expect_close(run(node("ReduceSum", 1), {x}), one(7));
  expect_close(run(node("ReduceMean", 1), {x}), one(2));
  expect_close(run(node("ReduceMax", 1), {x}), one(6));
  EXPECT_THAT(error_of(node("ReduceSum", 1, {{"axes", Ints{0, -1}}}), {x}, 11),
              HasSubstr("axis 0 is named twice"));
  EXPECT_THAT(error_of(node("ReduceMax", 1, {{"axes", Ints{1}}}), {x}, 11), HasSubstr("axis 1"));
  EXPECT_THAT(error_of(node("ReduceMax", 1), {torch::zeros({2, 0})}),
              HasSubstr("data has shape [2, 0]"));
  EXPECT_EQ(run(node("ReduceSum", 1), {torch::zeros({2, 0})}).item<float>(), 0);
}

// The indices lead back to the largest numbers, and MaxUnpool puts these where they were.
TEST(MaxPool, IndicesCountThroughTheWholeTensor) {
  const torch::Tensor x = random_tensor({2, 3, 7, 6});
  for (const Ints& pads : {Ints{0, 0, 0, 0}, Ints{1, 0, 0, 1}, Ints{1, 1, 1, 1}}) {
    for (const int64_t dilation : {1, 2}) {
      Node pool = node("MaxPool", 1,
                       {{"kernel_shape", Ints{2, 3}},
                        {"strides", Ints{2, 1}},
                        {"pads", pads},
                        {"dilations", Ints{dilation, 1}}});
      pool.outputs = {"y", "indices"};
      const Tensors found = make_op(pool, 17)->forward({x});
      ASSERT_EQ(found.size(), 2u);
      EXPECT_EQ(found[1].scalar_type(), torch::kLong);
      EXPECT_TRUE(
          torch::equal(x.flatten().index_select(0, found[1].flatten()), found[0].flatten()));
      pool.attributes["storage_order"] = int64_t{1};
      const torch::Tensor turned = make_op(pool, 17)->forward({x})[1];
      EXPECT_TRUE(torch::equal(x.transpose(2, 3).flatten().index_select(0, turned.flatten()),
                               found[0].flatten()));
    }
  }
  Node line = node("MaxPool", 1, {{"kernel_shape", Ints{3}}, {"ceil_mode", int64_t{1}}});
  line.outputs = {"y", "indices"};
  const Tensors flat = make_op(line, 17)->forward({x.flatten(2)});
  EXPECT_TRUE(torch::equal(x.flatten().index_select(0, flat[1].flatten()), flat[0].flatten()));
}

TEST(MaxUnpool, PutsNumbersBack) {
  const torch::Tensor x = random_tensor({2, 1, 4, 4});
  const std::map<std::string, Attribute> window = {{"kernel_shape", Ints{2, 2}},
                                                   {"strides", Ints{2, 2}}};
  Node pool = node("MaxPool", 1, window);
  pool.outputs = {"y", "indices"};
  const Tensors pooled = make_op(pool, 17)->forward({x});
  const torch::Tensor back = run(node("MaxUnpool", 2, window), pooled);
  ASSERT_EQ(back.sizes(), x.sizes());
  EXPECT_TRUE(torch::equal(back, torch::where(back != 0, x, torch::zeros_like(x))));
  EXPECT_EQ((back != 0).sum().item<int64_t>(), 8);
  const torch::Tensor shape = torch::tensor({2, 1, 5, 6}, torch::kLong);
  const torch::Tensor large = run(node("MaxUnpool", 3, window), {pooled[0], pooled[1], shape});
  EXPECT_TRUE(torch::equal(large.narrow(2, 0, 4).narrow(3, 0, 4), back));
  EXPECT_EQ(large.sizes(), torch::IntArrayRef({2, 1, 5, 6}));
  expect_gradient(node("MaxUnpool", 2, window), pooled);
  EXPECT_THAT(error_of(node("MaxUnpool", 2, window), {pooled[0], pooled[1] + 32}),
              HasSubstr("index"));
  EXPECT_THAT(error_of(node("MaxUnpool", 3, window), {pooled[0], pooled[1], shape - 4}),
              HasSubstr("output_shape is"));
}

// ⟨unfold(image), blocks⟩ = ⟨image, col2im(blocks)⟩ for all blocks: one is the other's transpose.
TEST(Col2Im, IsTheTransposeOfTakingBlocksOut) {
  const torch::Tensor image = random_tensor({2, 3, 6, 5});
  const std::map<std::string, Attribute> attributes = {
      {"strides", Ints{2, 1}}, {"dilations", Ints{1, 2}}, {"pads", Ints{1, 0, 0, 2}}};
  const torch::Tensor padded = torch::constant_pad_nd(image, {0, 2, 1, 0});
  Tensors taps;
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 2; ++j) {
      taps.push_back(padded.slice(2, i, i + 5, 2).slice(3, 2 * j, 2 * j + 5).flatten(2));
    }
  }
  const torch::Tensor taken = torch::stack(taps, 2).reshape({2, 18, -1});
  const torch::Tensor blocks = random_tensor({2, 18, 15});
  ASSERT_EQ(taken.sizes(), blocks.sizes());
  const torch::Tensor sizes = torch::tensor({6, 5}, torch::kLong);
  const torch::Tensor block = torch::tensor({3, 2}, torch::kLong);
  const Node made = node("Col2Im", 3, attributes);
  const torch::Tensor y = run(made, {blocks, sizes, block}, 18);
  ASSERT_EQ(y.sizes(), image.sizes());
  EXPECT_NEAR((taken * blocks).sum().item<double>(), (image * y).sum().item<double>(), 1e-12);
  expect_gradient(made, {blocks, sizes, block}, 18);
  EXPECT_THAT(error_of(made, {blocks, sizes + 1, block}, 18), HasSubstr("positions"));
  EXPECT_THAT(error_of(made, {blocks, sizes * (int64_t{1} << 26), block}, 18), HasSubstr("Col2Im"));
  EXPECT_THAT(error_of(made, {blocks, sizes - 9, block}, 18), HasSubstr("expected sizes from 1"));
}

}  // namespace
}  // namespace fcp
