// RoiAlign and NonMaxSuppression, which stand in detectors between features and boxes.
//
// RoiAlign cuts boxes out of feature maps: each box is divided into bins, and a bin's number is the
// mean (or the largest) of bilinear samples on a grid in it. NonMaxSuppression goes through the
// boxes of each class by falling score and keeps a box unless it overlaps one that was kept by more
// than iou_threshold. How many boxes it keeps depends on the numbers.
//
// No gradient, no bounds. Cost: samples, and boxes² for each class. Reference: ONNX operator
// specification, RoiAlign 10 to 22, NonMaxSuppression 10 and 11; ONNX Runtime for the largest.
// Tested by tests/nn/ops/detection_test.cc.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/index.h"
#include "fcp/nn/ops/shared.h"

namespace fcp {
namespace {

// Four pixels and their weights; none where the sample lies outside.
struct BilinearSample {
  std::array<int64_t, 4> at = {0, 0, 0, 0};
  std::array<double, 4> weight = {0, 0, 0, 0};
};

BilinearSample bilinear_sample(double y, double x, int64_t height, int64_t width) {
  BilinearSample sample;
  const auto h = static_cast<double>(height), w = static_cast<double>(width);
  if (!(y >= -1 && y <= h && x >= -1 && x <= w)) return sample;
  y = std::max(y, 0.0);
  x = std::max(x, 0.0);
  const int64_t top = std::min(static_cast<int64_t>(y), height - 1);
  const int64_t left = std::min(static_cast<int64_t>(x), width - 1);
  const int64_t bottom = std::min(top + 1, height - 1), right = std::min(left + 1, width - 1);
  const double down = top == height - 1 ? 0 : y - static_cast<double>(top);
  const double across = left == width - 1 ? 0 : x - static_cast<double>(left);
  sample.at = {top * width + left, top * width + right, bottom * width + left,
               bottom * width + right};
  sample.weight = {(1 - down) * (1 - across), (1 - down) * across, down * (1 - across),
                   down * across};
  return sample;
}

class RoiAlignOp : public Op {
 public:
  explicit RoiAlignOp(OpArguments& arguments)
      : node_(arguments.node()),
        height_(arguments.integer("output_height", 1)),
        width_(arguments.integer("output_width", 1)),
        ratio_(arguments.integer("sampling_ratio", 0)),
        scale_(arguments.number("spatial_scale", 1)) {
    arguments.expect_inputs(3, 3);
    const std::string mode = arguments.text("mode", "avg");
    const std::string shift = arguments.opset() < 16
                                  ? "output_half_pixel"
                                  : arguments.text("coordinate_transformation_mode", "half_pixel");
    if (mode != "avg" && mode != "max") {
      fail(describe(node_), ": attribute 'mode' is '", mode, "', expected 'avg' or 'max'");
    }
    if (shift != "half_pixel" && shift != "output_half_pixel") {
      fail(describe(node_), ": attribute 'coordinate_transformation_mode' is '", shift,
           "', expected 'half_pixel' or 'output_half_pixel'");
    }
    if (height_ < 1 || width_ < 1 || ratio_ < 0) {
      fail(describe(node_), ": gives ", height_, " x ", width_, " bins with sampling_ratio ",
           ratio_, ", expected at least one bin and no negative ratio");
    }
    largest_ = mode == "max";
    half_pixel_ = shift == "half_pixel";
  }

