#include "fcp/nn/kernels/cpu/stack_product.h"

#include <algorithm>
#include <vector>

#include <ATen/ExpandUtils.h>
#include <ATen/Parallel.h>
#include <torch/utils.h>

#include "fcp/base/parallel.h"
#include "fcp/nn/kernels/cpu/gradient_of.h"
#include "fcp/nn/kernels/cpu/packed_product.h"

namespace fcp {
namespace {

// Matrix `index` of a stack, counted with the last axis in front of the matrices running fastest.
template <typename Number>
MatrixView<const Number> matrix_of(const torch::Tensor& stack, size_t index) {
  const Number* at = stack.data_ptr<Number>();
  for (int64_t axis = stack.dim() - 3; axis >= 0; --axis) {
    const auto size = static_cast<size_t>(stack.size(axis));
    at += static_cast<ptrdiff_t>(index % size) * stack.stride(axis);
    index /= size;
  }
  return {at, static_cast<size_t>(stack.size(-2)), static_cast<size_t>(stack.size(-1)),
          stack.stride(-2), stack.stride(-1)};
}

template <typename Number>
void multiply_stacks(const torch::Tensor& a, const torch::Tensor& b, torch::Tensor& out) {
  const auto rows = static_cast<size_t>(out.size(-2)), columns = static_cast<size_t>(out.size(-1));
  const size_t matrices = static_cast<size_t>(out.numel()) / (rows * columns);
  Number* to = out.data_ptr<Number>();
  constexpr size_t kLeastProducts = size_t{1} << 21;  // below, a thread costs more than it does
  const size_t products = rows * columns * static_cast<size_t>(a.size(-1));
  parallel_rows(matrices, kLeastProducts / (products + 1) + 1,
                static_cast<size_t>(at::get_num_threads()), [&](size_t first, size_t last) {
                  PackedPanels<Number> panels;
                  for (size_t i = first; i < last; ++i) {
                    panels.pack(matrix_of<Number>(b, i));
                    multiply_panels<Number>(matrix_of<Number>(a, i), panels,
                                            {to + i * rows * columns, rows, columns,
                                             static_cast<ptrdiff_t>(columns), 1});
                  }
                });
}

}  // namespace

torch::Tensor stack_product(const torch::Tensor& a, const torch::Tensor& b) {
  const bool known = a.scalar_type() == torch::kFloat || a.scalar_type() == torch::kDouble;
  const bool own = known && a.is_cpu() && b.is_cpu() && a.scalar_type() == b.scalar_type() &&
                   a.dim() > 1 && b.dim() > 1 && a.size(-1) == b.size(-2);
  if (!own) return torch::matmul(a, b);
  if (wants_gradient(a) || wants_gradient(b)) {
    return with_gradient_of(torch::matmul(a, b), stack_product(a.detach(), b.detach()));
  }
  const auto front = at::infer_size(a.sizes().slice(0, static_cast<size_t>(a.dim()) - 2),
                                    b.sizes().slice(0, static_cast<size_t>(b.dim()) - 2));
  const auto stacked = [&](const torch::Tensor& x, int64_t rows, int64_t columns) {
    std::vector<int64_t> shape(front.begin(), front.end());
    shape.insert(shape.end(), {rows, columns});
    return x.defined() ? x.expand(shape) : torch::empty(shape, a.options());
  };
  torch::Tensor out = stacked({}, a.size(-2), b.size(-1));
  if (out.numel() == 0) return out;
  const torch::Tensor left = stacked(a, a.size(-2), a.size(-1));
  const torch::Tensor right = stacked(b, b.size(-2), b.size(-1));
  if (a.scalar_type() == torch::kFloat)
    multiply_stacks<float>(left, right, out);
  else
    multiply_stacks<double>(left, right, out);
  return out;
}

}  // namespace fcp
