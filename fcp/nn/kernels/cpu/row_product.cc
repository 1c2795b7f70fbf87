#include "fcp/nn/kernels/cpu/row_product.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <ATen/ExpandUtils.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/utils.h>

#include "fcp/base/parallel.h"
#include "fcp/nn/kernels/cpu/channel_scale.h"
#include "fcp/nn/kernels/cpu/gradient_of.h"
#include "fcp/nn/kernels/cpu/packed_product.h"

namespace fcp {

namespace {

constexpr size_t kThreadProducts = size_t{1} << 21;  // below, a thread costs more than it does

// a [N, K] without gaps; what follows, without a number for each row.
template <typename Number>
torch::Tensor multiplied(const torch::Tensor& a, const PackedPanels<Number>& matrix,
                         const ProductEpilogue<Number>& end) {
  const auto rows = static_cast<size_t>(a.size(0));
  const size_t inputs = matrix.inputs(), outputs = matrix.outputs();
  torch::Tensor result = torch::empty({a.size(0), static_cast<int64_t>(outputs)}, a.options());
  if (rows == 0 || outputs == 0) return result;
  const Number* from = a.data_ptr<Number>();
  Number* to = result.data_ptr<Number>();
  const size_t least = std::max<size_t>(6, kThreadProducts / (inputs * outputs + 1));
  const auto in_step = static_cast<ptrdiff_t>(inputs), out_step = static_cast<ptrdiff_t>(outputs);
  parallel_rows(
      rows, least, static_cast<size_t>(at::get_num_threads()), [&](size_t first, size_t last) {
        ProductEpilogue<Number> part = end;
        if (end.added != nullptr) part.added += first * outputs;
        multiply_panels<Number>({from + first * inputs, last - first, inputs, in_step, 1}, matrix,
                                {to + first * outputs, last - first, outputs, out_step, 1}, part);
      });
  return result;
}

bool takes_own_path(const torch::Tensor& a) {
  return a.is_cpu() && (a.scalar_type() == torch::kFloat || a.scalar_type() == torch::kDouble);
}

// bias [M] or undefined.
template <typename Number>
ProductEpilogue<Number> end_of(const torch::Tensor& bias) {
  return {nullptr, bias.defined() ? bias.data_ptr<Number>() : nullptr};
}

torch::Tensor plain_product(const torch::Tensor& a, const torch::Tensor& b, PackedCache* cache,
                            const torch::Tensor& bias = {}) {
  const torch::Tensor plain = a.detach();
  const torch::Tensor rows =
      (a.dim() == 1 ? plain.unsqueeze(0) : plain.flatten(0, a.dim() - 2)).contiguous();
  const std::shared_ptr<const PackedMatrix> matrix =
      cache != nullptr ? cache->packed(b) : pack_matrix(b);
  torch::Tensor result = matrix->type == torch::kFloat
                             ? multiplied(rows, matrix->floats, end_of<float>(bias))
                             : multiplied(rows, matrix->doubles, end_of<double>(bias));
  std::vector<int64_t> shape = a.sizes().vec();
  shape.back() = b.size(1);
  return result.reshape(shape);
}

// Of a constant b: the gradient of a is a row product as well.
struct RowProduct : public torch::autograd::Function<RowProduct> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& a,
                               const torch::Tensor& b) {
    context->save_for_backward({b});
    return plain_product(a, b, nullptr);
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               torch::autograd::tensor_list gradients) {
    const torch::Tensor b = context->get_saved_variables()[0];
    return {row_product(gradients[0], b.t()), torch::Tensor()};
  }
};

constexpr int64_t kFullTile = 1 << 14;  // libtorch gives no part of it to another thread
constexpr int64_t kTileUnit = 64;       // two of the widest vectors, and twice that
constexpr size_t kThreadTiles = 8;      // below, a thread costs more than it does