  // X [N, C, H, W], boxes [R, 4] as x1, y1, x2, y2, the image of each box [R].
  Tensors forward(const Tensors& inputs) const override {
    expect_rank(inputs[0], 4, 4, node_, "X");
    expect_floating(inputs[0], node_, "X");
    expect_rank(inputs[1], 2, 2, node_, "rois");
    if (inputs[1].size(1) != 4) {
      fail(describe(node_), ": rois have shape ", shape_text(inputs[1].sizes()),
           ", expected [boxes, 4]");
    }
    const torch::Tensor x = inputs[0].detach().to(torch::kCPU, torch::kDouble).contiguous();
    const torch::Tensor boxes = inputs[1].detach().to(torch::kCPU, torch::kDouble).contiguous();
    const int64_t count = boxes.size(0), channels = x.size(1);
    if (x.size(2) < 1 || x.size(3) < 1) {
      fail(describe(node_), ": X has shape ", shape_text(x.sizes()), ", expected pixels");
    }
    expect_vector(inputs[2], count, node_, "batch_indices");
    const torch::Tensor images = checked_indices(inputs[2], x.size(0), node_, torch::kCPU);
    checked_elements({count, channels, height_, width_}, node_);
    torch::Tensor y = torch::empty({count, channels, height_, width_}, torch::kDouble);
    for (int64_t i = 0; i < count; ++i) {
      align(x[images.data_ptr<int64_t>()[i]], boxes.data_ptr<double>() + 4 * i,
            y.data_ptr<double>() + i * channels * height_ * width_);
    }
    return {y.to(inputs[0].device(), inputs[0].scalar_type())};
  }
  bool differentiable() const override { return false; }

 private:
  int64_t grid_size(double bin) const {
    if (ratio_ > 0) return ratio_;
    return std::isfinite(bin) ? static_cast<int64_t>(std::ceil(std::min(bin, 1e9))) : 0;
  }

  void align(const torch::Tensor& image, const double* box, double* out) const {
    const double offset = half_pixel_ ? 0.5 : 0;
    const double left = box[0] * scale_ - offset, top = box[1] * scale_ - offset;
    double width = box[2] * scale_ - offset - left, height = box[3] * scale_ - offset - top;
    if (!half_pixel_) {
      width = std::max(width, 1.0);
      height = std::max(height, 1.0);
    }
    const double bin_h = height / static_cast<double>(height_);
    const double bin_w = width / static_cast<double>(width_);
    const int64_t rows = grid_size(bin_h), columns = grid_size(bin_w);
    checked_elements({std::max<int64_t>(rows, 0), std::max<int64_t>(columns, 0), height_, width_},
                     node_);
    const int64_t plane = image.size(1) * image.size(2);
    for (int64_t bin = 0; bin < height_ * width_; ++bin) {
      std::vector<BilinearSample> samples;
      for (int64_t i = 0; i < rows; ++i) {
        const double y = top + bin_h * (static_cast<double>(bin / width_) +
                                        (static_cast<double>(i) + 0.5) / static_cast<double>(rows));
        for (int64_t j = 0; j < columns; ++j) {
          const double x =
              left + bin_w * (static_cast<double>(bin % width_) +
                              (static_cast<double>(j) + 0.5) / static_cast<double>(columns));
          samples.push_back(bilinear_sample(y, x, image.size(1), image.size(2)));
        }
      }
      for (int64_t c = 0; c < image.size(0); ++c) {
        out[c * height_ * width_ + bin] = pooled(samples, image.data_ptr<double>() + c * plane);
      }
    }
  }

  double pooled(const std::vector<BilinearSample>& samples, const double* pixels) const {
    if (samples.empty()) return 0;
    double sum = 0, most = -std::numeric_limits<double>::infinity();
    for (const BilinearSample& sample : samples) {
      for (size_t k = 0; k < 4; ++k) {
        const double part = sample.weight[k] * pixels[sample.at[k]];
        sum += part;
        most = std::max(most, part);  // of the weighted pixels, as ONNX Runtime has it
      }
    }
    return largest_ ? most : sum / static_cast<double>(samples.size());
  }

  Node node_;
  int64_t height_, width_, ratio_;
  double scale_;
  bool largest_, half_pixel_;
};

struct Box {
  float top, left, bottom, right;
  float area() const { return (bottom - top) * (right - left); }
};

float overlap(const Box& a, const Box& b) {
  const float height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const float width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (!(height > 0 && width > 0)) return 0;
  const float common = height * width, all = a.area() + b.area() - common;
  return a.area() <= 0 || b.area() <= 0 || all <= 0 ? 0 : common / all;
}

class NonMaxSuppressionOp : public Op {
 public:
  explicit NonMaxSuppressionOp(OpArguments& arguments)
      : node_(arguments.node()), centred_(arguments.integer("center_point_box", 0) != 0) {
    arguments.expect_inputs(2, 5);
  }

