#include "fcp/nn/graph/constant_tensor.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>

#include <gtest/gtest.h>

namespace fcp {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

template <typename Number>
ConstantTensor of_type(ElementType type, const std::vector<Number>& numbers) {
  const std::shared_ptr<void> room = room_for_numbers(numbers.size() * sizeof(Number));
  std::memcpy(room.get(), numbers.data(), numbers.size() * sizeof(Number));
  return {type, {static_cast<int64_t>(numbers.size())}, room};
}

std::vector<double> all_numbers(const ConstantTensor& tensor) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < tensor.numel(); ++i) numbers.push_back(tensor.number(i));
  return numbers;
}

TEST(ConstantTensor, HoldsNumbersOfEveryType) {
  const std::vector<double> expected = {0, 1, 100};
  EXPECT_EQ(all_numbers(constant_tensor<float>({0, 1, 100})), expected);
  EXPECT_EQ(all_numbers(constant_tensor<double>({0, 1, 100})), expected);
  EXPECT_EQ(all_numbers(constant_tensor<int64_t>({0, 1, 100})), expected);
  EXPECT_EQ(all_numbers(of_type<int32_t>(ElementType::kInt32, {0, 1, -100})),
            (std::vector<double>{0, 1, -100}));
  EXPECT_EQ(all_numbers(of_type<int16_t>(ElementType::kInt16, {0, 1, -100})),
            (std::vector<double>{0, 1, -100}));
  EXPECT_EQ(all_numbers(of_type<int8_t>(ElementType::kInt8, {0, 1, -100})),
            (std::vector<double>{0, 1, -100}));
  EXPECT_EQ(all_numbers(of_type<uint8_t>(ElementType::kUint8, {0, 1, 200})),
            (std::vector<double>{0, 1, 200}));
  EXPECT_EQ(all_numbers(of_type<uint8_t>(ElementType::kBool, {0, 1})), (std::vector<double>{0, 1}));
  // 1.5, −2, the smallest subnormal, the largest number, −∞
  EXPECT_EQ(
      all_numbers(of_type<uint16_t>(ElementType::kHalf, {0x3e00, 0xc000, 0x0001, 0x7bff, 0xfc00})),
      (std::vector<double>{1.5, -2, 0x1p-24, 65504, -kInfinite}));
  EXPECT_EQ(all_numbers(of_type<uint16_t>(ElementType::kBFloat16, {0x3fc0, 0xc000, 0xff80})),
            (std::vector<double>{1.5, -2, -kInfinite}));
  EXPECT_TRUE(std::isnan(of_type<uint16_t>(ElementType::kHalf, {0x7e00}).number(0)));
}

TEST(ConstantTensor, KnowsItsSizes) {
  const ConstantTensor none;
  EXPECT_FALSE(none.defined());
  EXPECT_EQ(none.numel(), 0);
  const ConstantTensor scalar = constant_tensor<float>({2}, {});
  EXPECT_EQ(scalar.dim(), 0);
  EXPECT_EQ(scalar.numel(), 1);
  EXPECT_EQ(scalar.nbytes(), 4u);
  const ConstantTensor zeros = ConstantTensor::zeros(ElementType::kInt16, {2, 3});
  EXPECT_EQ(zeros.nbytes(), 12u);
  EXPECT_EQ(all_numbers(zeros), std::vector<double>(6, 0));
  EXPECT_EQ(ConstantTensor::zeros(ElementType::kBool, {2, 0}).numel(), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(zeros.data()) % 64, 0u);
}

TEST(ConstantTensor, IntegersCutFloatsOff) {
  EXPECT_EQ(constant_tensor<int64_t>({std::numeric_limits<int64_t>::max(), -1}).integers(),
            (std::vector<int64_t>{std::numeric_limits<int64_t>::max(), -1}));
  EXPECT_EQ(constant_tensor<double>({2.9, -2.9, kInfinite, std::nan("")}).integers(),
            (std::vector<int64_t>{2, -2, 0, 0}));
}

// Against the definition, number by number; the hit stands at every place, and beside it the
// largest finite number of the type.
TEST(ConstantTensor, FindsTheFirstNumberThatIsNotFinite) {
  for (size_t at = 0; at < 40; ++at) {
    std::vector<float> floats(40, std::numeric_limits<float>::max());
    EXPECT_EQ(constant_tensor(floats).first_not_finite(), std::nullopt);
    floats[at] = -std::numeric_limits<float>::infinity();
    floats[39] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(constant_tensor(floats).first_not_finite(), static_cast<int64_t>(at));
    std::vector<double> doubles(40, -std::numeric_limits<double>::max());
    EXPECT_EQ(constant_tensor(doubles).first_not_finite(), std::nullopt);
    doubles[at] = std::nan("");
    EXPECT_EQ(constant_tensor(doubles).first_not_finite(), static_cast<int64_t>(at));
  }
  EXPECT_EQ(of_type<uint16_t>(ElementType::kHalf, {0x7bff, 0x7c00}).first_not_finite(), 1);
  EXPECT_EQ(of_type<uint16_t>(ElementType::kBFloat16, {0x7c00, 0x7f7f, 0xffc0}).first_not_finite(),
            2);
  EXPECT_EQ(constant_tensor<int64_t>({-1}).first_not_finite(), std::nullopt);
}

TEST(ElementTypes, HaveOnnxsNumbers) {
  EXPECT_EQ(element_type(1), ElementType::kFloat);
  EXPECT_EQ(element_type(16), ElementType::kBFloat16);
  for (const int64_t number : {-1, 0, 4, 8, 12, 17, 1 << 20}) {
    EXPECT_EQ(element_type(number), std::nullopt) << number;
  }
  EXPECT_TRUE(is_floating(ElementType::kHalf));
  EXPECT_TRUE(is_integer(ElementType::kUint8));
  EXPECT_FALSE(is_integer(ElementType::kBool));
  EXPECT_FALSE(is_floating(ElementType::kUndefined) || is_integer(ElementType::kUndefined));
  std::ostringstream text;
  text << ElementType::kDouble;
  EXPECT_EQ(text.str(), "float64");
}

}  // namespace
}  // namespace fcp
