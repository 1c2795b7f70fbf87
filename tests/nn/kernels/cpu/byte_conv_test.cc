// Convolutions and products of bytes against sums of whole numbers, by every branch that this
// processor can run.
#include "fcp/nn/kernels/cpu/byte_conv.h"

#include <array>
#include <limits>
#include <vector>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace fcp {
namespace {

using Pair = std::array<int64_t, 2>;  // of rows, and along them

struct ByteCase {
  int64_t channels, filters, side, kernel, stride, dilation, pad;  // dilation of rows alone
};
const std::vector<ByteCase> kByteCases = {
    {1, 16, 28, 3, 1, 1, 1}, {3, 6, 17, 5, 2, 1, 2},  {16, 33, 7, 3, 1, 1, 1},
    {5, 1, 9, 2, 3, 1, 0},   {64, 70, 8, 1, 2, 1, 0}, {7, 130, 6, 3, 1, 2, 2},
    {2, 48, 1, 1, 1, 1, 0},  {9, 15, 30, 7, 4, 1, 3}, {300, 17, 4, 3, 1, 1, 1},
};

torch::Tensor random_bytes(at::IntArrayRef shape, torch::ScalarType type) {
  return type == torch::kByte ? torch::randint(0, 256, shape).to(type)
                              : torch::randint(-128, 128, shape).to(type);
}

ConvPlan plan_of(const ByteCase& each) {
  const auto places = [&](int64_t dilation) {
    return (each.side + 2 * each.pad - (each.kernel - 1) * dilation - 1) / each.stride + 1;
  };
  const auto both = [](int64_t n) { return std::vector<int64_t>(2, n); };
  return {both(each.stride),
          {each.dilation, 1},
          both(each.pad),
          both(each.pad),
          {places(each.dilation), places(1)},
          1};
}

torch::Tensor exact_sums(const ByteCase& each, const torch::Tensor& x, int32_t x_zero,
                         const torch::Tensor& w, const torch::Tensor& zero) {
  const std::vector<int64_t> strides(2, each.stride), dilations = {each.dilation, 1},
                                                      pads(2, each.pad), none(2, 0);
  return torch::convolution(x.to(torch::kDouble) - x_zero,
                            w.to(torch::kDouble) - zero.to(torch::kDouble).view({-1, 1, 1, 1}), {},
                            strides, pads, dilations, /*transposed=*/false, none, 1);
}

torch::Tensor per_filter(const std::vector<float>& numbers) {
  return torch::tensor(numbers).view({1, -1, 1, 1});
}

ByteEnd random_end(int64_t filters, bool shifts) {
  ByteEnd end;
  for (int64_t i = 0; i < filters; ++i) {
    end.bias.push_back(static_cast<int32_t>(torch::randint(-5000, 5000, {1}).item<int64_t>()));
    end.scale.push_back(torch::rand({1}).item<float>() * 0.01f + 1e-4f);
    if (shifts) end.shift.push_back(torch::randn({1}).item<float>());
  }
  end.low = -std::numeric_limits<float>::infinity();
  end.high = std::numeric_limits<float>::infinity();
  return end;
}

// Results are bytes, after ReLU.
void to_bytes(ByteEnd& end) {
  end.type = torch::kByte;
  end.zero = 31;
  end.low = 31;
  end.high = 255;
}

// What becomes of exact sums, in single precision as the kernel does it.
torch::Tensor finished(const torch::Tensor& sums, const ByteEnd& end) {
  const torch::Tensor bias = torch::tensor(end.bias).view({1, -1, 1, 1});
  torch::Tensor y = (sums + bias).to(torch::kFloat) * per_filter(end.scale);
  if (!end.shift.empty()) y = y + per_filter(end.shift);
  if (end.type == torch::kFloat) return y.clamp(end.low, end.high);
  return (torch::round(y / end.step) + end.zero).clamp(end.low, end.high).to(end.type);
}

TEST(ByteConv, EqualsSumsOfWholeNumbers) {
  torch::manual_seed(1);
  for (const ByteCase& each : kByteCases) {
    for (const auto type : {torch::kByte, torch::kChar}) {
      const torch::Tensor x = random_bytes({3, each.channels, each.side, each.side}, type);
      const torch::Tensor w =
          random_bytes({each.filters, each.channels, each.kernel, each.kernel}, torch::kChar);
      const torch::Tensor zero = torch::zeros({1}, torch::kChar);
      const int32_t x_zero = type == torch::kByte ? 77 : -9;
      const auto filters = make_byte_filters(w, {});
      ASSERT_NE(filters, nullptr);
      const ConvPlan plan = plan_of(each);
      const torch::Tensor sums = exact_sums(each, x, x_zero, w, zero);
      ByteEnd end = random_end(each.filters, /*shifts=*/false);
      const torch::Tensor y = byte_conv(x, x_zero, *filters, plan, end);
      ASSERT_EQ(y.sizes(), sums.sizes());
      EXPECT_TRUE(torch::equal(y, finished(sums, end))) << w.sizes();
      to_bytes(end);
      const torch::Tensor q = byte_conv(x, x_zero, *filters, plan, end);
      EXPECT_TRUE(torch::equal(q, finished(sums, end))) << w.sizes();
      const torch::Tensor last = x.contiguous(at::MemoryFormat::ChannelsLast);
      EXPECT_TRUE(torch::equal(byte_conv(last, x_zero, *filters, plan, end), q));
      EXPECT_TRUE(torch::equal(byte_conv(x.narrow(0, 1, 1), x_zero, *filters, plan, end),
                               q.narrow(0, 1, 1)));
    }
  }
}

// Numbers of any size, or the ends of their range alone, whose products are largest in pairs.
torch::Tensor test_bytes(at::IntArrayRef shape, torch::ScalarType type, bool ends) {
  if (!ends) return random_bytes(shape, type);
  const torch::Tensor high = torch::rand(shape) < 0.7;
  return (type == torch::kByte ? high * 255 : high * 255 - 128).to(type);
}

// Σ (x − x_zero) w, one number at a time.
torch::Tensor slow_sums(const torch::Tensor& x, int32_t x_zero, const torch::Tensor& w,
                        const ConvPlan& plan) {
  const torch::Tensor from = x.to(torch::kLong).contiguous(), by = w.to(torch::kLong).contiguous();
  const auto in = from.accessor<int64_t, 4>(), weight = by.accessor<int64_t, 4>();
  torch::Tensor sums =
      torch::zeros({x.size(0), w.size(0), plan.places[0], plan.places[1]}, torch::kLong);
  auto out = sums.accessor<int64_t, 4>();
  for (int64_t n = 0; n < x.size(0); ++n) {
    for (int64_t m = 0; m < w.size(0); ++m) {
      for (int64_t y = 0; y < plan.places[0]; ++y) {
        for (int64_t z = 0; z < plan.places[1]; ++z) {
          for (int64_t i = 0; i < w.size(2); ++i) {
            for (int64_t j = 0; j < w.size(3); ++j) {
              const int64_t row = y * plan.strides[0] + i * plan.dilations[0] - plan.begins[0];
              const int64_t column = z * plan.strides[1] + j - plan.begins[1];
              if (row < 0 || row >= x.size(2) || column < 0 || column >= x.size(3)) continue;
              for (int64_t c = 0; c < x.size(1); ++c) {
                out[n][m][y][z] += (in[n][c][row][column] - x_zero) * weight[m][c][i][j];
              }
            }
          }
        }
      }
    }
  }
  return sums;
}

int64_t random_from(int64_t low, int64_t high) {
  return torch::randint(low, high + 1, {1}).item<int64_t>();
}

// Odd shapes, and zero points at the ends of their range.
TEST(ByteConv, AllBranchesGiveTheBitsOfASlowLoop) {
  torch::manual_seed(4);
  for (int round = 0; round < 60; ++round) {
    const bool ends = round % 2 == 0, is_signed = round % 4 < 2, shifts = round % 3 == 0;
    const auto type = is_signed ? torch::kChar : torch::kByte;
    const Pair kernel = {random_from(1, 5), random_from(1, 5)};
    const int64_t channels = random_from(1, round % 5 == 0 ? 70 : 9);
    const int64_t outputs = random_from(1, round % 7 == 0 ? 140 : 40);
    ConvPlan plan = {{random_from(1, 3), random_from(1, 3)},
                     {random_from(1, 2), 1},
                     {random_from(0, 2), random_from(0, 2)},
                     {random_from(0, 2), random_from(0, 2)},
                     {0, 0},
                     1};
    Pair side = {};
    for (size_t axis = 0; axis < 2; ++axis) {
      const int64_t window = (kernel[axis] - 1) * plan.dilations[axis] + 1;
      side[axis] = window + random_from(0, axis == 0 ? 4 : 20);
      const int64_t padded = side[axis] + plan.begins[axis] + plan.ends[axis];
      plan.places[axis] = (padded - window) / plan.strides[axis] + 1;
    }
    const torch::Tensor x = test_bytes({2, channels, side[0], side[1]}, type, ends);
    const torch::Tensor w =
        test_bytes({outputs, channels, kernel[0], kernel[1]}, torch::kChar, ends);
    const auto x_zero = static_cast<int32_t>(
        (is_signed ? -128 : 0) + (ends ? 255 * random_from(0, 1) : random_from(0, 255)));
    const torch::Tensor sums = slow_sums(x, x_zero, w, plan);
    for (const bool bytes : {false, true}) {
      ByteEnd end = random_end(outputs, shifts);
      if (bytes) {
        to_bytes(end);
        end.step = shifts ? 0.37f : 1;
      }
      const torch::Tensor expected = finished(sums.to(torch::kDouble), end);
      for (const ByteBranch branch : byte_branches()) {
        const auto filters = make_byte_filters(w, {}, branch);
        ASSERT_NE(filters, nullptr);
        EXPECT_TRUE(torch::equal(byte_conv(x, x_zero, *filters, plan, end), expected))
            << "round " << round << ", branch " << static_cast<int>(branch) << ", " << x.sizes()
            << " by " << w.sizes() << (bytes ? ", bytes" : ", floats");
      }
    }
  }
}

// The longest window whose sum fits 32 bits, with the largest numbers.
TEST(ByteProduct, LargestSumsFitInAllBranches) {
  constexpr int64_t kInputs = 1 << 15;
  for (const auto& [number, zero, weight] : std::vector<std::array<int32_t, 3>>{
           {255, 0, -128}, {0, 255, -128}, {255, 0, 127}, {255, 255, 127}}) {
    const torch::Tensor x = torch::full({3, kInputs}, number, torch::kByte);
    const torch::Tensor w = torch::full({5, kInputs, 1, 1}, weight, torch::kChar);
    ByteEnd end = random_end(5, /*shifts=*/false);
    const double sum = static_cast<double>(kInputs) * (number - zero) * weight;
    end.bias.assign(5, sum < 0 ? -(1 << 30) + 1 : (1 << 30) - 1);
    const torch::Tensor expected =
        finished(torch::full({3, 5, 1, 1}, sum, torch::kDouble), end).flatten(1);
    for (const ByteBranch branch : byte_branches()) {
      const auto filters = make_byte_filters(w, {}, branch);
      ASSERT_NE(filters, nullptr);
      EXPECT_TRUE(torch::equal(byte_product(x, zero, *filters, end), expected))
          << "branch " << static_cast<int>(branch) << ": " << number << " " << zero << " "
          << weight;
    }
  }
}

TEST(ByteBranches, HoldTheOnesOfAnyProcessor) {
  const auto& branches = byte_branches();
  EXPECT_EQ(branches.back(), ByteBranch::kPlain128);
  const auto filters = make_byte_filters(torch::ones({1, 1, 1, 1}, torch::kChar), {});
  EXPECT_EQ(filters->branch, branches.front());
}

// A bias of single precision, and a step of its own.
TEST(ByteConv, AddsAShiftAndDividesByAStep) {
  torch::manual_seed(2);
  const ByteCase each = {6, 20, 12, 3, 1, 1, 1};
  const torch::Tensor x = random_bytes({2, 6, 12, 12}, torch::kByte);
  const torch::Tensor w = random_bytes({20, 6, 3, 3}, torch::kByte);
  const torch::Tensor zero = torch::full({20}, 128, torch::kByte);
  const auto filters = make_byte_filters(w, zero);
  ASSERT_NE(filters, nullptr);
  const torch::Tensor sums = exact_sums(each, x, 3, w, zero);
  ByteEnd end = random_end(20, /*shifts=*/true);
  EXPECT_TRUE(torch::equal(byte_conv(x, 3, *filters, plan_of(each), end), finished(sums, end)));
  end.type = torch::kChar;
  end.step = 0.37f;
  end.zero = -4;
  end.low = -128;
  end.high = 100;
  EXPECT_TRUE(torch::equal(byte_conv(x, 3, *filters, plan_of(each), end), finished(sums, end)));
}

TEST(ByteProduct, EqualsSumsOfWholeNumbersInAnyBatch) {
  torch::manual_seed(3);
  for (const auto& [rows, inputs, outputs] : std::vector<std::array<int64_t, 3>>{
           {1, 1, 1}, {57, 33, 10}, {130, 64, 100}, {5, 1568, 64}}) {
    const torch::Tensor x = random_bytes({rows, inputs}, torch::kChar);
    const torch::Tensor w = random_bytes({outputs, inputs}, torch::kChar);
    const auto filters = make_byte_filters(w.unsqueeze(2).unsqueeze(3), {});
    const ByteEnd end = random_end(outputs, /*shifts=*/false);
    const torch::Tensor sums = torch::matmul(x.to(torch::kDouble) - 5, w.to(torch::kDouble).t());
    const torch::Tensor expected = finished(sums.unsqueeze(2).unsqueeze(3), end).flatten(1);
    const torch::Tensor y = byte_product(x, 5, *filters, end);
    EXPECT_TRUE(torch::equal(y, expected)) << x.sizes();
    EXPECT_TRUE(torch::equal(byte_product(x.narrow(0, rows - 1, 1), 5, *filters, end),
                             y.narrow(0, rows - 1, 1)));
    const int before = at::get_num_threads();
    at::set_num_threads(2);
    EXPECT_TRUE(torch::equal(byte_product(x, 5, *filters, end), y));
    at::set_num_threads(before);
  }
}

TEST(ByteFilters, RefusesWhatIsNoSignedByte) {
  const torch::Tensor w = torch::full({2, 3, 1, 1}, 200, torch::kByte);
  EXPECT_EQ(make_byte_filters(w, {}), nullptr);
  EXPECT_NE(make_byte_filters(w, torch::full({2}, 128, torch::kByte)), nullptr);
  EXPECT_EQ(make_byte_filters(torch::zeros({1, 40000, 1, 1}, torch::kChar), {}), nullptr);
}

}  // namespace
}  // namespace fcp
