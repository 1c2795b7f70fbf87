#include "fcp/nn/graph/constant_tensor.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <ostream>
#include <utility>

namespace fcp {
namespace {

struct TypeFacts {
  ElementType type;
  size_t size;
  bool floating;
  const char* name;
};

constexpr TypeFacts kTypes[] = {
    {ElementType::kFloat, 4, true, "float32"},       {ElementType::kDouble, 8, true, "float64"},
    {ElementType::kHalf, 2, true, "float16"},        {ElementType::kBFloat16, 2, true, "bfloat16"},
    {ElementType::kInt64, 8, false, "int64"},        {ElementType::kInt32, 4, false, "int32"},
    {ElementType::kInt16, 2, false, "int16"},        {ElementType::kInt8, 1, false, "int8"},
    {ElementType::kUint8, 1, false, "uint8"},        {ElementType::kBool, 1, false, "bool"},
    {ElementType::kUndefined, 0, false, "undefined"}};

const TypeFacts& facts_of_type(ElementType type) {
  return *std::find_if(std::begin(kTypes), std::end(kTypes) - 1,
                       [&](const TypeFacts& facts) { return facts.type == type; });
}

// 5 bits of exponent and 10 of fraction.
double from_half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double size = 0;
  if (exponent == 31) {
    size = fraction == 0 ? INFINITY : NAN;
  } else {
    size = std::ldexp(exponent == 0 ? fraction : fraction + 1024, std::max(exponent, 1) - 25);
  }
  return (bits & 0x8000) != 0 ? -size : size;
}

double from_brain(uint16_t bits) {
  const uint32_t wide = uint32_t{bits} << 16;
  float number = 0;
  std::memcpy(&number, &wide, sizeof number);
  return number;
}

// Whether a float of these bits is NaN or infinite: all bits of the exponent are set. The loop over
// all numbers has no branch, which makes it fast; only a hit is looked for.
template <typename Bits>
std::optional<int64_t> find_exponent(const void* data, int64_t count, Bits exponent) {
  const Bits* bits = static_cast<const Bits*>(data);
  Bits hits = 0;
  for (int64_t i = 0; i < count; ++i) hits |= static_cast<Bits>((bits[i] & exponent) == exponent);
  if (hits == 0) return std::nullopt;
  return std::find_if(bits, bits + count,
                      [&](Bits each) { return (each & exponent) == exponent; }) -
         bits;
}

template <typename Number>
constexpr ElementType kTypeOf = ElementType::kUndefined;
template <>
constexpr ElementType kTypeOf<float> = ElementType::kFloat;
template <>
constexpr ElementType kTypeOf<double> = ElementType::kDouble;
template <>
constexpr ElementType kTypeOf<int64_t> = ElementType::kInt64;

}  // namespace

std::optional<ElementType> element_type(int64_t onnx_number) {
  for (const TypeFacts& facts : kTypes) {
    if (facts.size > 0 && static_cast<int64_t>(facts.type) == onnx_number) return facts.type;
  }
  return std::nullopt;
}

size_t element_size(ElementType type) { return facts_of_type(type).size; }
bool is_floating(ElementType type) { return facts_of_type(type).floating; }
bool is_integer(ElementType type) {
  return !is_floating(type) && type != ElementType::kBool && type != ElementType::kUndefined;
}
const char* type_name(ElementType type) { return facts_of_type(type).name; }

std::ostream& operator<<(std::ostream& out, ElementType type) { return out << type_name(type); }

ConstantTensor::ConstantTensor(ElementType type, std::vector<int64_t> shape,
                               std::shared_ptr<const void> data)
    : type_(type), shape_(std::move(shape)), data_(std::move(data)) {}

ConstantTensor ConstantTensor::zeros(ElementType type, std::vector<int64_t> shape) {
  ConstantTensor tensor(type, std::move(shape), nullptr);
  const std::shared_ptr<void> room = room_for_numbers(tensor.nbytes());
  std::memset(room.get(), 0, tensor.nbytes());
  tensor.data_ = room;
  return tensor;
}

int64_t ConstantTensor::numel() const {
  int64_t count = defined() ? 1 : 0;
  for (const int64_t size : shape_) count *= size;
  return count;
}

double ConstantTensor::number(int64_t place) const {
  const auto at = [&]<typename Number>(Number) {
    return static_cast<const Number*>(data_.get())[place];
  };
  switch (type_) {
    case ElementType::kFloat:
      return at(float{});
    case ElementType::kDouble:
      return at(double{});
    case ElementType::kHalf:
      return from_half(at(uint16_t{}));
    case ElementType::kBFloat16:
      return from_brain(at(uint16_t{}));
    case ElementType::kInt64:
      return static_cast<double>(at(int64_t{}));
    case ElementType::kInt32:
      return at(int32_t{});
    case ElementType::kInt16:
      return at(int16_t{});
    case ElementType::kInt8:
      return at(int8_t{});
    default:  // uint8 and bool
      return at(uint8_t{});
  }
}

std::vector<int64_t> ConstantTensor::integers() const {
  std::vector<int64_t> numbers(static_cast<size_t>(numel()));
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (type_ == ElementType::kInt64) {
      numbers[i] = static_cast<const int64_t*>(data_.get())[i];
      continue;
    }
    const double each = number(static_cast<int64_t>(i));
    if (std::abs(each) < 0x1p63) numbers[i] = static_cast<int64_t>(each);
  }
  return numbers;
}

std::optional<int64_t> ConstantTensor::first_not_finite() const {
  switch (type_) {
    case ElementType::kFloat:
      return find_exponent<uint32_t>(data_.get(), numel(), 0x7f800000);
    case ElementType::kDouble:
      return find_exponent<uint64_t>(data_.get(), numel(), 0x7ff0000000000000);
    case ElementType::kHalf:
      return find_exponent<uint16_t>(data_.get(), numel(), 0x7c00);
    case ElementType::kBFloat16:
      return find_exponent<uint16_t>(data_.get(), numel(), 0x7f80);
    default:
      return std::nullopt;
  }
}

template <typename Number>
ConstantTensor constant_tensor(const std::vector<Number>& numbers, std::vector<int64_t> shape) {
  const std::shared_ptr<void> room = room_for_numbers(numbers.size() * sizeof(Number));
  if (!numbers.empty()) std::memcpy(room.get(), numbers.data(), numbers.size() * sizeof(Number));
  return {kTypeOf<Number>, std::move(shape), room};
}

template ConstantTensor constant_tensor(const std::vector<float>&, std::vector<int64_t>);
template ConstantTensor constant_tensor(const std::vector<double>&, std::vector<int64_t>);
template ConstantTensor constant_tensor(const std::vector<int64_t>&, std::vector<int64_t>);

std::shared_ptr<void> room_for_numbers(size_t bytes) {
  constexpr size_t kAlignment = 64;
  const size_t rounded = std::max(bytes, size_t{1}) + kAlignment - 1;
  void* room = std::aligned_alloc(kAlignment, rounded / kAlignment * kAlignment);
  if (room == nullptr) throw std::bad_alloc();
  return {room, &std::free};
}

}  // namespace fcp
