// Bands, or sets of labels, of whole images on a stream of them; see method_evaluator.h.
#include <span>
#include <utility>

#include "fcp/evaluation/pixel_evaluation.h"
#include "fcp/images/heat_map.h"
#include "fcp/pipeline/method_evaluator.h"
#include "fcp/pipeline/open_data.h"
#include "fcp/pipeline/pixel_pictures.h"
#include "fcp/pipeline/region_tensors.h"
#include "fcp/pipeline/segmentation_rows.h"

namespace fcp {
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

void pack_figures(const ImageFigures& figures, Packer& packer) {
  std::vector<uint64_t> counts = {figures.pixels, figures.pixels_in};
  std::vector<double> values = {figures.values_in, figures.weighted_length};
  for (const MeanSums& sums : {figures.boundary, figures.inside, figures.boundary_uncertainty,
                               figures.inside_uncertainty}) {
    counts.push_back(sums.count);
    values.push_back(sums.sum);
  }
  packer.add(counts);
  packer.add(values);
}

ImageFigures unpack_figures(Unpacker& unpacker) {
  const std::vector<uint64_t> counts = unpacker.numbers<uint64_t>();
  const std::vector<double> values = unpacker.numbers<double>();
  ImageFigures figures;
  figures.pixels = counts.at(0);
  figures.pixels_in = counts.at(1);
  figures.values_in = values.at(0);
  figures.weighted_length = values.at(1);
  MeanSums* const sums[] = {&figures.boundary, &figures.inside, &figures.boundary_uncertainty,
                            &figures.inside_uncertainty};
  for (size_t i = 0; i < 4; ++i) *sums[i] = {values.at(2 + i), counts.at(2 + i)};
  return figures;
}

class PixelMethod : public MethodEvaluator {
 public:
  explicit PixelMethod(const EvaluatedMethod& method)
      : MethodEvaluator(method),
        images_(dynamic_cast<const SegmentationRows&>(method.source)),
        evaluator_(method.artifact.score.pixels, predicts_labels(method.artifact.score.name)) {}

  Example example(const Rows& rows, const MeasuredRegions& measured, size_t i) const override {
    const SegmentImage& image = images_.images().at(i);
    const SegmentTask& task = images_.task();
    const Regions own = region_of_row(measured.regions, i);
    const ImageFigures figures = image_figures(image, rows.y.row(i), own, task);
    const auto coloured = [&](const Image& classes) {
      return encode_png(colour_labels(classes, method_.class_names));
    };
    PixelExample pixels{figures.pixel_share(), static_cast<size_t>(image.image.height),
                        static_cast<size_t>(image.image.width), pixel_uncertainty(own, task)};
    pixels.truth = coloured(image.labels);
    pixels.prediction = coloured(predicted_classes(image.image, own, task));
    pixels.missed = encode_png(mark_pixels(image.image, missed_pixels(own, rows.y.row(i), task)));
    return {.name = image.name,
            .png = encode_png(image.image),
            .covered = evaluator_.covers(figures),
            .region = std::move(pixels)};
  }

 protected:
  torch::Tensor truth_of(const Rows& rows) const override { return view(rows.y); }

  void measure_regions(const TestInputs&, const Rows& rows, const Regions& regions,
                       Packer& packer) const override {
    for (size_t i = 0; i < rows.x.rows(); ++i) {
      packer.add(images_.images().at(i).name);
      pack_figures(image_figures(images_.images()[i], rows.y.row(i), region_of_row(regions, i),
                                 images_.task()),
                   packer);
    }
    packer.add(std::string());  // no image has this name: the end
  }

  void take_regions(Unpacker& unpacker, std::span<const int64_t>) override {
    for (std::string name; !(name = unpacker.text()).empty();) {
      const ImageFigures figures = unpack_figures(unpacker);
      evaluator_.add(figures);
      if (method_.options.on_image) {
        method_.options.on_image(
            {name, method_.artifact.score.name, evaluator_.covers(figures), figures});
      }
    }
  }

  void finish_regions(MethodResult& result) const override {
    result.evaluation = evaluator_.finish();
  }

  bool has_curve() const override { return false; }

 private:
  const SegmentationRows& images_;
  PixelEvaluator evaluator_;
};

}  // namespace

std::unique_ptr<MethodEvaluator> make_pixel_evaluator(const EvaluatedMethod& method) {
  return std::make_unique<PixelMethod>(method);
}

}  // namespace fcp
