// Col2Im: the sum of overlapping blocks of an image, the transpose of taking them out. Input
// [N, C · Πk, L]: each of L positions of the window has a block of Πk numbers per channel.
//
//   y[n, c, p] = Σ x[n, c·Πk + t, l]   over all (t, l) whose tap t of position l lies at p
//
// Gradients flow. Affine in the input; what lies in the padding is dropped.
// Cost: linear in the input. Reference: ONNX operator specification, Col2Im 18.
// Tested by tests/nn/ops/pooling_test.cc.
#include <vector>

#include "fcp/base/error.h"
#include "fcp/nn/ops/checks.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/shared.h"
#include "fcp/nn/ops/window.h"

namespace fcp {
namespace {

class Col2ImOp : public Op {
 public:
  explicit Col2ImOp(OpArguments& arguments) : node_(arguments.node()) {
    arguments.expect_inputs(3, 3);
    attributes_.strides = read_bounded(arguments, "strides", 1);
    attributes_.dilations = read_bounded(arguments, "dilations", 1);
    attributes_.pads = read_bounded(arguments, "pads", 0);
  }

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    expect_rank(x, 3, 3, node_, "input");
    expect_floating(x, node_, "input");
    const std::vector<int64_t> image = sizes_of(inputs[1], "image_shape");
    const std::vector<int64_t> block = sizes_of(inputs[2], "block_shape");
    if (image.empty() || image.size() != block.size()) {
      fail(describe(node_), ": image_shape has ", image.size(), " numbers, block_shape ",
           block.size(), ", expected as many, and one at least");
    }
    const Window window = make_window(attributes_, block, node_);
    const std::vector<int64_t> positions = window_positions(window, image, false, node_);
    const int64_t taps = checked_elements(block, node_),
                  places = checked_elements(positions, node_);
    if (x.size(1) % taps != 0 || x.size(2) != places) {
      fail(describe(node_), ": input has shape ", shape_text(x.sizes()),
           ", expected a multiple of ", taps, " numbers at each of ", places, " positions");
    }
    const int64_t channels = x.size(1) / taps;
    std::vector<int64_t> padded;
    for (size_t i = 0; i < image.size(); ++i) {
      padded.push_back(image[i] + window.begins[i] + window.ends[i]);
    }
    std::vector<int64_t> shape = padded;
    shape.insert(shape.begin(), {x.size(0), channels});
    check_sample(shape, node_);
    const torch::Tensor at = targets(window, positions, padded).to(x.device());
    const torch::Tensor flat = x.reshape({x.size(0) * channels, taps * places});
    torch::Tensor y = torch::zeros({flat.size(0), checked_elements(padded, node_)}, x.options())
                          .scatter_add(1, at.unsqueeze(0).expand_as(flat), flat)
                          .reshape(shape);
    for (size_t i = 0; i < image.size(); ++i) {
      y = y.narrow(static_cast<int64_t>(i) + 2, window.begins[i], image[i]);
    }
    return {y.contiguous()};
  }

  BoundRule bound_rule(const std::vector<bool>& constant) const override {
    return affine_in_first(constant);
  }
  // At most one number of each tap meets in a place.
  double roundings(const Tensors& inputs) const override {
    return inputs[2].to(torch::kDouble).prod().item<double>() + 1;
  }

 private:
  std::vector<int64_t> sizes_of(const torch::Tensor& tensor, const char* what) const {
    std::vector<int64_t> sizes = to_integers(tensor, node_, what);
    for (const int64_t size : sizes) {
      if (size < 1 || size > kMaxElements) {
        fail(describe(node_), ": ", what, " is ", shape_text(sizes), ", expected sizes from 1 to ",
             kMaxElements);
      }
    }
    return sizes;
  }

  // [taps · positions]: where each number of a channel goes in the padded image, flattened.
  static torch::Tensor targets(const Window& window, const std::vector<int64_t>& positions,
                               const std::vector<int64_t>& padded) {
    torch::Tensor taps = torch::zeros({1}, torch::kLong), starts = torch::zeros({1}, torch::kLong);
    for (size_t i = 0; i < padded.size(); ++i) {
      const auto along = [&](const torch::Tensor& before, int64_t count, int64_t step) {
        const torch::Tensor here = torch::arange(count, torch::kLong) * step;
        return (before.unsqueeze(1) * padded[i] + here).flatten();
      };
      taps = along(taps, window.kernel[i], window.dilations[i]);
      starts = along(starts, positions[i], window.strides[i]);
    }
    return (taps.unsqueeze(1) + starts).flatten();
  }

  Node node_;
  WindowAttributes attributes_;
};

}  // namespace

OpPointer make_col2im(OpArguments& arguments) { return std::make_unique<Col2ImOp>(arguments); }

}  // namespace fcp
