#include "fcp/data/images/scene_canvas.h"

namespace fcp {

Image SceneCanvas::labels() const {
  Image image = blank_image(height_, width_, 1);
  for (int y = 0; y < height_; ++y) {
    for (int x = 0; x < width_; ++x) image.row(y)[x] = labels_[middle(y, x)];
  }
  return image;
}

Colour SceneCanvas::mean_colour(int y, int x) const {
  Colour sum = {};
  for (int i = 0; i < kSamples; ++i) {
    for (int j = 0; j < kSamples; ++j) {
      const Colour& colour = colours_[index(y * kSamples + i, x * kSamples + j)];
      for (size_t channel = 0; channel < 3; ++channel) sum[channel] += colour[channel];
    }
  }
  for (double& value : sum) value /= kSamples * kSamples;
  return sum;
}

}  // namespace fcp
