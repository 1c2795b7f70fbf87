// Bands, or sets of labels, of whole images on a stream of them; see method_evaluator.h.
#include <span>
#include <utility>

#include "fcp/data/images/heat_map.h"
#include "fcp/data/images/segmentation.h"
#include "fcp/evaluate/measures/pixel_evaluation.h"
#include "fcp/evaluate/method_evaluator.h"
#include "fcp/predictor/pixel_pictures.h"
#include "fcp/predictor/region_tensors.h"

namespace fcp {

template <typename Archive>
void visit_fields(Archive& archive, MeanSums& sums) {
  archive(sums.sum, sums.count);
}

template <typename Archive>
void visit_fields(Archive& archive, ImageFigures& figures) {
  archive(figures.pixels, figures.pixels_in, figures.values_in, figures.weighted_length,
          figures.boundary, figures.inside, figures.boundary_uncertainty,
          figures.inside_uncertainty);
}

namespace {

// `y` is the image's row: labels of pixels, or the target of bands.
ImageFigures image_figures(const SegmentImage& image, std::span<const float> y,
                           const Regions& regions, const SegmentTask& task) {
  const std::vector<uint8_t> boundary =
      boundary_pixels(image.labels.pixels, static_cast<size_t>(image.labels.height),
                      static_cast<size_t>(image.labels.width));
  const auto channels = static_cast<size_t>(task.channels());
  if (regions.members.defined()) {
    const torch::Tensor members = host_members(regions);
    const std::vector<int64_t> labels(y.begin(), y.end());
    const std::span<const bool> in(members.data_ptr<bool>(), static_cast<size_t>(members.numel()));
    return set_figures({.members = in, .labels = labels, .boundary = boundary}, channels);
  }
  const torch::Tensor lower = host_doubles(regions.lower), upper = host_doubles(regions.upper);
  const std::vector<double> truth(y.begin(), y.end());
  const std::vector<float> uncertainty = pixel_uncertainty(regions, task);
  return band_figures({.lower = numbers(lower),
                       .upper = numbers(upper),
                       .truth = truth,
                       .weights = image.weights,
                       .boundary = boundary,
                       .uncertainty = uncertainty},
                      channels);
}

class PixelMethod : public MethodEvaluator {
 public:
  explicit PixelMethod(const EvaluatedMethod& method)
      : MethodEvaluator(method),
        task_(*method.source.segmentation()),
        evaluator_(method.artifact().method.score.pixels,
                   method.artifact().method.score.traits().labels) {}

  Example example(const Rows& rows, const MeasuredRegions& measured, size_t i) const override {
    const SegmentImage& image = *rows.images.at(i);
    const Regions own = region_of_row(measured.regions, i);
    const ImageFigures figures = image_figures(image, rows.y.row(i), own, task_);
    const auto coloured = [&](const Image& classes) {
      return encode_png(colour_labels(classes, method_.class_names));
    };
    PixelExample pixels{figures.pixel_share(), static_cast<size_t>(image.image.height),
                        static_cast<size_t>(image.image.width), pixel_uncertainty(own, task_)};
    pixels.truth = coloured(image.labels);
    pixels.prediction = coloured(predicted_classes(image.image, own, task_));
    pixels.missed = encode_png(mark_pixels(image.image, missed_pixels(own, rows.y.row(i), task_)));
    return {.name = image.name,
            .png = encode_png(image.image),
            .covered = evaluator_.covers(figures),
            .region = std::move(pixels)};
  }

 protected:
  void measure_regions(const JudgedRows& rows, const Regions& regions,
                       Packer& packer) const override {
    for (size_t i = 0; i < rows.count(); ++i) {
      const SegmentImage& image = *rows.rows.images.at(i);
      packer(image.name,
             image_figures(image, rows.rows.y.row(i), region_of_row(regions, i), task_));
    }
    packer(std::string());  // no image has this name: the end
  }

  void take_regions(Unpacker& unpacker, std::span<const int64_t>) override {
    for (std::string name; !(name = unpacker.text()).empty();) {
      ImageFigures figures;
      unpacker(figures);
      evaluator_.add(figures);
      if (method_.options.on_image) {
        method_.options.on_image(
            {name, method_.artifact().method.score.name(), evaluator_.covers(figures), figures});
      }
    }
  }

  void finish_regions(MethodResult& result) const override {
    result.evaluation = evaluator_.finish();
  }

  bool has_curve() const override { return false; }

 private:
  const SegmentTask& task_;
  PixelEvaluator evaluator_;
};

}  // namespace

std::unique_ptr<MethodEvaluator> make_pixel_evaluator(const EvaluatedMethod& method) {
  return std::make_unique<PixelMethod>(method);
}

}  // namespace fcp
