#include "fcp/nn/runtime/tensor_memory.h"

#include <algorithm>
#include <cmath>

#include "fcp/base/error.h"
#include "fcp/base/memory.h"
#include "fcp/nn/ops/output_bytes.h"
#include "fcp/nn/runtime/element_types.h"

namespace fcp {
namespace {

// Of this thread: the memory of the innermost network that runs, and what loops hold.
thread_local const TensorMemory* innermost = nullptr;
thread_local double held_bytes = 0;

double megabytes(double bytes) { return std::max(1.0, std::ceil(bytes / (1 << 20))); }

}  // namespace

double expected_bytes(const Node& node, const Tensors& inputs) {
  if (inputs.empty() || !inputs[0].defined()) return 0;
  return output_bytes(node, inputs);
}

TensorMemory::TensorMemory(size_t slots)
    : budget_(static_cast<double>(memory_budget())),
      around_(innermost),
      alive_(held_bytes + (innermost == nullptr ? 0 : innermost->alive_)),
      by_slot_(slots, 0) {
  innermost = this;
}

TensorMemory::~TensorMemory() { innermost = around_; }

HeldTensors::~HeldTensors() { set(0); }

void HeldTensors::set(double bytes) {
  held_bytes += bytes - bytes_;
  bytes_ = bytes;
}

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

torch::Tensor declared_zeros(const std::vector<int64_t>& shape, ElementType type,
                             const std::string& name) {
  double bytes = static_cast<double>(element_size(type));
  for (const int64_t dimension : shape) bytes *= static_cast<double>(dimension);
  if (bytes > static_cast<double>(memory_budget()) / 4) {
    fail("input '", name, "': one batch of its declared shape takes ",
         static_cast<int64_t>(megabytes(bytes)), " MiB, more than a quarter of the ",
         static_cast<int64_t>(megabytes(static_cast<double>(memory_budget()))),
         " MiB that networks may have; allow more memory");
  }
  return torch::zeros(shape, scalar_type(type));
}

}  // namespace fcp
