// fcp segment predict: bands, or sets of labels, for every pixel of new images.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/progress.h"
#include "fcp/calibration/scored_network.h"
#include "fcp/data/npy.h"
#include "fcp/pipeline/levels.h"
#include "fcp/pipeline/method_stream.h"
#include "fcp/report/heat_map.h"
#include "fcp/report/json.h"

#include "cli/print_report.h"
#include "cli/segment_steps.h"
#include "cli/segment_verbs.h"

namespace fcp {
namespace {

constexpr int kStripGap = 4;  // pixels between the pictures of a strip

torch::Tensor host_floats(const torch::Tensor& tensor) {
  return tensor.to(torch::kCPU, torch::kFloat).contiguous();
}

std::span<const float> floats_of(const torch::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<size_t>(tensor.numel())};
}

// The class that the network answers for each pixel: of bands the channel whose output is least,
// because log(−log p) falls as p grows.
Image predicted_classes(const SegmentImage& image, const Regions& regions,
                        const SegmentTask& task) {
  const torch::Tensor channels = regions.members.defined()
                                     ? regions.prediction[0]
                                     : regions.prediction.reshape({task.channels(), -1}).argmin(0);
  const torch::Tensor classes = (channels + task.first).to(torch::kCPU, torch::kByte).contiguous();
  Image result = blank_image(image.image.height, image.image.width, 1);
  std::copy_n(classes.data_ptr<uint8_t>(), classes.numel(), result.pixels.begin());
  return result;
}

// [2, C, H, W]: lower and upper ends; of sets a boolean [C, H, W].
void write_regions(const std::string& path, const Regions& regions, const SegmentImage& image,
                   const SegmentTask& task) {
  const int64_t height = image.image.height, width = image.image.width;
  if (regions.members.defined()) {
    const torch::Tensor members = regions.members.to(torch::kCPU).contiguous();
    NpyWriter file(path, {height, width}, NpyWriter::Type::kBool);
    file.append(
        std::span<const bool>(members.data_ptr<bool>(), static_cast<size_t>(members.numel())));
    file.close();
    return;
  }
  NpyWriter file(path, {task.channels(), height, width});
  const torch::Tensor lower = round_outward(regions.lower, true).to(torch::kCPU).contiguous();
  const torch::Tensor upper = round_outward(regions.upper, false).to(torch::kCPU).contiguous();
  file.append(floats_of(lower));
  file.append(floats_of(upper));
  file.close();
}

}  // namespace

std::vector<float> uncertainty_of(const Regions& regions, const SegmentTask& task) {
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

SegmentPicture segment_picture(const SegmentImage& image, const Regions& regions,
                               const SegmentTask& task) {
  const std::vector<float> uncertainty = uncertainty_of(regions, task);
  const float largest = *std::max_element(uncertainty.begin(), uncertainty.end());
  const Image map =
      heat_map(uncertainty, image.image.height, image.image.width, 0, largest > 0 ? largest : 1);
  const Image classes = colour_labels(predicted_classes(image, regions, task));
  const Image parts[] = {image.image, classes, map};
  return {side_by_side(parts, kStripGap), largest};
}

size_t predict_images(const CalibrationArtifact& artifact, const SegmentTask& task,
                      const SegmentationSet& set, const SegmentPredictSettings& settings,
                      torch::Device device, const CommonOptions& common) {
  torch::NoGradGuard no_grad;
  const ScoredNetwork predictor(artifact.network, artifact.score, artifact.cut, device);
  const double radius = artifact.radius(settings.level)[0];
  SegmentReader images(set, task, SegmentParts::kImage);
  Progress progress("predict", images.size(), !common.quiet);
  while (const std::optional<SegmentImage> image = images.next()) {
    check_interrupted();
    const Regions regions = of_image(*image, [&] {
      return predictor.score().region(predictor.features(view(image->x)), radius);
    });
    const std::string stem = settings.folder + "/" + image->name;
    write_png(stem + ".png", segment_picture(*image, regions, task).strip);
    if (settings.bands) write_regions(stem + ".npy", regions, *image, task);
    progress.advance(1);
  }
  return images.size();
}

namespace {

struct SegmentPredictOptions {
  CommonOptions common;
  SegmentDataOptions data;
  SegmentPredictSettings settings;
  std::string model;
  std::string alpha = "0.1";
};

void run_segment_predict(SegmentPredictOptions& options) {
  const torch::Device device = start(options.common).device;
  options.settings.level = parse_level(options.alpha);
  const CalibrationArtifact artifact = read_segmenter(options.model, options.settings.level);
  const SegmentTask task = parse_task(artifact.network, options.model);
  if (const auto warning = infinite_radius_warning(artifact, options.settings.level)) {
    say(options.common, "warning: " + *warning);
  }
  const SegmentationSet set = open_unlabelled(options.data, task.classes);
  std::error_code error;
  std::filesystem::create_directories(options.settings.folder, error);
  if (error) fail(options.settings.folder, ": cannot be made: ", error.message());
  const size_t images =
      predict_images(artifact, task, set, options.settings, device, options.common);
  if (options.common.json) {
    const nlohmann::ordered_json json = {{"images", images},
                                         {"alpha", options.settings.level.value()},
                                         {"radius", radius_json(artifact, options.settings.level)},
                                         {"out", options.settings.folder}};
    std::cout << json_text(json) << '\n';
    return;
  }
  std::cout << images << (images == 1 ? " picture in " : " pictures in ") << options.settings.folder
            << ": image | prediction | uncertainty\n";
}

}  // namespace

void add_segment_predict(CLI::App& segment) {
  auto options = std::make_shared<SegmentPredictOptions>();
  CLI::App* verb =
      segment.add_subcommand("predict", "Maps of uncertainty, and bands, for new images");
  verb->footer(
      "Example:\n"
      "  fcp segment predict calibrated.onnx --data photos/ --alpha 0.1 --out maps --bands");
  verb->add_option("model", options->model, "Calibrated predictor")->required();
  verb->add_option("--data", options->data.data,
                   "Images: a folder, a layout of segmentation data, or a single file")
      ->required();
  verb->add_option("--out", options->settings.folder,
                   "Folder to write NAME.png into: image | prediction | uncertainty")
      ->required();
  verb->add_flag("--bands", options->settings.bands,
                 "Write NAME.npy as well: lower and upper ends [2, classes, height, width], or "
                 "booleans [classes, height, width] for sets");
  verb->add_option("--alpha", options->alpha, "Share of images that may miss")
      ->capture_default_str();
  add_segment_data(*verb, options->data);
  add_common(*verb, options->common);
  verb->callback([options] { run_segment_predict(*options); });
}

}  // namespace fcp
