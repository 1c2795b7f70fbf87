#include "fcp/methods/scores/pixels.h"

#include <limits>
#include <tuple>

#include "fcp/base/error.h"

namespace fcp {

PixelShape pixel_shape(const torch::Tensor& output) {
  const int64_t rows = output.dim() == 0 ? 1 : output.size(0);
  const int64_t numbers = rows == 0 ? 1 : output.numel() / rows;
  if (output.dim() < 3) return {1, numbers};
  return {output.size(1), numbers / output.size(1)};
}

torch::Tensor enough_pixels(const torch::Tensor& inside, const PixelShape& shape, double share) {
  const int64_t least = least_pixels(share, shape.count);
  if (least == shape.count) return inside.all(1);
  const torch::Tensor pixels = inside.reshape({inside.size(0), shape.channels, shape.count}).all(1);
  return pixels.sum(1) >= least;
}

torch::Tensor pixel_quantile(const torch::Tensor& scores, const PixelShape& shape, double share) {
  const int64_t least = least_pixels(share, shape.count);
  const torch::Tensor largest = scores.amax(1);  // NaN where any is
  if (least == shape.count) return largest;
  const torch::Tensor pixels =
      scores.reshape({scores.size(0), shape.channels, shape.count}).amax(1);  // [N, P]
  if (least == 0) {
    const torch::Tensor none = torch::full_like(largest, -std::numeric_limits<double>::infinity());
    return torch::where(largest.isnan(), largest, none);
  }
  return torch::where(largest.isnan(), largest, std::get<0>(torch::kthvalue(pixels, least, 1)));
}

double pixel_share(double pixels, const std::string& name) {
  if (pixels == 0) return 1;
  if (!(pixels > 0 && pixels <= 1)) {
    fail(name, ": the share of pixels is ", pixels, ", expected more than 0 and at most 1");
  }
  return pixels;
}

}  // namespace fcp
