// How the bands, or the sets of labels, of whole images do: image by image, pixel by pixel, value
// by value.
//
// An image has P pixels of C channels; its numbers are [C, P], channel by channel. A pixel is in
// where all its channels are within their bands, or its label within its set. What is guaranteed is
// a rate of images, those of which at least the share q of the pixels are in; beside it stand the
// rate of images that are in altogether, and the mean shares of pixels and of values, which say how
// far an image that is not in is from it.
//
// Lengths are means over channels and pixels; so are set sizes, over pixels. At boundaries and
// inside of objects they show whether the bands know where the network is unsure; so does the
// uncertainty, which is the length of the bands as probabilities. A band of one length on the scale
// of log(−log p) is short as a probability where the network is sure and long where it is not.
//
// Memory does not grow with the number of images. Tested by
// tests/evaluate/measures/pixel_evaluation_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fcp/evaluate/measures/coverage.h"

namespace fcp {

// Nonzero where one of the pixels up to `reach` steps above, below, left or right has another
// label. labels is [height, width].
std::vector<uint8_t> boundary_pixels(std::span<const uint8_t> labels, size_t height, size_t width,
                                     size_t reach = 2);

// Interval ends may be infinite.
struct ImageBands {
  std::span<const double> lower;       // [C, P]
  std::span<const double> upper;       // [C, P]
  std::span<const double> truth;       // [C, P]
  std::span<const double> weights;     // [C, P], summing to one (informative_weights)
  std::span<const uint8_t> boundary;   // [P]
  std::span<const float> uncertainty;  // [P], in [0, 1]
};

struct ImageSets {
  std::span<const bool> members;      // [C, P]
  std::span<const int64_t> labels;    // [P]; −1: none, and the pixel counts for its size alone
  std::span<const uint8_t> boundary;  // [P]
};

// A sum and the number of its terms.
struct MeanSums {
  double sum = 0;
  size_t count = 0;

  void add(double value) { sum += value, ++count; }
  void add(const MeanSums& other) { sum += other.sum, count += other.count; }
  double mean() const { return sum / static_cast<double>(count); }  // NaN of nothing
};

// One image.
struct ImageFigures {
  size_t pixels = 0;  // of sets: those with a label
  size_t pixels_in = 0;
  double values_in = 0;        // share; of bands alone
  double weighted_length = 0;  // of bands alone
  MeanSums boundary;           // lengths of bands, or sizes of sets
  MeanSums inside;
  MeanSums boundary_uncertainty;  // of bands alone
  MeanSums inside_uncertainty;

  double pixel_share() const;  // 1 where there is no pixel
  double length() const;       // mean over all pixels
};

// An Error where the sizes do not fit.
ImageFigures band_figures(const ImageBands& image, size_t channels);
ImageFigures set_figures(const ImageSets& image, size_t channels);

struct PixelEvaluation {
  double share = 1;                 // q, of the pixels that must be in
  bool sets = false;                // of labels; otherwise bands
  Coverage coverage;                // images with at least the share q of their pixels in
  Coverage whole;                   // images with all of them in
  double pixel_coverage = 0;        // mean over images of the share of pixels that are in
  double value_coverage = 0;        // the same of single values; of bands alone
  double length = 0;                // mean over images; of sets their size
  double weighted_length = 0;       // of bands alone
  double boundary_length = 0;       // over all pixels at boundaries; NaN where there is none
  double inside_length = 0;         // over all others
  double boundary_uncertainty = 0;  // of bands alone
  double inside_uncertainty = 0;
};

class PixelEvaluator {
 public:
  explicit PixelEvaluator(double share, bool sets = false) : share_(share), sets_(sets) {}

  void add(const ImageFigures& image);
  bool covers(const ImageFigures& image) const;  // at least the share q of its pixels
  PixelEvaluation finish() const;                // at least one image is required

 private:
  double share_;
  bool sets_;
  size_t images_ = 0;
  size_t covered_ = 0;
  size_t whole_ = 0;
  MeanSums pixels_, values_, length_, weighted_, boundary_, inside_, boundary_uncertainty_,
      inside_uncertainty_;
};

}  // namespace fcp
