// Constants of graphs as libtorch's tensors, and back: shared, not copied.
#include "fcp/nn/runtime/element_types.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "fcp/base/error.h"

namespace fcp {
namespace {

TEST(ElementTypes, OfEveryTypeThereAndBack) {
  for (const torch::ScalarType type :
       {torch::kFloat, torch::kDouble, torch::kHalf, torch::kBFloat16, torch::kLong, torch::kInt,
        torch::kShort, torch::kChar, torch::kByte, torch::kBool}) {
    EXPECT_EQ(scalar_type(element_type(type)), type);
    const torch::Tensor tensor = (torch::rand({2, 3}) * 100 - 20).abs().to(type);
    const ConstantTensor constant = tensor;
    EXPECT_EQ(constant.type(), element_type(type));
    EXPECT_EQ(constant.shape(), (std::vector<int64_t>{2, 3}));
    EXPECT_TRUE(torch::equal(constant, tensor)) << type;
    for (int64_t i = 0; i < 6; ++i) {
      EXPECT_EQ(constant.number(i), tensor.flatten()[i].to(torch::kDouble).item<double>()) << type;
    }
  }
  EXPECT_THROW(element_type(torch::kComplexFloat), Error);
  EXPECT_EQ(element_type(torch::ScalarType::Undefined), ElementType::kUndefined);
}

TEST(ElementTypes, NumbersAreShared) {
  const torch::Tensor tensor = torch::rand({3, 4});
  ConstantTensor constant = tensor;
  EXPECT_TRUE(constant.tensor().is_same(tensor));
  EXPECT_EQ(constant.data(), tensor.data_ptr());
  // Numbers of our own outlive the constant they came from.
  constant = constant_tensor<float>({1, 2, 3, 4}, {2, 2});
  const void* numbers = constant.data();
  const torch::Tensor lent = constant;
  constant = {};
  EXPECT_EQ(lent.data_ptr(), numbers);
  EXPECT_TRUE(torch::equal(lent, torch::tensor({{1.0f, 2.0f}, {3.0f, 4.0f}})));
}

TEST(ElementTypes, OnlyNumbersInOrderAreShared) {
  const torch::Tensor turned = torch::rand({3, 4}).t();
  const ConstantTensor constant = turned;
  EXPECT_NE(constant.data(), turned.data_ptr());
  EXPECT_TRUE(torch::equal(constant, turned));
  const torch::Tensor learned = torch::rand({2}).requires_grad_(true);
  EXPECT_FALSE(ConstantTensor(learned).tensor().requires_grad());
  EXPECT_FALSE(ConstantTensor(torch::Tensor()).defined());
  EXPECT_FALSE(ConstantTensor().tensor().defined());
  EXPECT_EQ(ConstantTensor::zeros(ElementType::kInt64, {0, 2}).tensor().sizes(),
            (std::vector<int64_t>{0, 2}));
}

}  // namespace
}  // namespace fcp
