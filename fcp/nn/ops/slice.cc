// Operators that take tensors apart and put them together along an axis.
// Tested by tests/nn/ops/shape_test.cc.
#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/nn/kernels/cpu/channel_scale.h"
#include "fcp/nn/kernels/cpu/gradient_of.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/shared.h"
#include "fcp/nn/runtime/device_waits.h"

namespace fcp {
namespace {

class PartsOp : public Op {
 public:
  explicit PartsOp(OpArguments& arguments) : node_(arguments.node()) {}
  double flops(const Tensors&, const Tensors&) const override { return 0; }
  BoundRule bound_rule(const std::vector<bool>& constant) const override {
    return affine_in_first(constant);
  }
  MissingRule missing_rule() const override { return MissingRule::kMoves; }

 protected:
  Node node_;
};

class ConcatOp : public PartsOp {
 public:
  explicit ConcatOp(OpArguments& arguments)
      : PartsOp(arguments), axis_(arguments.integer("axis", 0)) {
    const size_t count = std::max<size_t>(1, node_.inputs.size());
    arguments.expect_inputs(count, count);
    if (!arguments.has("axis")) fail(describe(node_), ": attribute 'axis' is missing");
  }

  Tensors forward(const Tensors& inputs) const override {
    const int64_t axis = normalize_axis(axis_, inputs[0].dim(), node_);
    torch::Device device = torch::kCPU;
    for (const torch::Tensor& input : inputs) {
      check(inputs[0], input, axis);
      if (!input.is_cpu()) device = input.device();
    }
    Tensors parts;  // on one device: numbers computed from a shape live on the CPU
    for (const torch::Tensor& input : inputs) parts.push_back(placed_on(input, device));
    const bool slopes = std::any_of(parts.begin(), parts.end(), wants_gradient);
    if (axis == 1 && !slopes && join_side_by_side(parts)) return {joined_channels(parts, nullptr)};
    return {torch::cat(parts, axis)};
  }
  BoundRule bound_rule(const std::vector<bool>&) const override { return BoundRule::kAffine; }

 private:
  void check(const torch::Tensor& first, const torch::Tensor& other, int64_t axis) const {
    bool fits = other.dim() == first.dim();
    for (int64_t i = 0; fits && i < first.dim(); ++i) {
      fits = i == axis || other.size(i) == first.size(i);
    }
    if (!fits) {
      fail(describe(node_), ": cannot join shapes ", first.sizes(), " and ", other.sizes(),
           " along axis ", axis);
    }
    if (first.scalar_type() != other.scalar_type() &&
        !(first.is_floating_point() && other.is_floating_point())) {
      fail(describe(node_), ": inputs are ", first.scalar_type(), " and ", other.scalar_type(),
           ", expected one type");
    }
  }

  int64_t axis_;
};

// The parts' lengths are an attribute before opset 13 and an input since; without them the parts
// are equal, except that since opset 18 (attribute num_outputs) the last one may be shorter.
class SplitOp : public PartsOp {
 public:
  explicit SplitOp(OpArguments& arguments)
      : PartsOp(arguments),
        axis_(arguments.integer("axis", 0)),
        uneven_(arguments.opset() >= 18),
        count_(static_cast<int64_t>(node_.outputs.size())) {
    if (count_ == 0) fail(describe(node_), ": has no outputs");
    arguments.expect_inputs(1, arguments.opset() >= 13 ? 2 : 1);
    if (arguments.opset() < 13) {
      has_lengths_ = arguments.has("split");
      lengths_ = arguments.integers("split");
    }
    if (!uneven_) return;
    const bool lengths = node_.inputs.size() > 1 && !node_.inputs[1].empty();
    if (lengths == arguments.has("num_outputs")) {
      fail(describe(node_), ": needs either input 'split' or attribute 'num_outputs', has ",
           lengths ? "both" : "neither");
    }
    const int64_t outputs = arguments.integer("num_outputs", count_);
    if (outputs != count_) {
      fail(describe(node_), ": attribute 'num_outputs' is ", outputs, " but there are ", count_,
           " outputs");
    }
  }

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    const int64_t axis = normalize_axis(axis_, x.dim(), node_);
    const bool given = inputs.size() > 1 && inputs[1].defined();
    const std::vector<int64_t> lengths = given          ? to_integers(inputs[1], node_, "split")
                                         : has_lengths_ ? lengths_
                                                        : equal_parts(x.size(axis));
    check(lengths, x.size(axis));
    Tensors outputs;
    int64_t start = 0;
    for (const int64_t length : lengths) {
      outputs.push_back(x.narrow(axis, start, length));
      start += length;
    }
    return outputs;
  }

