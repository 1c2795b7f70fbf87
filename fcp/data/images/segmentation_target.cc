#include "fcp/data/images/segmentation_target.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fcp/base/error.h"

namespace fcp {

namespace {

// The kernel's rows one after the other: products of one-dimensional weights, each the float
// nearest to its exact value.
std::vector<float> gaussian_weights(int kernel) {
  const int radius = kernel / 2;
  const double sigma = 0.3 * ((kernel - 1) * 0.5 - 1) + 0.8;
  std::vector<double> line;
  for (int x = -radius; x <= radius; ++x) line.push_back(std::exp(-x * x / (2 * sigma * sigma)));
  const double sum = std::accumulate(line.begin(), line.end(), 0.0);
  std::vector<float> weights;
  for (const double down : line) {
    for (const double right : line) {
      weights.push_back(static_cast<float>(down / sum) * static_cast<float>(right / sum));
    }
  }
  return weights;
}

// −1 is 1 and n is n − 2; further out it is mirrored again.
int mirrored(int at, int n) {
  if (n == 1) return 0;
  const int period = 2 * (n - 1);
  at = std::abs(at) % period;
  return at < n ? at : period - at;
}

// One class of the one-hot labels with its mirrored margin, and which of its rows have the class.
struct ClassPlane {
  size_t height = 0;
  size_t width = 0;
  std::vector<float> values;
  std::vector<bool> present;

  const float* row(size_t y) const { return values.data() + y * width; }
};

void fill_plane(const Image& labels, int label, const SegmentationTargetOptions& options,
                ClassPlane& plane) {
  const int radius = options.kernel / 2;
  const size_t margin = static_cast<size_t>(options.kernel) - 1;
  plane.height = static_cast<size_t>(labels.height) + margin;
  plane.width = static_cast<size_t>(labels.width) + margin;
  plane.values.assign(plane.height * plane.width, options.epsilon);
  plane.present.assign(plane.height, false);
  const float one = 1 - options.epsilon;
  for (size_t y = 0; y < plane.height; ++y) {
    const uint8_t* const in = labels.row(mirrored(static_cast<int>(y) - radius, labels.height));
    if (std::find(in, in + labels.width, label) == in + labels.width) continue;
    plane.present[y] = true;
    for (size_t x = 0; x < plane.width; ++x) {
      const bool here = in[mirrored(static_cast<int>(x) - radius, labels.width)] == label;
      if (here) plane.values[y * plane.width + x] = one;
    }
  }
}

// The sum over the window, weight by weight in the order of the rows.
void blur_row(const ClassPlane& plane, size_t y, const std::vector<float>& weights, size_t kernel,
              std::span<float> out) {
  std::fill(out.begin(), out.end(), 0.f);
  const float* weight = weights.data();
  for (size_t dy = 0; dy < kernel; ++dy) {
    for (size_t dx = 0; dx < kernel; ++dx, ++weight) {
      const float* const in = plane.row(y + dy) + dx;
      for (size_t x = 0; x < out.size(); ++x) out[x] += *weight * in[x];
    }
  }
}

void blur_plane(const ClassPlane& plane, const std::vector<float>& weights, size_t kernel,
                std::span<float> out) {
  const size_t width = plane.width - kernel + 1;
  for (size_t y = 0; y + kernel <= plane.height; ++y) {
    const std::span<float> row = out.subspan(y * width, width);
    const auto first = plane.present.begin() + static_cast<std::ptrdiff_t>(y);
    const auto last = first + static_cast<std::ptrdiff_t>(kernel);
    if (std::find(first, last, true) != last) {
      blur_row(plane, y, weights, kernel, row);
    } else {  // the same sum everywhere
      blur_row(plane, y, weights, kernel, row.first(1));
      std::fill(row.begin(), row.end(), row[0]);
    }
  }
}

void check_options(const Image& labels, const SegmentationTargetOptions& options) {
  if (labels.channels != 1) fail("labels: ", labels.channels, " channels, expected 1");
  if (options.classes < 1 || options.classes > 256 || options.kernel < 1 ||
      options.kernel % 2 == 0 || !(options.epsilon > 0 && options.epsilon < 0.5f)) {
    fail("segmentation target: ", options.classes, " classes, kernel ", options.kernel,
         ", epsilon ", options.epsilon, ", expected 1 to 256, an odd number and 0 to 0.5");
  }
  for (const uint8_t label : labels.pixels) {
    if (label >= options.classes) {
      fail("labels: found class ", int{label}, ", expected 0 to ", options.classes - 1);
    }
  }
}

}  // namespace

Array blurred_labels(const Image& labels, const SegmentationTargetOptions& options) {
  check_options(labels, options);
  const int first = options.drop_unlabelled ? 1 : 0;
  const std::vector<float> weights = gaussian_weights(options.kernel);
  Array out = zeros({options.classes - first, labels.height, labels.width});
  ClassPlane plane;
  const size_t size = out.row_size();
  for (size_t channel = 0; channel < out.rows(); ++channel) {
    fill_plane(labels, static_cast<int>(channel) + first, options, plane);
    blur_plane(plane, weights, static_cast<size_t>(options.kernel),
               std::span(out.values).subspan(channel * size, size));
  }
  return out;
}

void double_log(std::span<float> values) {
  float before = 0.5f, result = std::log(-std::log(before));
  for (float& value : values) {  // long runs of one value: most pixels are far from a border
    if (value != before) {
      before = value;
      result = std::log(-std::log(value));
    }
    value = result;
  }
}

Array segmentation_target(const Image& labels, const SegmentationTargetOptions& options) {
  Array target = blurred_labels(labels, options);
  double_log(target.values);
  return target;
}

void count_labels(const Image& labels, std::span<uint64_t> counts) {
  for (const uint8_t label : labels.pixels) {
    if (label >= counts.size()) {
      fail("labels: found class ", int{label}, ", expected 0 to ", counts.size() - 1);
    }
    ++counts[label];
  }
}

std::vector<double> enet_weights(std::span<const uint64_t> counts, double c) {
  const uint64_t all = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  if (all == 0) fail("class weights: no labels were counted");
  if (!(c > 1)) fail("class weights: c is ", c, ", expected > 1");
  std::vector<double> weights;
  for (const uint64_t count : counts) {
    weights.push_back(1 / std::log(c + static_cast<double>(count) / static_cast<double>(all)));
  }
  return weights;
}

std::vector<double> loss_weights(std::span<const uint64_t> counts, double c) {
  std::vector<double> weights = enet_weights(counts, c);
  weights[0] = 0;
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= sum;
  return weights;
}

}  // namespace fcp
