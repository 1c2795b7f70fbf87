// Picking elements and slices by index tensors: GatherElements and GatherND. Indices may count from
// the end. With constant indices the outputs are the inputs' own numbers: every bound goes through.
// Cost: linear in the output. Reference: ONNX operator specification.
// Tested by tests/nn/ops/index_test.cc.
#include <vector>

#include "fcp/base/error.h"
#include "fcp/nn/ops/checks.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/index.h"
#include "fcp/nn/ops/shared.h"

namespace fcp {
namespace {

class IndexedOp : public Op {
 public:
  explicit IndexedOp(OpArguments& arguments) : node_(arguments.node()) {
    arguments.expect_inputs(2, 2);
  }
  BoundRule bound_rule(const std::vector<bool>& constant) const override {
    return affine_in_first(constant);
  }
  MissingRule missing_rule() const override { return MissingRule::kMoves; }

 protected:
  Node node_;
};

// output[i][j] = data[index[i][j]][j], for axis 0 and likewise for others.
class GatherElementsOp : public IndexedOp {
 public:
  explicit GatherElementsOp(OpArguments& arguments)
      : IndexedOp(arguments), axis_(arguments.integer("axis", 0)) {}

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& data = inputs[0];
    expect_rank(data, 1, kMaxIndexRank, node_, "data");
    expect_rank(inputs[1], data.dim(), data.dim(), node_, "indices");
    const int64_t axis = normalize_axis(axis_, data.dim(), node_);
    const torch::Tensor indices = checked_indices(inputs[1], data.size(axis), node_, data.device());
    expect_inside(indices, data, axis, node_);
    return {torch::gather(data, axis, indices)};
  }

 private:
  int64_t axis_;
};

// The last axis of the indices names an element or slice of data, after `batch_dims` leading axes
// that data and indices share.
class GatherNdOp : public IndexedOp {
 public:
  explicit GatherNdOp(OpArguments& arguments)
      : IndexedOp(arguments),
        batch_(arguments.opset() >= 12 ? arguments.integer("batch_dims", 0) : 0) {}

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& data = inputs[0];
    expect_rank(data, 1, kMaxIndexRank, node_, "data");
    expect_rank(inputs[1], 1, kMaxIndexRank, node_, "indices");
    const torch::Tensor& indices = inputs[1];
    const int64_t depth = indices.size(-1), lead = indices.dim() - 1;
    if (batch_ < 0 || batch_ > lead || depth < 1 || batch_ + depth > data.dim()) {
      fail(describe(node_), ": indices of shape ", shape_text(indices.sizes()),
           " do not fit data of shape ", shape_text(data.sizes()), " with batch_dims ", batch_);
    }
    torch::List<c10::optional<torch::Tensor>> at;
    for (int64_t i = 0; i < batch_; ++i) {
      if (data.size(i) != indices.size(i)) {
        fail(describe(node_), ": data and indices have ", data.size(i), " and ", indices.size(i),
             " along the shared axis ", i);
      }
      std::vector<int64_t> shape(static_cast<size_t>(lead), 1);
      shape[static_cast<size_t>(i)] = data.size(i);
      at.push_back(torch::arange(data.size(i), torch::device(data.device()).dtype(torch::kLong))
                       .reshape(shape));
    }
    const std::vector<torch::Tensor> columns = index_columns(indices, data, batch_, node_);
    for (const torch::Tensor& column : columns) at.push_back(column);
    return {data.index(at)};
  }

 private:
  int64_t batch_;
};

}  // namespace

OpPointer make_gather_elements(OpArguments& arguments) {
  return std::make_unique<GatherElementsOp>(arguments);
}

OpPointer make_gather_nd(OpArguments& arguments) { return std::make_unique<GatherNdOp>(arguments); }

}  // namespace fcp