 private:
  std::vector<int64_t> equal_parts(int64_t size) const {
    const int64_t length = (size + count_ - 1) / count_;
    const int64_t last = size - length * (count_ - 1);
    if (last < 0 || (last != length && !uneven_)) {
      fail(describe(node_), ": cannot split ", size, " elements into ", count_,
           uneven_ ? " parts" : " equal parts");
    }
    std::vector<int64_t> lengths(count_, length);
    lengths.back() = last;
    return lengths;
  }

  void check(const std::vector<int64_t>& lengths, int64_t size) const {
    int64_t left = size;
    bool fits = static_cast<int64_t>(lengths.size()) == count_;
    for (const int64_t length : lengths) {
      fits = fits && length >= 0 && length <= left;
      if (fits) left -= length;
    }
    if (!fits || left != 0) {
      fail(describe(node_), ": split ", torch::IntArrayRef(lengths), " does not divide ", size,
           " elements among ", count_, " outputs");
    }
  }

  int64_t axis_;
  bool uneven_;
  int64_t count_;
  bool has_lengths_ = false;
  std::vector<int64_t> lengths_;
};

// One axis of a slice, by numpy's rule: negative positions count from the end, then positions are
// clamped to the axis, so that INT64_MAX and INT64_MIN mean "to the end" and "to the beginning".
torch::Tensor slice_axis(const torch::Tensor& x, int64_t axis, int64_t start, int64_t end,
                         int64_t step) {
  const int64_t size = x.size(axis);
  if (size == 0) return x;
  step = std::clamp(step, -size, size);  // a longer step takes the first element only, as this does
  const int64_t least = step > 0 ? 0 : -1;  // backwards, −1 stands before the first element
  const int64_t most = step > 0 ? size : size - 1;
  start = std::clamp<int64_t>(start < 0 ? start + size : start, 0, most);
  end = std::clamp<int64_t>(end < 0 ? end + size : end, least, most);
  if (step > 0) return x.slice(axis, start, std::max(start, end), step);
  const int64_t count = std::max<int64_t>(0, (start - end - step - 1) / -step);
  if (count == 0) return x.narrow(axis, 0, 0);
  return x.slice(axis, start + (count - 1) * step, start + 1, -step).flip({axis});
}

// Starts, ends and axes are attributes before opset 10; inputs since, and steps with them.
class SliceOp : public PartsOp {
 public:
  explicit SliceOp(OpArguments& arguments)
      : PartsOp(arguments), from_inputs_(arguments.opset() >= 10) {
    arguments.expect_inputs(from_inputs_ ? 3 : 1, from_inputs_ ? 5 : 1);
    if (from_inputs_) return;
    for (const char* name : {"starts", "ends"}) {
      if (!arguments.has(name)) fail(describe(node_), ": attribute '", name, "' is missing");
    }
    given_.starts = arguments.integers("starts");
    given_.ends = arguments.integers("ends");
    given_.axes = arguments.has("axes") ? arguments.integers("axes") : first(given_.starts.size());
    given_.steps.assign(given_.starts.size(), 1);
  }

