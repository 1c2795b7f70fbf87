// Constants of a graph as libtorch's tensors, and back. Numbers are shared: a tensor that came from
// libtorch goes back as itself, and one that was read from a file lends its memory.
// Tested by tests/nn/runtime/element_types_test.cc.
#include "fcp/nn/graph/constant_tensor.h"

#include <utility>

#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/nn/runtime/element_types.h"

namespace fcp {
namespace {

// What keeps the numbers of a libtorch tensor.
struct TensorOwner {
  torch::Tensor tensor;
  void operator()(const void*) const {}
};

}  // namespace

ConstantTensor::ConstantTensor(const at::Tensor& given) {
  if (!given.defined()) return;
  type_ = element_type(given.scalar_type());
  const torch::Tensor kept = given.requires_grad() ? given.detach() : given;
  TensorOwner owner{kept.to(torch::kCPU).contiguous()};
  shape_ = owner.tensor.sizes().vec();
  const void* numbers = owner.tensor.data_ptr();
  data_ = std::shared_ptr<const void>(numbers, std::move(owner));
}

at::Tensor ConstantTensor::tensor() const {
  if (!defined()) return {};
  if (const auto* owner = std::get_deleter<TensorOwner>(data_)) return owner->tensor;
  const auto options = torch::TensorOptions().dtype(scalar_type(type_)).device(torch::kCPU);
  if (numel() == 0) return torch::empty(shape_, options);
  return torch::from_blob(
      const_cast<void*>(data_.get()), shape_, [keep = data_](void*) {}, options);
}

ConstantTensor::operator at::Tensor() const { return tensor(); }

torch::ScalarType scalar_type(ElementType type) {
  switch (type) {
    case ElementType::kFloat:
      return torch::kFloat;
    case ElementType::kDouble:
      return torch::kDouble;
    case ElementType::kHalf:
      return torch::kHalf;
    case ElementType::kBFloat16:
      return torch::kBFloat16;
    case ElementType::kInt64:
      return torch::kLong;
    case ElementType::kInt32:
      return torch::kInt;
    case ElementType::kInt16:
      return torch::kShort;
    case ElementType::kInt8:
      return torch::kChar;
    case ElementType::kUint8:
      return torch::kByte;
    case ElementType::kBool:
      return torch::kBool;
    case ElementType::kUndefined:
      break;
  }
  return torch::ScalarType::Undefined;
}

ElementType element_type(torch::ScalarType type) {
  for (int64_t number = 1; number <= 16; ++number) {
    const std::optional<ElementType> known = element_type(number);
    if (known && scalar_type(*known) == type) return *known;
  }
  if (type == torch::ScalarType::Undefined) return ElementType::kUndefined;
  fail("ONNX has no element type ", c10::toString(type));
}

}  // namespace fcp
