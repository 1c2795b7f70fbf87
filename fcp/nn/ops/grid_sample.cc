// GridSample: an image looked up at places that another tensor says, interpolated between pixels,
// as spatial transformers do. libtorch computes it as ONNX defines it. Gradients flow to the image;
// no bounds.
// Cost: a few products per number of the output. Reference: ONNX operator specification, GridSample
// 16, 20 and 22. Tested by tests/parity/op_cases_test.cc.
#include <string>

#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/nn/ops/checks.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/shared.h"

namespace fcp {
namespace {

// The place of a name in a list, which is libtorch's number for it.
int64_t choice(const std::string& name, const std::vector<std::string>& names, const Node& node,
               const char* what) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<int64_t>(i);
  }
  fail(describe(node), ": ", what, " '", name, "' is not known");
}

class GridSampleOp : public Op {
 public:
  explicit GridSampleOp(OpArguments& arguments) : node_(arguments.node()) {
    arguments.expect_inputs(2, 2);
    std::string mode = arguments.text("mode", arguments.opset() < 20 ? "bilinear" : "linear");
    if (mode == "linear") mode = "bilinear";
    if (mode == "cubic") mode = "bicubic";
    mode_ = choice(mode, {"bilinear", "nearest", "bicubic"}, node_, "mode");
    padding_ = choice(arguments.text("padding_mode", "zeros"), {"zeros", "border", "reflection"},
                      node_, "padding_mode");
    corners_ = arguments.integer("align_corners", 0) != 0;
  }

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor &x = inputs[0], &grid = inputs[1];
    expect_floating(x, node_, "X");
    expect_type_of(x, grid, node_, "grid");
    expect_rank(x, 4, mode_ == 2 ? 4 : 5, node_, "X");
    expect_rank(grid, x.dim(), x.dim(), node_, "grid");
    if (grid.size(0) != x.size(0) || grid.size(-1) != x.dim() - 2) {
      fail(describe(node_), ": grid has shape ", shape_text(grid.sizes()), ", X ",
           shape_text(x.sizes()), "; expected the same rows and ", x.dim() - 2,
           " coordinates at the end");
    }
    return {torch::grid_sampler(x, grid, mode_, padding_, corners_)};
  }

 private:
  Node node_;
  int64_t mode_, padding_;
  bool corners_;
};

}  // namespace

OpPointer make_grid_sample(OpArguments& arguments) {
  return std::make_unique<GridSampleOp>(arguments);
}

}  // namespace fcp
