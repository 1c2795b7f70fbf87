#include "fcp/network/tensor_memory.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "fcp/base/error.h"
#include "fcp/base/memory.h"

namespace fcp {
namespace {

double bytes_in(const torch::Tensor& tensor) {
  return tensor.defined() ? static_cast<double>(tensor.nbytes()) : 0;
}

double megabytes(double bytes) { return std::max(1.0, std::ceil(bytes / (1 << 20))); }

// Where the inputs are stretched against each other.
bool broadcasts(const std::string& op) {
  static const std::set<std::string> ops = {
      "Add",        "And",         "BitShift", "BitwiseAnd", "BitwiseOr",
      "BitwiseXor", "Div",         "Equal",    "Greater",    "GreaterOrEqual",
      "Less",       "LessOrEqual", "Max",      "Min",        "Mul",
      "Mean",       "Mod",         "Or",       "PRelu",      "Pow",
      "Sub",        "Sum",         "Xor",      "Where"};
  return ops.contains(op);
}

double broadcast_elements(const Tensors& inputs) {
  std::vector<double> sizes;
  for (const torch::Tensor& input : inputs) {
    if (!input.defined()) continue;
    const auto rank = static_cast<size_t>(input.dim());
    if (rank > sizes.size()) sizes.insert(sizes.begin(), rank - sizes.size(), 1);
    for (size_t i = 0; i < rank; ++i) {
      double& size = sizes[sizes.size() - rank + i];
      size = std::max(size, static_cast<double>(input.size(static_cast<int64_t>(i))));
    }
  }
  double elements = 1;
  for (const double size : sizes) elements *= size;
  return elements;
}

// The product of a small tensor of integers, each at least 1.
double product_of(const torch::Tensor& numbers) {
  if (!numbers.defined() || numbers.scalar_type() != torch::kLong || numbers.numel() > 64) return 0;
  const torch::Tensor plain = numbers.to(torch::kCPU).contiguous();
  double product = 1;
  for (int64_t i = 0; i < plain.numel(); ++i) {
    product *= static_cast<double>(std::max<int64_t>(1, plain.data_ptr<int64_t>()[i]));
  }
  return product;
}

double product_elements(const Tensors& inputs, bool transpose_b) {
  if (inputs.size() < 2 || inputs[0].dim() < 1 || inputs[1].dim() < 1) return 0;
  const torch::Tensor &a = inputs[0], &b = inputs[1];
  const double inner = static_cast<double>(std::max<int64_t>(1, a.size(-1)));
  const double columns =
      b.dim() == 1 ? 1 : static_cast<double>(b.size(transpose_b && b.dim() == 2 ? 0 : -1));
  return static_cast<double>(a.numel()) / inner * columns;
}

}  // namespace

double expected_bytes(const Node& node, const Tensors& inputs) {
  if (inputs.empty() || !inputs[0].defined()) return 0;
  const auto size = static_cast<double>(inputs[0].element_size());
  const std::string& op = node.op;
  if (op == "Concat") {
    double bytes = 0;
    for (const torch::Tensor& input : inputs) bytes += bytes_in(input);
    return bytes;
  }
  if (broadcasts(op)) {
    const auto widest = op == "Where" && inputs.size() > 1 && inputs[1].defined()
                            ? static_cast<double>(inputs[1].element_size())
                            : size;
    return broadcast_elements(inputs) * widest;
  }
  if (op == "Tile" && inputs.size() > 1) return bytes_in(inputs[0]) * product_of(inputs[1]);
  if (op == "Expand" && inputs.size() > 1) {
    return std::max(bytes_in(inputs[0]), product_of(inputs[1]) * size);
  }
  if (op == "ConstantOfShape") return product_of(inputs[0]) * 4;
  if (op == "Gemm") {
    const auto b = node.attributes.find("transB");
    const auto* flag = b == node.attributes.end() ? nullptr : std::get_if<int64_t>(&b->second);
    return product_elements(inputs, flag != nullptr && *flag != 0) * size;
  }
  if (op == "MatMul") return product_elements(inputs, false) * size;
  return 0;
}

TensorMemory::TensorMemory(size_t slots)
    : budget_(static_cast<double>(memory_budget())), by_slot_(slots, 0) {}

void TensorMemory::check(const Node& node, double bytes) const {
  if (alive_ + bytes <= budget_) return;
  fail(describe(node), ": would take the network to ",
       static_cast<int64_t>(megabytes(alive_ + bytes)), " MiB of tensors, more than the ",
       static_cast<int64_t>(megabytes(budget_)),
       " MiB that it may have; allow more memory, or take a smaller batch");
}

void TensorMemory::before(const Node& node, const Tensors& inputs) const {
  check(node, expected_bytes(node, inputs));
}

// A view of an input takes nothing.
void TensorMemory::made(const Node& node, int slot, const torch::Tensor& value,
                        const Tensors& inputs) {
  if (slot < 0 || !value.defined() || !value.has_storage()) return;
  const bool view = std::any_of(inputs.begin(), inputs.end(), [&](const torch::Tensor& input) {
    return input.defined() && input.has_storage() && input.is_alias_of(value);
  });
  if (view) return;
  by_slot_[static_cast<size_t>(slot)] = static_cast<double>(value.storage().nbytes());
  alive_ += by_slot_[static_cast<size_t>(slot)];
  check(node, 0);
}

void TensorMemory::freed(int slot) {
  alive_ -= by_slot_[static_cast<size_t>(slot)];
  by_slot_[static_cast<size_t>(slot)] = 0;
}

torch::Tensor declared_zeros(const std::vector<int64_t>& shape, torch::ScalarType type,
                             const std::string& name) {
  double bytes = static_cast<double>(c10::elementSize(type));
  for (const int64_t dimension : shape) bytes *= static_cast<double>(dimension);
  if (bytes > static_cast<double>(memory_budget()) / 4) {
    fail("input '", name, "': one batch of its declared shape takes ",
         static_cast<int64_t>(megabytes(bytes)), " MiB, more than a quarter of the ",
         static_cast<int64_t>(megabytes(static_cast<double>(memory_budget()))),
         " MiB that networks may have; allow more memory");
  }
  return torch::zeros(shape, type);
}

}  // namespace fcp