  // boxes [N, B, 4], scores [N, C, B]; then the most boxes of a class and the two thresholds.
  // Output [kept, 3]: image, class and box.
  Tensors forward(const Tensors& inputs) const override {
    expect_rank(inputs[0], 3, 3, node_, "boxes");
    expect_rank(inputs[1], 3, 3, node_, "scores");
    expect_floating(inputs[0], node_, "boxes");
    expect_floating(inputs[1], node_, "scores");
    const torch::Tensor boxes = inputs[0].detach().to(torch::kCPU, torch::kFloat).contiguous();
    const torch::Tensor scores = inputs[1].detach().to(torch::kCPU, torch::kFloat).contiguous();
    if (boxes.size(2) != 4 || scores.size(0) != boxes.size(0) || scores.size(2) != boxes.size(1)) {
      fail(describe(node_), ": boxes have shape ", shape_text(boxes.sizes()), ", scores ",
           shape_text(scores.sizes()),
           ", expected [images, boxes, 4] and [images, classes, boxes]");
    }
    const double most = number(inputs, 2, 0, "max_output_boxes_per_class");
    const auto limit = static_cast<float>(number(inputs, 3, 0, "iou_threshold"));
    const auto floor = static_cast<float>(
        number(inputs, 4, -std::numeric_limits<double>::infinity(), "score_threshold"));
    std::vector<int64_t> kept;
    for (int64_t n = 0; n < boxes.size(0); ++n) {
      const std::vector<Box> placed = read_boxes(boxes[n]);
      for (int64_t c = 0; c < scores.size(1); ++c) {
        for (const int64_t box : chosen(placed, scores[n][c], most, limit, floor)) {
          kept.insert(kept.end(), {n, c, box});
        }
      }
    }
    return {torch::tensor(kept, torch::kLong).reshape({-1, 3})};
  }
  bool differentiable() const override { return false; }

 private:
  double number(const Tensors& inputs, size_t index, double fallback, const char* what) const {
    if (index >= inputs.size() || !inputs[index].defined()) return fallback;
    if (inputs[index].numel() != 1) {
      fail(describe(node_), ": ", what, " has shape ", shape_text(inputs[index].sizes()),
           ", expected one number");
    }
    return inputs[index].item<double>();
  }

  std::vector<Box> read_boxes(const torch::Tensor& rows) const {
    std::vector<Box> boxes;
    for (int64_t i = 0; i < rows.size(0); ++i) {
      const float* b = rows.data_ptr<float>() + 4 * i;
      if (centred_) {  // x, y of the middle, width, height
        boxes.push_back({b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2});
      } else {  // y1, x1, y2, x2 of any two opposite corners
        boxes.push_back({std::min(b[0], b[2]), std::min(b[1], b[3]), std::max(b[0], b[2]),
                         std::max(b[1], b[3])});
      }
    }
    return boxes;
  }

  static std::vector<int64_t> chosen(const std::vector<Box>& boxes, const torch::Tensor& scores,
                                     double most, float limit, float floor) {
    const torch::Tensor plain = scores.contiguous();
    const float* score = plain.data_ptr<float>();
    std::vector<int64_t> order;
    for (size_t i = 0; i < boxes.size(); ++i) {
      if (score[i] > floor) order.push_back(static_cast<int64_t>(i));
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return score[a] > score[b]; });
    std::vector<int64_t> kept;
    for (const int64_t i : order) {
      if (static_cast<double>(kept.size()) >= most) break;
      const bool free = std::none_of(kept.begin(), kept.end(), [&](int64_t j) {
        return overlap(boxes[static_cast<size_t>(i)], boxes[static_cast<size_t>(j)]) > limit;
      });
      if (free) kept.push_back(i);
    }
    return kept;
  }

  Node node_;
  bool centred_;
};

}  // namespace

OpPointer make_roi_align(OpArguments& arguments) { return std::make_unique<RoiAlignOp>(arguments); }

OpPointer make_non_max_suppression(OpArguments& arguments) {
  return std::make_unique<NonMaxSuppressionOp>(arguments);
}

}  // namespace fcp
