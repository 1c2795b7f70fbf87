#include "fcp/evaluate/measures/pixel_evaluation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fcp/base/error.h"
#include "fcp/conformal/pixel_share.h"
#include "fcp/interval.h"

namespace fcp {

std::vector<uint8_t> boundary_pixels(std::span<const uint8_t> labels, size_t height, size_t width,
                                     size_t reach) {
  if (labels.size() != height * width) {
    fail("found ", labels.size(), " labels, expected ", height, " x ", width);
  }
  std::vector<uint8_t> boundary(labels.size(), 0);
  const auto meet = [&](size_t a, size_t b) {
    if (labels[a] != labels[b]) boundary[a] = boundary[b] = 1;
  };
  for (size_t y = 0; y < height; ++y) {
    for (size_t x = 0; x < width; ++x) {
      const size_t here = y * width + x;
      for (size_t step = 1; step <= reach; ++step) {
        if (x + step < width) meet(here, here + step);
        if (y + step < height) meet(here, here + step * width);
      }
    }
  }
  return boundary;
}

double ImageFigures::pixel_share() const {
  return pixels == 0 ? 1 : static_cast<double>(pixels_in) / static_cast<double>(pixels);
}

double ImageFigures::length() const {
  MeanSums all = boundary;
  all.add(inside);
  return all.mean();
}

ImageFigures band_figures(const ImageBands& image, size_t channels) {
  const size_t pixels = image.boundary.size(), values = channels * pixels;
  if (image.lower.size() != values || image.upper.size() != values ||
      image.truth.size() != values || image.weights.size() != values ||
      image.uncertainty.size() != pixels) {
    fail("the bands of an image have ", image.lower.size(), " numbers, its truth ",
         image.truth.size(), ", expected ", channels, " channels of ", pixels, " pixels");
  }
  std::vector<uint8_t> in(pixels, 1);
  std::vector<double> length(pixels, 0);
  size_t values_in = 0;
  double weighted = 0;
  for (size_t k = 0, pixel = 0; k < values; ++k, pixel = pixel + 1 == pixels ? 0 : pixel + 1) {
    const Interval band{image.lower[k], image.upper[k]};
    const bool holds = band.contains(image.truth[k]);
    values_in += holds;
    in[pixel] &= static_cast<uint8_t>(holds);
    length[pixel] += band.length();
    if (image.weights[k] > 0) weighted += image.weights[k] * band.length();  // 0 · ∞ is nothing
  }
  ImageFigures figures;
  figures.pixels = pixels;
  figures.pixels_in = static_cast<size_t>(std::count(in.begin(), in.end(), 1));
  figures.values_in = static_cast<double>(values_in) / static_cast<double>(values);
  figures.weighted_length = weighted;
  for (size_t pixel = 0; pixel < pixels; ++pixel) {
    const double mean = length[pixel] / static_cast<double>(channels);
    const bool edge = image.boundary[pixel] != 0;
    (edge ? figures.boundary : figures.inside).add(mean);
    (edge ? figures.boundary_uncertainty : figures.inside_uncertainty)
        .add(image.uncertainty[pixel]);
  }
  return figures;
}

ImageFigures set_figures(const ImageSets& image, size_t channels) {
  const size_t pixels = image.boundary.size();
  if (image.members.size() != channels * pixels || image.labels.size() != pixels) {
    fail("the sets of an image have ", image.members.size(), " numbers, its labels ",
         image.labels.size(), ", expected ", channels, " classes of ", pixels, " pixels");
  }
  ImageFigures figures;
  for (size_t pixel = 0; pixel < pixels; ++pixel) {
    double size = 0;
    for (size_t channel = 0; channel < channels; ++channel) {
      size += image.members[channel * pixels + pixel] ? 1 : 0;
    }
    (image.boundary[pixel] ? figures.boundary : figures.inside).add(size);
    if (image.labels[pixel] < 0) continue;
    ++figures.pixels;
    figures.pixels_in += image.members[static_cast<size_t>(image.labels[pixel]) * pixels + pixel];
  }
  return figures;
}

bool PixelEvaluator::covers(const ImageFigures& image) const {
  const int64_t least = least_pixels(share_, static_cast<int64_t>(image.pixels));
  return static_cast<int64_t>(image.pixels_in) >= least;
}

void PixelEvaluator::add(const ImageFigures& image) {
  ++images_;
  covered_ += covers(image);
  whole_ += image.pixels_in == image.pixels;
  pixels_.add(image.pixel_share());
  values_.add(image.values_in);
  length_.add(image.length());
  weighted_.add(image.weighted_length);
  boundary_.add(image.boundary);
  inside_.add(image.inside);
  boundary_uncertainty_.add(image.boundary_uncertainty);
  inside_uncertainty_.add(image.inside_uncertainty);
}

PixelEvaluation PixelEvaluator::finish() const {
  PixelEvaluation result;
  result.share = share_;
  result.sets = sets_;
  result.coverage = coverage_of(covered_, images_);
  result.whole = coverage_of(whole_, images_);
  result.pixel_coverage = pixels_.mean();
  result.value_coverage = values_.mean();
  result.length = length_.mean();
  result.weighted_length = weighted_.mean();
  result.boundary_length = boundary_.mean();
  result.inside_length = inside_.mean();
  result.boundary_uncertainty = boundary_uncertainty_.mean();
  result.inside_uncertainty = inside_uncertainty_.mean();
  return result;
}

}  // namespace fcp
