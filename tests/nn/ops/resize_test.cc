// Resize and Upsample against the specification's formula, place by place, and its own examples.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/nn/ops/op_testing.h"

namespace fcp {
namespace {

using Ints = std::vector<int64_t>;
using testing::HasSubstr;

torch::Tensor floats(const std::vector<float>& values) { return torch::tensor(values); }
torch::Tensor longs(const Ints& values) { return torch::tensor(values, torch::kLong); }

Node resize(const std::string& mode, const std::string& coordinates,
            const std::string& nearest = "round_prefer_floor") {
  return node(
      "Resize", 4,
      {{"mode", mode}, {"coordinate_transformation_mode", coordinates}, {"nearest_mode", nearest}});
}

torch::Tensor run_scales(const Node& made, const torch::Tensor& x, const std::vector<float>& scales,
                         int64_t opset = 19) {
  return run(made, {x, torch::Tensor(), floats(scales), torch::Tensor()}, opset);
}

torch::Tensor run_sizes(const Node& made, const torch::Tensor& x, const Ints& sizes,
                        int64_t opset = 19) {
  return run(made, {x, torch::Tensor(), torch::Tensor(), longs(sizes)}, opset);
}

double source(const std::string& mode, double x, double scale, double input, double output) {
  if (mode == "half_pixel") return (x + 0.5) / scale - 0.5;
  if (mode == "pytorch_half_pixel") return output > 1 ? (x + 0.5) / scale - 0.5 : 0;
  if (mode == "align_corners") return output > 1 ? x * (input - 1) / (output - 1) : 0;
  if (mode == "half_pixel_symmetric") {
    const double adjustment = output / (scale * input);
    return input / 2 * (1 - adjustment) + (x + 0.5) / scale - 0.5;
  }
  if (mode == "tf_half_pixel_for_nn") return (x + 0.5) / scale;
  return x / scale;
}

double nearest_place(const std::string& mode, double x) {
  const bool tie = x - std::floor(x) == 0.5;
  if (mode == "floor" || (tie && mode == "round_prefer_floor")) return std::floor(x);
  if (mode == "ceil" || (tie && mode == "round_prefer_ceil")) return std::ceil(x);
  return std::round(x);
}

// Resizes the last axis of a tensor.
torch::Tensor slow_resize(const torch::Tensor& x, int64_t output, double scale, bool linear,
                          const std::string& coordinates, const std::string& nearest) {
  const int64_t input = x.size(-1);
  if (output == input && scale == 1) return x;
  const auto value = [&](double place) {  // the edge goes on beyond it
    const auto index = static_cast<int64_t>(place);
    return x.select(-1, std::max<int64_t>(0, std::min(index, input - 1)));
  };
  Tensors places;
  for (int64_t i = 0; i < output; ++i) {
    const double at = source(coordinates, static_cast<double>(i), scale, static_cast<double>(input),
                             static_cast<double>(output));
    const double below = std::floor(at);
    places.push_back(linear ? value(below) * (1 - (at - below)) + value(below + 1) * (at - below)
                            : value(nearest_place(nearest, at)));
  }
  return torch::stack(places, -1);
}

const std::vector<std::string> kCoordinates = {"half_pixel",           "pytorch_half_pixel",
                                               "align_corners",        "asymmetric",
                                               "half_pixel_symmetric", "tf_half_pixel_for_nn"};
const std::vector<std::string> kNearest = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                           "ceil"};

// Scales that are exact in binary, so that ties are ties in the reference too.
TEST(Resize, ScalesAgainstTheFormula) {
  const torch::Tensor x = random_tensor({2, 3, 7, 6});
  for (const std::string& coordinates : kCoordinates) {
    const int64_t opset = coordinates == "tf_half_pixel_for_nn" ? 11 : 19;
    for (const auto& [rows, columns] : std::vector<std::pair<float, float>>{
             {1, 1}, {2, 2}, {4, 2}, {3, 1}, {1.5, 0.5}, {0.25, 2.5}, {0.75, 8}, {0.15625, 5}}) {
      SCOPED_TRACE(testing::Message() << coordinates << " " << rows << " " << columns);
      const int64_t height = static_cast<int64_t>(7 * rows),
                    width = static_cast<int64_t>(6 * columns);
      const auto slow = [&](bool linear, const std::string& nearest) {
        const torch::Tensor tall =
            slow_resize(x.transpose(2, 3), height, rows, linear, coordinates, nearest);
        return slow_resize(tall.transpose(2, 3), width, columns, linear, coordinates, nearest);
      };
      expect_close(run_scales(resize("linear", coordinates), x, {1, 1, rows, columns}, opset),
                   slow(true, ""));
      for (const std::string& nearest : kNearest) {
        SCOPED_TRACE(nearest);
        // The centring is not exact in binary then, so floor and ceil may fall either way.
        const bool inexact =
            coordinates == "half_pixel_symmetric" &&
            (7 * rows != std::floor(7 * rows) || 6 * columns != std::floor(6 * columns));
        if (inexact && (nearest == "floor" || nearest == "ceil")) continue;
        expect_close(
            run_scales(resize("nearest", coordinates, nearest), x, {1, 1, rows, columns}, opset),
            slow(false, nearest));
      }
    }
  }
}

TEST(Resize, SizesAgainstTheFormula) {
  const torch::Tensor x = random_tensor({2, 3, 8});
  for (const std::string& coordinates : kCoordinates) {
    const int64_t opset = coordinates == "tf_half_pixel_for_nn" ? 11 : 19;
    for (const int64_t size : {1, 2, 4, 8, 12, 16}) {
      SCOPED_TRACE(testing::Message() << coordinates << " " << size);
      const double scale = static_cast<double>(size) / 8;
      expect_close(run_sizes(resize("linear", coordinates), x, {2, 3, size}, opset),
                   slow_resize(x, size, scale, true, coordinates, ""));
      for (const std::string& nearest : kNearest) {
        expect_close(run_sizes(resize("nearest", coordinates, nearest), x, {2, 3, size}, opset),
                     slow_resize(x, size, scale, false, coordinates, nearest));
      }
    }
  }
}

TEST(Resize, ExamplesOfTheSpecification) {
  const auto image = [](const std::vector<double>& values, int64_t rows) {
    return torch::tensor(values, torch::kDouble).view({1, 1, rows, -1});
  };
  const torch::Tensor eight = image({1, 2, 3, 4, 5, 6, 7, 8}, 2);
  const torch::Tensor four = image({1, 2, 3, 4}, 2);
  const std::vector<float> shrink = {1, 1, 0.6f, 0.6f}, grow = {1, 1, 2, 2};
  expect_close(run_scales(resize("nearest", "half_pixel"), eight, shrink), image({1, 3}, 1));
  expect_close(run_scales(resize("linear", "half_pixel"), eight, shrink),
               image({2.6666665, 4.3333331}, 1), 1e-6);
  // By the formula, as onnxruntime and PyTorch; the specification's own test data differ here,
  // because they put the unrounded size 2.4 for the length of the output.
  expect_close(run_scales(resize("linear", "align_corners"), eight, shrink), image({1, 4}, 1),
               1e-6);
  expect_close(
      run_scales(resize("linear", "half_pixel"), four, grow),
      image({1, 1.25, 1.75, 2, 1.5, 1.75, 2.25, 2.5, 2.5, 2.75, 3.25, 3.5, 3, 3.25, 3.75, 4}, 4));
  expect_close(run_scales(resize("nearest", "asymmetric", "floor"), four, {1, 1, 2, 3}),
               image({1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 3, 3, 3, 4, 4, 4}, 4));
  // In opset 10 shrinking rounds up, growing rounds down.
  expect_close(run(node("Resize", 2), {eight, floats(shrink)}, 10), image({1, 3}, 1));
  expect_close(run(node("Resize", 2), {four, floats({1, 1, 1, 3})}, 10),
               image({1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4}, 2));
  expect_close(run(node("Resize", 2, {{"mode", std::string("linear")}}), {four, floats(grow)}, 10),
               image({1, 1.5, 2, 2, 2, 2.5, 3, 3, 3, 3.5, 4, 4, 3, 3.5, 4, 4}, 4));
}

// 1.2 in float is above 1.2: in exact arithmetic place 6 would look just below place 5.
TEST(Resize, CoordinatesAreRoundedLikeFloats) {
  const torch::Tensor x = torch::arange(10, torch::kDouble).view({1, 1, 10});
  const torch::Tensor y = run_scales(resize("nearest", "asymmetric", "floor"), x, {1, 1, 1.2f});
  EXPECT_EQ(y.size(2), 12);
  EXPECT_EQ(y[0][0][6].item<double>(), 5);
  EXPECT_EQ(run_scales(resize("nearest", "asymmetric", "floor"), x, {1, 1, 0.7f}).size(2), 7);
}

TEST(Resize, AnyAxisRankAndType) {
  const torch::Tensor x = random_tensor({3, 4});
  expect_close(run_sizes(resize("linear", "half_pixel"), x, {6, 4}),
               slow_resize(x.t(), 6, 2, true, "half_pixel", "").t());
  Node some = resize("linear", "asymmetric");
  some.attributes["axes"] = Ints{-1};
  expect_close(run_scales(some, x, {2.5f}, 18), slow_resize(x, 10, 2.5, true, "asymmetric", ""));
  const torch::Tensor integer = torch::arange(4).view({1, 1, 4});
  EXPECT_TRUE(torch::equal(run_sizes(resize("nearest", "half_pixel"), integer, {1, 1, 8}),
                           integer.repeat_interleave(2, 2)));
  const torch::Tensor volume = random_tensor({1, 2, 3, 4, 5});
  expect_close(run_scales(resize("nearest", "half_pixel"), volume, {1, 1, 2, 2, 2}),
               volume.repeat_interleave(2, 2).repeat_interleave(2, 3).repeat_interleave(2, 4));
  EXPECT_EQ(run_scales(resize("linear", "half_pixel"), volume.to(torch::kFloat), {1, 1, 2, 2, 3})
                .scalar_type(),
            torch::kFloat);
}

TEST(Resize, IsDifferentiable) {
  const torch::Tensor x = random_tensor({2, 2, 5, 4});
  const Tensors inputs = {x, torch::Tensor(), floats({1, 1, 2, 1.5f}), torch::Tensor()};
  for (const std::string coordinates : {"half_pixel", "align_corners", "asymmetric"}) {
    expect_gradient(resize("linear", coordinates), inputs, 13);
    expect_gradient(resize("nearest", coordinates), inputs, 13);
  }
}

TEST(Upsample, ScalesAsAttributeOrInput) {
  const torch::Tensor x = random_tensor({1, 2, 3});
  const torch::Tensor twice = x.repeat_interleave(3, 2);
  expect_close(run(node("Upsample", 1, {{"scales", std::vector<float>{1, 1, 3}}}), {x}, 7), twice);
  expect_close(run(node("Upsample", 2), {x, floats({1, 1, 3})}, 9), twice);
  expect_close(
      run(node("Upsample", 2, {{"mode", std::string("linear")}}), {x, floats({1, 1, 2})}, 9),
      slow_resize(x, 6, 2, true, "asymmetric", ""));
  EXPECT_THAT(error_of(node("Upsample", 2), {x, floats({1, 1, 0.5f})}, 9), HasSubstr("at least 1"));
  EXPECT_THAT(error_of(node("Upsample", 2), {x, floats({1, 1, 2})}, 10), HasSubstr("found 10"));
}

TEST(Resize, RefusesMalformedNodes) {
  const torch::Tensor x = random_tensor({1, 2, 5});
  const torch::Tensor none, scales = floats({1, 1, 2}), sizes = longs({1, 2, 9});
  const Node plain = resize("linear", "half_pixel");
  const auto error = [&](const std::string& name, Attribute value) {
    Node made = plain;
    made.attributes[name] = std::move(value);
    return error_of(made, {x, none, scales, none}, 18);
  };
  EXPECT_THAT(error("mode", std::string("area")), HasSubstr("mode 'area' is not supported"));
  EXPECT_THAT(error("antialias", int64_t{1}), HasSubstr("antialias"));
  EXPECT_THAT(error("keep_aspect_ratio_policy", std::string("not_larger")),
              HasSubstr("'not_larger'"));
  EXPECT_THAT(error("coordinate_transformation_mode", std::string("tf_crop_and_resize")),
              HasSubstr("'tf_crop_and_resize' is not supported"));
  EXPECT_THAT(error("nearest_mode", std::string("up")), HasSubstr("nearest_mode is 'up'"));
  EXPECT_THAT(error("axes", Ints{2}), HasSubstr("has 3 scales, expected 1"));
  EXPECT_THAT(error("axes", Ints{0, 1, 3}), HasSubstr("axis 3"));
  EXPECT_THAT(error_of(plain, {x, none, scales, sizes}), HasSubstr("both scales and sizes"));
  EXPECT_THAT(error_of(plain, {x, none, none, none}), HasSubstr("neither scales nor sizes"));
  EXPECT_THAT(error_of(plain, {x, none, floats({1, 1}), none}), HasSubstr("has 2 scales"));
  EXPECT_THAT(error_of(plain, {x, none, floats({1, 1, -2}), none}), HasSubstr("scale -2"));
  EXPECT_THAT(error_of(plain, {x, none, floats({1, 1, NAN}), none}), HasSubstr("scale nan"));
  EXPECT_THAT(error_of(plain, {x, none, floats({1, 1, 0.1f}), none}), HasSubstr("to 0 places"));
  EXPECT_THAT(error_of(plain, {x, none, floats({1, 1, 1e30f}), none}), HasSubstr("scale 1e+30"));
  EXPECT_THAT(error_of(plain, {x, none, floats({1, 1e6, 1e6}), none}), HasSubstr("more than"));
  EXPECT_THAT(error_of(plain, {x, none, none, longs({1, 2, -3})}), HasSubstr("to -3 places"));
  EXPECT_THAT(error_of(plain, {x.to(torch::kLong), none, scales, none}), HasSubstr("floating"));
}

}  // namespace
}  // namespace fcp
