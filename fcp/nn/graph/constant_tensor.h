// The constants of a graph: element types and tensors in plain memory, so that a network can be
// read, checked, cut and written without libtorch. A libtorch tensor and a constant turn into each
// other by themselves and share their numbers; these conversions are part of nn/runtime.
// Tested by tests/nn/graph/constant_tensor_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <vector>

namespace at {
class Tensor;
}

namespace fcp {

// With ONNX's numbers.
enum class ElementType : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kBool = 9,
  kHalf = 10,
  kDouble = 11,
  kBFloat16 = 16,
};

// The type of this number; nothing where it is not one of them.
[[nodiscard]] std::optional<ElementType> element_type(int64_t onnx_number);

[[nodiscard]] size_t element_size(ElementType type);  // bytes; 0 of kUndefined
[[nodiscard]] bool is_floating(ElementType type);
[[nodiscard]] bool is_integer(ElementType type);        // bool is none
[[nodiscard]] const char* type_name(ElementType type);  // "float64"
std::ostream& operator<<(std::ostream& out, ElementType type);

// Numbers that lie one after the other, the last dimension fastest. Nobody changes them, so copies
// share them.
class ConstantTensor {
 public:
  ConstantTensor() = default;  // undefined
  ConstantTensor(ElementType type, std::vector<int64_t> shape, std::shared_ptr<const void> data);

  // Shares the tensor's numbers where they lie on the CPU in this order, else copies them. An Error
  // for a type that ElementType lacks.
  ConstantTensor(const at::Tensor& tensor);
  at::Tensor tensor() const;
  operator at::Tensor() const;

  static ConstantTensor zeros(ElementType type, std::vector<int64_t> shape);

  bool defined() const { return type_ != ElementType::kUndefined; }
  ElementType type() const { return type_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t dim() const { return static_cast<int64_t>(shape_.size()); }
  int64_t numel() const;
  size_t nbytes() const { return static_cast<size_t>(numel()) * element_size(type_); }
  const void* data() const { return data_.get(); }
  bool is_floating_point() const { return is_floating(type_); }

  // One number, or all of them, in another type. As integers, floats are cut off, and what int64
  // does not hold is 0.
  double number(int64_t place) const;
  std::vector<int64_t> integers() const;

  // The first place of a float that is NaN or infinite.
  std::optional<int64_t> first_not_finite() const;

 private:
  ElementType type_ = ElementType::kUndefined;
  std::vector<int64_t> shape_;
  std::shared_ptr<const void> data_;
};

// Numbers of type float, double or int64_t; without a shape along one axis.
template <typename Number>
ConstantTensor constant_tensor(const std::vector<Number>& numbers, std::vector<int64_t> shape);
template <typename Number>
ConstantTensor constant_tensor(const std::vector<Number>& numbers) {
  return constant_tensor(numbers, {static_cast<int64_t>(numbers.size())});
}

// Room for so many bytes, aligned as libtorch aligns its own.
std::shared_ptr<void> room_for_numbers(size_t bytes);

}  // namespace fcp
