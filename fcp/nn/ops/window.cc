#include "fcp/nn/ops/window.h"

#include <algorithm>
#include <utility>

#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/nn/ops/shared.h"

namespace fcp {
namespace {

AutoPad read_auto_pad(OpArguments& arguments) {
  const std::string text = arguments.text("auto_pad", "NOTSET");
  if (text == "NOTSET" || text.empty()) return AutoPad::kNotSet;
  if (text == "SAME_UPPER") return AutoPad::kSameUpper;
  if (text == "SAME_LOWER") return AutoPad::kSameLower;
  if (text == "VALID") return AutoPad::kValid;
  fail(describe(arguments.node()), ": auto_pad is '", text,
       "', expected NOTSET, SAME_UPPER, SAME_LOWER or VALID");
}

std::vector<int64_t> filled(const std::vector<int64_t>& values, size_t size, int64_t fallback,
                            const Node& node, const char* name) {
  if (values.empty()) return std::vector<int64_t>(size, fallback);
  if (values.size() != size) {
    fail(describe(node), ": attribute '", name, "' has ", values.size(), " numbers, expected ",
         size);
  }
  return values;
}

}  // namespace

std::vector<int64_t> read_bounded(OpArguments& arguments, const char* name, int64_t least) {
  std::vector<int64_t> values = arguments.integers(name);
  for (const int64_t value : values) {
    if (value < least || value > kMaxElements) {
      fail(describe(arguments.node()), ": attribute '", name, "' holds ", value, ", expected ",
           least, " to ", kMaxElements);
    }
  }
  return values;
}

WindowAttributes read_window(OpArguments& arguments, bool has_dilations) {
  WindowAttributes attributes;
  attributes.auto_pad = read_auto_pad(arguments);
  attributes.kernel = read_bounded(arguments, "kernel_shape", 1);
  attributes.strides = read_bounded(arguments, "strides", 1);
  attributes.pads = read_bounded(arguments, "pads", 0);
  if (has_dilations) attributes.dilations = read_bounded(arguments, "dilations", 1);
  const bool padded = std::any_of(attributes.pads.begin(), attributes.pads.end(),
                                  [](int64_t pad) { return pad != 0; });
  if (padded && attributes.auto_pad != AutoPad::kNotSet) {
    fail(describe(arguments.node()), ": has both pads and auto_pad, expected one of them");
  }
  return attributes;
}

Window make_window(const WindowAttributes& attributes, std::vector<int64_t> kernel,
                   const Node& node) {
  if (!attributes.kernel.empty() && attributes.kernel != kernel) {
    fail(describe(node), ": kernel_shape is ", shape_text(attributes.kernel),
         ", but the weight's is ", shape_text(kernel));
  }
  const size_t axes = kernel.size();
  const std::vector<int64_t> pads = filled(attributes.pads, 2 * axes, 0, node, "pads");
  const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(axes);
  Window window;
  window.kernel = std::move(kernel);
  window.strides = filled(attributes.strides, axes, 1, node, "strides");
  window.dilations = filled(attributes.dilations, axes, 1, node, "dilations");
  window.begins.assign(pads.begin(), middle);
  window.ends.assign(middle, pads.end());
  return window;
}

void split_padding(Window& window, size_t axis, int64_t total, bool upper) {
  const int64_t smaller = total / 2;
  window.begins[axis] = upper ? smaller : total - smaller;
  window.ends[axis] = total - window.begins[axis];
}

void apply_auto_pad(Window& window, AutoPad auto_pad, const std::vector<int64_t>& spatial) {
  if (auto_pad == AutoPad::kNotSet) return;
  for (size_t i = 0; i < window.axes(); ++i) {
    int64_t total = 0;
    if (auto_pad != AutoPad::kValid) {
      const int64_t positions = (spatial[i] + window.strides[i] - 1) / window.strides[i];
      total =
          std::max<int64_t>(0, (positions - 1) * window.strides[i] + window.reach(i) - spatial[i]);
    }
    split_padding(window, i, total, auto_pad == AutoPad::kSameUpper);
  }
}

std::vector<int64_t> window_positions(const Window& window, const std::vector<int64_t>& spatial,
                                      bool ceil, const Node& node) {
  std::vector<int64_t> positions;
  for (size_t i = 0; i < window.axes(); ++i) {
    const int64_t padded = spatial[i] + window.begins[i] + window.ends[i];
    const int64_t room = padded - window.reach(i);
    if (spatial[i] < 1 || room < 0) {
      fail(describe(node), ": a window over ", window.reach(i), " places does not fit into ",
           spatial[i], " with padding ", window.begins[i], " and ", window.ends[i],
           " along spatial axis ", i);
    }
    const int64_t stride = window.strides[i];
    int64_t count = (room + (ceil ? stride - 1 : 0)) / stride + 1;
    if ((count - 1) * stride >= spatial[i] + window.begins[i] && ceil) --count;
    positions.push_back(count);
  }
  return positions;
}

std::vector<int64_t> spatial_shape(const torch::Tensor& tensor) {
  return tensor.sizes().slice(2).vec();
}

torch::Tensor pad_spatial(const torch::Tensor& x, const std::vector<int64_t>& begins,
                          const std::vector<int64_t>& ends, double value, const Node& node) {
  std::vector<int64_t> pads;  // libtorch wants the last axis first
  std::vector<int64_t> shape = x.sizes().vec();
  bool any = false;
  for (size_t i = begins.size(); i-- > 0;) {
    pads.push_back(begins[i]);
    pads.push_back(ends[i]);
    shape[shape.size() - begins.size() + i] += begins[i] + ends[i];
    any = any || begins[i] != 0 || ends[i] != 0;
  }
  if (!any) return x;
  check_sample(shape, node);
  return torch::constant_pad_nd(x, pads, value);
}

}  // namespace fcp
