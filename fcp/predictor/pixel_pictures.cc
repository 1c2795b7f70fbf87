#include "fcp/predictor/pixel_pictures.h"

#include <algorithm>
#include <span>

#include "fcp/data/images/heat_map.h"
#include "fcp/interval.h"
#include "fcp/predictor/region_tensors.h"

namespace fcp {
namespace {

constexpr int kStripGap = 4;  // pixels between the pictures of a strip

torch::Tensor host_floats(const torch::Tensor& tensor) {
  return tensor.to(torch::kCPU, torch::kFloat).contiguous();
}

std::span<const float> floats_of(const torch::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<size_t>(tensor.numel())};
}

}  // namespace

// Of bands the channel whose output is least, because log(−log p) falls as p grows.
Image predicted_classes(const Image& image, const Regions& regions, const SegmentTask& task) {
  const torch::Tensor channels = regions.members.defined()
                                     ? regions.prediction[0]
                                     : regions.prediction.reshape({task.channels(), -1}).argmin(0);
  const torch::Tensor classes = (channels + task.first).to(torch::kCPU, torch::kByte).contiguous();
  Image result = blank_image(image.height, image.width, 1);
  std::copy_n(classes.data_ptr<uint8_t>(), classes.numel(), result.pixels.begin());
  return result;
}

std::vector<uint8_t> missed_pixels(const Regions& regions, std::span<const float> y,
                                   const SegmentTask& task) {
  const auto channels = static_cast<size_t>(task.channels());
  if (regions.members.defined()) {
    const torch::Tensor members = host_members(regions);  // [1, C, P]
    const bool* in = members.data_ptr<bool>();
    std::vector<uint8_t> missed(y.size());
    for (size_t i = 0; i < y.size(); ++i) {
      missed[i] = y[i] >= 0 && !in[static_cast<size_t>(y[i]) * y.size() + i];
    }
    return missed;
  }
  const torch::Tensor lower = host_doubles(regions.lower), upper = host_doubles(regions.upper);
  std::vector<uint8_t> missed(y.size() / channels);
  for (size_t i = 0; i < y.size(); ++i) {
    const Interval band{numbers(lower)[i], numbers(upper)[i]};
    if (!band.contains(y[i])) missed[i % missed.size()] = 1;
  }
  return missed;
}

std::vector<float> pixel_uncertainty(const Regions& regions, const SegmentTask& task) {
  const auto channels = static_cast<size_t>(task.channels());
  if (regions.members.defined()) {
    const torch::Tensor size = regions.members[0].to(torch::kFloat).sum(0) - 1;
    const torch::Tensor share =
        host_floats(size.clamp_min(0) / std::max<double>(1, task.channels() - 1));
    return {share.data_ptr<float>(), share.data_ptr<float>() + share.numel()};
  }
  const torch::Tensor lower = host_floats(regions.lower), upper = host_floats(regions.upper);
  return band_uncertainty(floats_of(lower), floats_of(upper), channels,
                          static_cast<size_t>(lower.numel()) / channels);
}

Image pixel_picture(const Image& image, const Regions& regions, const SegmentTask& task,
                    std::span<const std::string> class_names) {
  const std::vector<float> uncertainty = pixel_uncertainty(regions, task);
  const float largest = *std::max_element(uncertainty.begin(), uncertainty.end());
  const Image map = heat_map(uncertainty, image.height, image.width, 0, largest > 0 ? largest : 1);
  const Image classes = colour_labels(predicted_classes(image, regions, task), class_names);
  const Image parts[] = {image, classes, map};
  return side_by_side(parts, kStripGap);
}

Regions region_of_row(const Regions& regions, size_t i) {
  const auto row = [i](const torch::Tensor& all) {
    return all.defined() ? all.narrow(0, static_cast<int64_t>(i), 1) : all;
  };
  Regions one = regions;  // whatever else a batch carries
  one.prediction = row(regions.prediction);
  one.lower = row(regions.lower);
  one.upper = row(regions.upper);
  one.members = row(regions.members);
  return one;
}

}  // namespace fcp