// f of `count` numbers of x [numbers] from `first` on.
torch::Tensor tile_of(const std::function<torch::Tensor(const torch::Tensor&)>& f,
                      const torch::Tensor& x, int64_t first, int64_t count) {
  const int64_t missing = (kTileUnit - count % kTileUnit) % kTileUnit;
  torch::Tensor tile = x.narrow(0, first, count);
  if (missing > 0) {  // detached, so that no 0 · ∞ of a slope reaches the first number
    tile = torch::cat({tile, tile.narrow(0, 0, 1).detach().expand({missing})});
  }
  return f(tile.contiguous()).narrow(0, 0, count);
}

// Eight sums side by side, so that the compiler can take vectors; the same for every row.
template <typename Number>
void sum_each_row(const torch::Tensor& x, torch::Tensor& sums) {
  const int64_t width = x.size(1);
  const auto sum_one = [&](int64_t row) {
    const Number* from = x.data_ptr<Number>() + row * width;
    Number parts[8] = {};
    int64_t i = 0;
    for (; i + 8 <= width; i += 8) {
      for (int64_t part = 0; part < 8; ++part) parts[part] += from[i + part];
    }
    for (; i < width; ++i) parts[i % 8] += from[i];
    sums.data_ptr<Number>()[row] = ((parts[0] + parts[4]) + (parts[2] + parts[6])) +
                                   ((parts[1] + parts[5]) + (parts[3] + parts[7]));
  };
  const auto rows = static_cast<size_t>(x.size(0));
  const size_t least = (size_t{1} << 17) / static_cast<size_t>(width + 1) + 1;
  parallel_rows(rows, least, static_cast<size_t>(at::get_num_threads()),
                [&](size_t first, size_t last) {
                  for (size_t row = first; row < last; ++row) sum_one(static_cast<int64_t>(row));
                });
}

}  // namespace

torch::Tensor row_product(const torch::Tensor& a, const torch::Tensor& b, PackedCache* cache,
                          const torch::Tensor& bias) {
  const bool own = takes_own_path(a) && b.is_cpu() && b.scalar_type() == a.scalar_type() &&
                   !b.requires_grad() && a.dim() > 0 && a.size(-1) == b.size(0);
  const bool graph = a.requires_grad() && torch::GradMode::is_enabled();
  const bool adds = own && !graph && bias.defined() && bias.is_contiguous() && bias.dim() == 1 &&
                    bias.size(0) == b.size(1) && bias.scalar_type() == a.scalar_type();
  if (adds) return plain_product(a, b, cache, bias);
  const torch::Tensor product = !own    ? torch::matmul(a, b)
                                : graph ? RowProduct::apply(a, b)
                                        : plain_product(a, b, cache);
  return bias.defined() ? product + bias : product;
}

torch::Tensor product_with_epilogue(const torch::Tensor& a, const torch::Tensor& b,
                                    PackedCache& cache, const Epilogue& epilogue) {
  const bool floats = a.scalar_type() == torch::kFloat && b.scalar_type() == torch::kFloat;
  const bool fits = a.dim() > 1 && b.dim() == 2 && a.size(-1) == b.size(0) && b.size(1) > 0;
  if (!floats || !fits || !a.is_cpu() || !b.is_cpu() || b.requires_grad()) return {};
  const torch::Tensor& bias = epilogue.bias;
  if (bias.defined() && (bias.dim() != 1 || bias.size(0) != b.size(1) || !bias.is_contiguous() ||
                         bias.scalar_type() != torch::kFloat)) {
    return {};
  }
  std::vector<int64_t> shape = a.sizes().vec();
  shape.back() = b.size(1);
  torch::Tensor added = epilogue.added;
  if (added.defined()) {
    if (added.sizes() != torch::IntArrayRef(shape) || added.scalar_type() != torch::kFloat) {
      return {};
    }
    added = added.contiguous();
  }
  ProductEpilogue<float> end = end_of<float>(bias);
  if (added.defined()) end.added = added.data_ptr<float>();
  end.activation = epilogue.activation;
  const torch::Tensor rows = a.detach().flatten(0, a.dim() - 2).contiguous();
  return multiplied(rows, cache.packed(b)->floats, end).reshape(shape);
}

