#include "fcp/nn/ops/index.h"

#include "fcp/base/error.h"
#include "fcp/nn/ops/shared.h"
#include "fcp/nn/runtime/device_waits.h"

namespace fcp {

torch::Tensor checked_indices(const torch::Tensor& indices, int64_t size, const Node& node,
                              torch::Device device) {
  if (!indices.defined()) fail(describe(node), ": indices are absent");
  if (indices.scalar_type() != torch::kLong && indices.scalar_type() != torch::kInt) {
    fail(describe(node), ": indices are ", indices.scalar_type(), ", expected int32 or int64");
  }
  const torch::Tensor wide = indices.to(torch::kLong);
  const torch::Tensor host = wide.to(torch::kCPU).contiguous();  // where integers live
  for (int64_t i = 0; i < host.numel(); ++i) {
    const int64_t index = host.data_ptr<int64_t>()[i];
    if (index >= -size && index < size) continue;
    fail(describe(node), ": index ", index, " is outside an axis of ", size);
  }
  return placed_on(torch::where(wide < 0, wide + size, wide), device);
}

void expect_inside(const torch::Tensor& indices, const torch::Tensor& data, int64_t axis,
                   const Node& node) {
  for (int64_t i = 0; i < data.dim(); ++i) {
    if (i != axis && indices.size(i) > data.size(i)) {
      fail(describe(node), ": indices of shape ", shape_text(indices.sizes()),
           " are larger than data of shape ", shape_text(data.sizes()), " along axis ", i);
    }
  }
}

std::vector<torch::Tensor> index_columns(const torch::Tensor& indices, const torch::Tensor& data,
                                         int64_t batch, const Node& node) {
  std::vector<torch::Tensor> columns;
  for (int64_t i = 0; i < indices.size(-1); ++i) {
    columns.push_back(
        checked_indices(indices.select(-1, i), data.size(batch + i), node, data.device()));
  }
  return columns;
}

}  // namespace fcp
