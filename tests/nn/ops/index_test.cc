// Gathering, scattering, ordering and making tensors: gradients, and messages for bad nodes. What
// they compute, ONNX's own tests say (tests/parity/op_cases_test.cc).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/nn/ops/op_testing.h"

namespace fcp {
namespace {

using testing::HasSubstr;

torch::Tensor longs(const std::vector<int64_t>& values, const std::vector<int64_t>& shape) {
  return torch::tensor(values, torch::kLong).reshape(shape);
}

TEST(Index, GradientsFlowToTheData) {
  const torch::Tensor x = random_tensor({3, 4});
  expect_gradient(node("GatherElements", 2, {{"axis", int64_t{1}}}),
                  {x, longs({0, -1, 2, 2, 1, 0}, {3, 2})});
  expect_gradient(node("GatherND", 2), {x, longs({0, 1, 2, 3, 0, 1}, {3, 2})});
  expect_gradient(node("GatherND", 2, {{"batch_dims", int64_t{1}}}),
                  {x, longs({0, -1, 3}, {3, 1})});
  const torch::Tensor updates = random_tensor({3, 2});
  for (const char* reduction : {"none", "add", "mul"}) {
    expect_gradient(
        node("ScatterElements", 3, {{"axis", int64_t{1}}, {"reduction", std::string(reduction)}}),
        {x, longs({0, 1, 2, 3, 1, -1}, {3, 2}), updates}, 18);
    expect_gradient(node("ScatterND", 3, {{"reduction", std::string(reduction)}}),
                    {x, longs({2, 0}, {2, 1}), random_tensor({2, 4})}, 18);
  }
  expect_gradient(node("TopK", 2), {x, longs({2}, {1})});
  expect_gradient(node("Trilu", 1), {x});
  expect_gradient(node("CumSum", 2, {{"reverse", int64_t{1}}}), {x, longs({1}, {1})});
}

TEST(Index, RefusesWhatLiesOutside) {
  const torch::Tensor x = random_tensor({3, 4});
  EXPECT_THAT(error_of(node("GatherElements", 2), {x, longs({0, 3, 1, 1}, {1, 4})}),
              HasSubstr("index 3 is outside an axis of 3"));
  EXPECT_THAT(error_of(node("GatherND", 2), {x, longs({-4}, {1, 1})}),
              HasSubstr("index -4 is outside an axis of 3"));
  EXPECT_THAT(error_of(node("ScatterND", 3), {x, longs({0}, {1, 1}), random_tensor({1, 3})}),
              HasSubstr("expected updates of shape [1, 4]"));
  EXPECT_THAT(error_of(node("ScatterElements", 3, {{"reduction", std::string("mean")}}),
                       {x, longs({0}, {1, 1}), random_tensor({1, 1})}, 18),
              HasSubstr("attribute 'reduction' is 'mean'"));
  EXPECT_THAT(error_of(node("TopK", 2), {x, longs({5}, {1})}),
              HasSubstr("asks for 5 of 4 elements"));
}

TEST(Generate, RefusesWhatWouldNeverEnd) {
  const auto number = [](int64_t value) { return torch::tensor(value, torch::kLong); };
  EXPECT_THAT(error_of(node("Range", 3), {number(0), number(9), number(0)}),
              HasSubstr("delta is 0"));
  EXPECT_THAT(error_of(node("Range", 3), {number(0), number(int64_t{1} << 60), number(1)}),
              HasSubstr("more than"));
  EXPECT_EQ(run(node("Range", 3), {number(9), number(0), number(-4)}).numel(), 3);
}

TEST(TopK, TheFirstOfEqualsComesFirst) {
  const auto op = make_op(node("TopK", 2), 17);
  const Tensors found = op->forward({torch::tensor({1.0, 3.0, 3.0, 3.0}), longs({2}, {1})});
  EXPECT_TRUE(torch::equal(found[1], longs({1, 2}, {2})));
}

TEST(TensorScatter, WritesFromAPlaceOfEachRow) {
  const torch::Tensor cache = random_tensor({2, 3, 4, 2}), update = random_tensor({2, 3, 2, 2});
  const torch::Tensor first = torch::tensor({1, 3}, torch::kLong);
  const torch::Tensor y = run(node("TensorScatter", 3, {{"mode", std::string("circular")}}),
                              {cache, update, first}, 24);
  torch::Tensor expected = cache.clone();
  for (int64_t t = 0; t < 2; ++t) {
    expected[0].select(1, 1 + t).copy_(update[0].select(1, t));
    expected[1].select(1, (3 + t) % 4).copy_(update[1].select(1, t));
  }
  EXPECT_TRUE(torch::equal(y, expected));
  EXPECT_THAT(error_of(node("TensorScatter", 3), {cache, update, first}, 24),
              testing::HasSubstr("writes beyond the 4 places"));
  EXPECT_TRUE(
      torch::equal(run(node("TensorScatter", 2), {cache, update}, 24).narrow(2, 0, 2), update));
}

}  // namespace
}  // namespace fcp