torch::Tensor each_alike(const std::function<torch::Tensor(const torch::Tensor&)>& f,
                         const torch::Tensor& x) {
  if (channels_lie_last(x)) {  // where they lie
    return each_alike(f, x.permute({0, 2, 3, 1})).permute({0, 3, 1, 2});
  }
  const int64_t numbers = x.numel();
  // One thread of libtorch takes any number of full vectors in one piece.
  const bool whole = (numbers <= kFullTile || at::get_num_threads() == 1) &&
                     numbers % kTileUnit == 0 && x.is_contiguous();
  if (!x.is_cpu() || !x.is_floating_point() || whole) return f(x);
  const torch::Tensor flat = x.reshape({-1});
  std::vector<torch::Tensor> tiles(static_cast<size_t>((numbers + kFullTile - 1) / kFullTile));
  const auto make = [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      const auto begin = static_cast<int64_t>(i) * kFullTile;
      tiles[i] = tile_of(f, flat, begin, std::min(kFullTile, numbers - begin));
    }
  };
  if (x.requires_grad()) {
    make(0, tiles.size());
  } else {
    parallel_rows(tiles.size(), kThreadTiles, static_cast<size_t>(at::get_num_threads()), make);
  }
  if (tiles.empty()) return f(x);
  return (tiles.size() == 1 ? tiles[0] : torch::cat(tiles)).reshape(x.sizes());
}

torch::Tensor sum_rows(const torch::Tensor& x) {
  const torch::Tensor flat = x.flatten(1);
  if (!takes_own_path(flat)) return flat.sum(1);
  if (flat.requires_grad() && torch::GradMode::is_enabled()) {
    return row_product(flat, torch::ones({flat.size(1), 1}, flat.options())).squeeze(1);
  }
  const torch::Tensor plain = flat.contiguous();
  torch::Tensor sums = torch::empty({flat.size(0)}, flat.options());
  if (flat.scalar_type() == torch::kFloat)
    sum_each_row<float>(plain, sums);
  else
    sum_each_row<double>(plain, sums);
  return sums;
}

torch::Tensor sum_along(const torch::Tensor& x, const std::vector<int64_t>& axes, bool keep_axes) {
  if (!takes_own_path(x) || axes.empty() || x.numel() == 0) return x.sum(axes, keep_axes);
  const bool graph = x.requires_grad() && torch::GradMode::is_enabled();
  if (channels_lie_last(x) && !graph && x.scalar_type() == torch::kFloat &&
      axes == std::vector<int64_t>{2, 3}) {
    const torch::Tensor sums = channel_sums(x);
    return keep_axes ? sums : sums.flatten(1);
  }
  std::vector<int64_t> order, shape;
  for (int64_t i = 0; i < x.dim(); ++i) {
    const bool summed = std::binary_search(axes.begin(), axes.end(), i);
    if (!summed) order.push_back(i);
    if (!summed || keep_axes) shape.push_back(summed ? 1 : x.size(i));
  }
  const size_t kept = order.size();
  order.insert(order.end(), axes.begin(), axes.end());
  const torch::Tensor last = x.permute(order);
  const torch::Tensor rows =
      kept == 0
          ? last.reshape({1, -1})
          : last.flatten(static_cast<int64_t>(kept)).flatten(0, static_cast<int64_t>(kept) - 1);
  return sum_rows(rows).reshape(shape);
}

torch::Tensor row_dots(const torch::Tensor& a, const torch::Tensor& b) {
  if (!takes_own_path(a)) return torch::einsum("snd,nd->sn", {a, b});
  return sum_rows((a * b).flatten(0, 1)).reshape({a.size(0), a.size(1)});
}

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