  Tensors forward(const Tensors& inputs) const override {
    const Ranges ranges = from_inputs_ ? read(inputs) : given_;
    const size_t count = ranges.starts.size();
    if (ranges.ends.size() != count || ranges.axes.size() != count ||
        ranges.steps.size() != count) {
      fail(describe(node_), ": has ", count, " starts, ", ranges.ends.size(), " ends, ",
           ranges.axes.size(), " axes and ", ranges.steps.size(),
           " steps, expected as many of each");
    }
    torch::Tensor x = inputs[0];
    std::set<int64_t> seen;
    for (size_t i = 0; i < count; ++i) {
      const int64_t axis = normalize_axis(ranges.axes[i], x.dim(), node_);
      if (!seen.insert(axis).second) fail(describe(node_), ": axis ", axis, " is given twice");
      if (ranges.steps[i] == 0) fail(describe(node_), ": a step is 0");
      x = slice_axis(x, axis, ranges.starts[i], ranges.ends[i], ranges.steps[i]);
    }
    return {x};
  }

 private:
  struct Ranges {
    std::vector<int64_t> starts, ends, axes, steps;
  };

  static std::vector<int64_t> first(size_t count) {
    std::vector<int64_t> axes(count);
    std::iota(axes.begin(), axes.end(), 0);
    return axes;
  }

  Ranges read(const Tensors& inputs) const {
    Tensors all = inputs;
    all.resize(5);
    Ranges ranges;
    ranges.starts = to_integers(all[1], node_, "starts");
    ranges.ends = to_integers(all[2], node_, "ends");
    const size_t count = ranges.starts.size();
    ranges.axes = all[3].defined() ? to_integers(all[3], node_, "axes") : first(count);
    ranges.steps =
        all[4].defined() ? to_integers(all[4], node_, "steps") : std::vector<int64_t>(count, 1);
    return ranges;
  }

  bool from_inputs_;
  Ranges given_;
};

// Replaces the axis of the data by the dimensions of the indices; negative ones count from the end.
class GatherOp : public PartsOp {
 public:
  explicit GatherOp(OpArguments& arguments)
      : PartsOp(arguments), axis_(arguments.integer("axis", 0)) {
    arguments.expect_inputs(2, 2);
  }

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& data = inputs[0];
    const int64_t axis = normalize_axis(axis_, data.dim(), node_);
    const torch::Tensor indices = positions(inputs[1], data.size(axis));
    if (indices.dim() == 0) return {data.select(axis, indices.data_ptr<int64_t>()[0])};  // a view
    std::vector<int64_t> shape = data.sizes().vec();
    shape.erase(shape.begin() + axis);
    shape.insert(shape.begin() + axis, indices.sizes().begin(), indices.sizes().end());
    checked_elements(shape, node_);
    return {
        data.index_select(axis, placed_on(indices.reshape({-1}), data.device())).reshape(shape)};
  }

 private:
  torch::Tensor positions(const torch::Tensor& given, int64_t size) const {
    if (given.scalar_type() != torch::kLong && given.scalar_type() != torch::kInt) {
      fail(describe(node_), ": indices are ", given.scalar_type(), ", expected int32 or int64");
    }
    const torch::Tensor indices = given.to(torch::kCPU, torch::kLong).contiguous();
    bool negative = false;
    for (int64_t i = 0; i < indices.numel(); ++i) {
      const int64_t index = indices.data_ptr<int64_t>()[i];
      negative = negative || index < 0;
      if (index >= -size && index < size) continue;
      fail(describe(node_), ": index ", index, " is outside an axis of ", size, " elements");
    }
    return negative ? torch::where(indices < 0, indices + size, indices) : indices;
  }

  int64_t axis_;
};

}  // namespace

OpPointer make_concat(OpArguments& arguments) { return std::make_unique<ConcatOp>(arguments); }
OpPointer make_split(OpArguments& arguments) { return std::make_unique<SplitOp>(arguments); }
OpPointer make_slice(OpArguments& arguments) { return std::make_unique<SliceOp>(arguments); }
OpPointer make_gather(OpArguments& arguments) { return std::make_unique<GatherOp>(arguments); }

}  // namespace fcp
