// Picking elements and slices by index tensors: GatherElements and GatherND. Indices may count from
// the end. With constant indices the outputs are the inputs' own numbers: every bound goes through.
// Cost: linear in the output. Reference: ONNX operator specification.
// Tested by tests/nn/ops/index_test.cc.

#include <string>
#include <vector>

#include "fcp/base/error.h"
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

// Writing elements and slices at index tensors: ScatterElements (called Scatter before operator set
// 11) and ScatterND. A number that is there is replaced, or meets the new one in a sum, product,
// maximum or minimum. With constant indices, replacing and adding are affine in data and updates.
// Cost: linear in data and updates. Reference: ONNX operator specification, versions 9 to 18.
// Tested by tests/nn/ops/index_test.cc.

namespace {

class ScatterOp : public Op {
 public:
  explicit ScatterOp(OpArguments& arguments)
      : node_(arguments.node()), reduction_(read_reduction(arguments)) {
    arguments.expect_inputs(3, 3);
  }
  BoundRule bound_rule(const std::vector<bool>& constant) const override {
    if (!constant[1] || reduction_ == ScatterReduction::kMultiply) return BoundRule::kNone;
    const bool affine =
        reduction_ == ScatterReduction::kReplace || reduction_ == ScatterReduction::kAdd;
    return affine ? BoundRule::kAffine : BoundRule::kInterval;
  }
  // As many terms may meet in one place as there are updates.
  double roundings(const Tensors& inputs) const override {
    return reduction_ == ScatterReduction::kAdd ? static_cast<double>(inputs[2].numel()) + 1 : 0;
  }

 protected:
  // `indices` count elements along `axis`; torch's scatter_reduce keeps the data's own numbers.
  torch::Tensor scatter(const torch::Tensor& data, int64_t axis, const torch::Tensor& indices,
                        const torch::Tensor& updates) const {
    switch (reduction_) {
      case ScatterReduction::kReplace:
        return torch::scatter(data, axis, indices, updates);
      case ScatterReduction::kAdd:
        return torch::scatter_add(data, axis, indices, updates);
      case ScatterReduction::kMultiply:
        return torch::scatter_reduce(data, axis, indices, updates, "prod");
      case ScatterReduction::kMax:
        return torch::scatter_reduce(data, axis, indices, updates, "amax");
      case ScatterReduction::kMin:
        return torch::scatter_reduce(data, axis, indices, updates, "amin");
    }
    return {};
  }

  Node node_;
  ScatterReduction reduction_;

 private:
  static ScatterReduction read_reduction(OpArguments& arguments) {
    const std::string text =
        arguments.opset() >= 16 ? arguments.text("reduction", "none") : std::string("none");
    if (text == "none") return ScatterReduction::kReplace;
    if (text == "add") return ScatterReduction::kAdd;
    if (text == "mul") return ScatterReduction::kMultiply;
    if (text == "max" && arguments.opset() >= 18) return ScatterReduction::kMax;
    if (text == "min" && arguments.opset() >= 18) return ScatterReduction::kMin;
    fail(describe(arguments.node()), ": attribute 'reduction' is '", text,
         "', expected 'none', 'add', 'mul', 'max' or 'min'");
  }
};

class ScatterElementsOp : public ScatterOp {
 public:
  explicit ScatterElementsOp(OpArguments& arguments)
      : ScatterOp(arguments), axis_(arguments.integer("axis", 0)) {}

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& data = inputs[0];
    expect_rank(data, 1, kMaxIndexRank, node_, "data");
    expect_rank(inputs[1], data.dim(), data.dim(), node_, "indices");
    expect_type_of(data, inputs[2], node_, "updates");
    if (inputs[1].sizes() != inputs[2].sizes()) {
      fail(describe(node_), ": indices have shape ", shape_text(inputs[1].sizes()), ", updates ",
           shape_text(inputs[2].sizes()), ", expected one shape");
    }
    const int64_t axis = normalize_axis(axis_, data.dim(), node_);
    const torch::Tensor indices = checked_indices(inputs[1], data.size(axis), node_, data.device());
    expect_inside(indices, data, axis, node_);
    return {scatter(data, axis, indices, inputs[2].to(data.device()))};
  }

 private:
  int64_t axis_;
};

// data[indices[i]] = updates[i], where the last axis of the indices names an element or a slice.
class ScatterNdOp : public ScatterOp {
 public:
  explicit ScatterNdOp(OpArguments& arguments) : ScatterOp(arguments) {}

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& data = inputs[0];
    expect_rank(data, 1, kMaxIndexRank, node_, "data");
    expect_rank(inputs[1], 1, kMaxIndexRank, node_, "indices");
    expect_type_of(data, inputs[2], node_, "updates");
    const torch::Tensor& indices = inputs[1];
    const int64_t depth = indices.size(-1);
    std::vector<int64_t> expected = indices.sizes().slice(0, indices.sizes().size() - 1).vec();
    if (depth >= 1 && depth <= data.dim()) {
      const auto rest = data.sizes().slice(static_cast<size_t>(depth));
      expected.insert(expected.end(), rest.begin(), rest.end());
    }
    if (depth < 1 || depth > data.dim() || inputs[2].sizes() != torch::IntArrayRef(expected)) {
      fail(describe(node_), ": data has shape ", shape_text(data.sizes()), ", indices ",
           shape_text(indices.sizes()), ", updates ", shape_text(inputs[2].sizes()),
           ", expected updates of shape ", shape_text(expected));
    }
    // The named axes as one, counted row by row.
    torch::Tensor place;
    const std::vector<torch::Tensor> columns = index_columns(indices, data, 0, node_);
    int64_t places = 1;
    for (size_t i = 0; i < columns.size(); ++i) {
      const int64_t size = data.size(static_cast<int64_t>(i));
      place = i == 0 ? columns[i] : place * size + columns[i];
      places *= size;
    }
    const torch::Tensor flat = data.reshape({places, -1});
    const torch::Tensor rows = inputs[2].to(data.device()).reshape({place.numel(), -1});
    const torch::Tensor index = place.reshape({-1, 1}).expand(rows.sizes());
    return {scatter(flat, 0, index, rows).reshape(data.sizes())};
  }
};

// Writes `update` into a cache [N, …, L, …] along an axis, from a place that each row names on.
class TensorScatterOp : public Op {
 public:
  explicit TensorScatterOp(OpArguments& arguments)
      : node_(arguments.node()), axis_(arguments.integer("axis", -2)) {
    arguments.expect_inputs(2, 3);
    const std::string mode = arguments.text("mode", "linear");
    if (mode != "linear" && mode != "circular") {
      fail(describe(node_), ": attribute 'mode' is '", mode, "', expected 'linear' or 'circular'");
    }
    circular_ = mode == "circular";
  }

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor &cache = inputs[0], &update = inputs[1];
    expect_rank(cache, 2, kMaxIndexRank, node_, "past_cache");
    expect_type_of(cache, update, node_, "update");
    const int64_t axis = normalize_axis(axis_, cache.dim(), node_);
    std::vector<int64_t> shape = cache.sizes().vec();
    const int64_t length = shape[static_cast<size_t>(axis)];
    if (update.dim() == cache.dim()) shape[static_cast<size_t>(axis)] = update.size(axis);
    if (axis == 0 || update.sizes() != torch::IntArrayRef(shape) || update.size(axis) > length) {
      fail(describe(node_), ": past_cache has shape ", shape_text(cache.sizes()), ", update ",
           shape_text(update.sizes()), ", expected them to differ along axis ", axis_,
           " alone, which is not that of the rows");
    }
    torch::Tensor first = torch::zeros({cache.size(0)}, torch::kLong);
    if (inputs.size() > 2 && inputs[2].defined()) {
      expect_vector(inputs[2], cache.size(0), node_, "write_indices");
      first = inputs[2].to(torch::kLong);
    }
    torch::Tensor places =
        first.to(cache.device()).unsqueeze(1) +
        torch::arange(update.size(axis), torch::dtype(torch::kLong).device(cache.device()));
    if (circular_ && length > 0) places = places.remainder(length);
    if (((places < 0).logical_or(places >= length)).any().item<bool>()) {
      fail(describe(node_), ": writes beyond the ", length, " places of axis ", axis_);
    }
    std::vector<int64_t> view(static_cast<size_t>(cache.dim()), 1);
    view[0] = cache.size(0);
    view[static_cast<size_t>(axis)] = update.size(axis);
    return {torch::scatter(cache, axis, places.view(view).expand_as(update), update)};
  }
  BoundRule bound_rule(const std::vector<bool>& constant) const override {
    return constant.size() < 3 || constant[2] ? BoundRule::kAffine : BoundRule::kNone;
  }

 private:
  Node node_;
  int64_t axis_;
  bool circular_;
};

}  // namespace

OpPointer make_tensor_scatter(OpArguments& arguments) {
  return std::make_unique<TensorScatterOp>(arguments);
}

OpPointer make_scatter_elements(OpArguments& arguments) {
  return std::make_unique<ScatterElementsOp>(arguments);
}

OpPointer make_scatter_nd(OpArguments& arguments) {
  return std::make_unique<ScatterNdOp>(arguments);
}

}  // namespace fcp
