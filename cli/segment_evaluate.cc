// fcp segment evaluate: how bands and sets do on images with labels.
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/output_file.h"
#include "fcp/base/progress.h"
#include "fcp/calibration/scored_network.h"
#include "fcp/conformal/quantile.h"
#include "fcp/pipeline/levels.h"
#include "fcp/pipeline/method_stream.h"
#include "fcp/report/format.h"
#include "fcp/report/json.h"

#include "cli/print_report.h"
#include "cli/segment_steps.h"
#include "cli/segment_verbs.h"

namespace fcp {
namespace {

torch::Tensor host_doubles(const torch::Tensor& tensor) {
  return tensor.to(torch::kCPU, torch::kDouble).contiguous();
}

ImageFigures figures_of(const SegmentImage& image, const Regions& regions,
                        const SegmentTask& task) {
  const std::vector<uint8_t> boundary =
      boundary_pixels(image.labels.pixels, static_cast<size_t>(image.labels.height),
                      static_cast<size_t>(image.labels.width));
  const auto channels = static_cast<size_t>(task.channels());
  if (regions.members.defined()) {
    const torch::Tensor members = regions.members.to(torch::kCPU).contiguous();
    const Array own = pixel_labels(image.labels, task);
    const std::vector<int64_t> labels(own.values.begin(), own.values.end());
    const std::span<const bool> in(members.data_ptr<bool>(), static_cast<size_t>(members.numel()));
    return set_figures({.members = in, .labels = labels, .boundary = boundary}, channels);
  }
  const torch::Tensor lower = host_doubles(regions.lower), upper = host_doubles(regions.upper);
  const std::vector<double> truth(image.target.values.begin(), image.target.values.end());
  const std::vector<float> uncertainty = uncertainty_of(regions, task);
  return band_figures({.lower = numbers(lower),
                       .upper = numbers(upper),
                       .truth = truth,
                       .weights = image.weights,
                       .boundary = boundary,
                       .uncertainty = uncertainty},
                      channels);
}

// One score at its radius, on a stream of images.
class ImageMethod {
 public:
  ImageMethod(const ScoreOptions& options, const std::shared_ptr<const Network>& head,
              double radius)
      : options_(options),
        score_(make_score(options, head)),
        radius_(radius),
        evaluator_(options.pixels) {}

  // What the image's regions are, and how they do.
  Regions add(const SegmentImage& image, const torch::Tensor& features, const SegmentTask& task) {
    Regions regions = score_->region(features, radius_);
    last_ = figures_of(image, regions, task);
    evaluator_.add(last_);
    ++images_;
    if (!obeys_law(options_)) {
      const double score = score_->score(features, truth_of(image, task, options_))[0];
      detected_ += options_.paper ? score < radius_ : score <= radius_;
    }
    return regions;
  }

  const ImageFigures& last() const { return last_; }
  bool covers_last() const { return evaluator_.covers(last_); }
  const std::string& name() const { return options_.name; }

  SegmentMethodResult finish() const {
    SegmentMethodResult result{options_.name, evaluator_.finish(), radius_, std::nullopt};
    if (!obeys_law(options_)) result.detection = coverage_of(detected_, images_);
    return result;
  }

 private:
  ScoreOptions options_;
  std::unique_ptr<Score> score_;
  double radius_;
  PixelEvaluator evaluator_;
  ImageFigures last_;
  size_t images_ = 0;
  size_t detected_ = 0;
};

// The figures of each image, a row for each method.
class ImageRows {
 public:
  explicit ImageRows(const std::string& path) {
    if (path.empty()) return;
    csv_.emplace(path, std::vector<std::string>{"file", "method", "covered", "pixel_share",
                                                "value_share", "length", "weighted_length"});
  }

  void add(const std::string& name, const ImageMethod& method) {
    if (!csv_) return;
    const ImageFigures& figures = method.last();
    csv_->cell(std::string_view(name));
    csv_->cell(std::string_view(method.name()));
    csv_->cell(int64_t{method.covers_last()});
    for (const double value :
         {figures.pixel_share(), figures.values_in, figures.length(), figures.weighted_length}) {
      csv_->cell(std::string_view(digits(value)));
    }
    csv_->end_row();
  }

  void close() {
    if (csv_) csv_->close();
  }

 private:
  std::optional<CsvWriter> csv_;
};

GalleryStrip strip_of(const SegmentImage& image, const Regions& regions, const ImageMethod& method,
                      const SegmentTask& task) {
  const SegmentPicture picture = segment_picture(image, regions, task);
  return {
      image.name, encode_png(picture.strip),
      concat(format_percent(method.last().pixel_share(), 2),
             " of the pixels are in; the largest uncertainty is ", format_number(picture.largest))};
}

}  // namespace

SegmentReport evaluate_images(const CalibrationArtifact& artifact, const SegmentTask& task,
                              const SegmentationSet& set, const SegmentEvaluateSettings& settings,
                              torch::Device device, const CommonOptions& common) {
  torch::NoGradGuard no_grad;
  const ScoredNetwork predictor(artifact.network, artifact.score, artifact.cut, device);
  std::vector<ImageMethod> methods;
  methods.emplace_back(artifact.score, predictor.shared_head(), artifact.radius(settings.level)[0]);
  if (const std::optional<CalibrationArtifact> plain = baseline_predictor(artifact)) {
    methods.emplace_back(plain->score, predictor.shared_head(), plain->radius(settings.level)[0]);
  }
  const bool sets = predicts_labels(artifact.score.name);
  SegmentReader images(set, task, sets ? SegmentParts::kLabels : SegmentParts::kTargetAndWeights);
  ImageRows rows(settings.image_csv);
  SegmentReport report;
  Progress progress("evaluate", images.size(), !common.quiet);
  while (const std::optional<SegmentImage> image = images.next()) {
    check_interrupted();
    of_image(*image, [&] {
      const torch::Tensor features = predictor.features(view(image->x));
      for (ImageMethod& method : methods) {
        const Regions regions = method.add(*image, features, task);
        rows.add(image->name, method);
        if (&method == &methods.front() && report.strips.size() < settings.pictures) {
          report.strips.push_back(strip_of(*image, regions, method, task));
        }
      }
    });
    progress.advance(1);
  }
  rows.close();
  report.level = settings.level;
  report.share = artifact.score.pixels;
  report.sets = sets;
  report.calibration_images = artifact.rows.count();
  report.class_names = class_names_of(artifact.network, static_cast<size_t>(task.classes));
  for (const ImageMethod& method : methods) report.methods.push_back(method.finish());
  report.provenance.assign(artifact.provenance.begin(), artifact.provenance.end());
  if (const auto warning = infinite_radius_warning(artifact, settings.level)) {
    report.notes.push_back(*warning);
  }
  return report;
}

namespace {

struct SegmentEvaluateOptions {
  CommonOptions common;
  SegmentDataOptions data;
  SegmentEvaluateSettings settings;
  std::string model;
  std::string alpha = "0.1";
  std::string report;
  size_t pictures = 6;
};

void run_segment_evaluate(SegmentEvaluateOptions& options) {
  const torch::Device device = start(options.common).device;
  options.settings.level = parse_level(options.alpha);
  const CalibrationArtifact artifact = read_segmenter(options.model, options.settings.level);
  const SegmentTask task = parse_task(artifact.network, options.model);
  const SegmentationSet set = open_labelled(options.data, "test", task.classes);
  if (set.classes != task.classes) {
    fail(options.data.data, ": has ", set.classes, " classes, the network was calibrated for ",
         task.classes);
  }
  options.settings.pictures = options.report.empty() ? 0 : options.pictures;
  SegmentReport report =
      evaluate_images(artifact, task, set, options.settings, device, options.common);
  report.provenance.emplace_back(
      "test data", std::filesystem::path(options.data.data).lexically_normal().filename().string());
  for (const std::string& note : report.notes) say(options.common, "warning: " + note);
  if (!options.report.empty()) write_file(options.report, segment_report_html(report));
  if (options.common.json) {
    std::cout << json_text(segment_report_json(report)) << '\n';
    return;
  }
  std::cout << segment_report_text(report);
  if (!options.report.empty()) std::cout << "report: " << options.report << '\n';
}

}  // namespace

void add_segment_evaluate(CLI::App& segment) {
  auto options = std::make_shared<SegmentEvaluateOptions>();
  CLI::App* verb = segment.add_subcommand(
      "evaluate", "Coverage by image, pixel and value, and lengths, on labelled images");
  verb->footer(
      "Example:\n"
      "  fcp segment evaluate calibrated.onnx --data cityscapes/ --alpha 0.1 --report "
      "gallery.html");
  verb->add_option("model", options->model, "Calibrated predictor")->required();
  verb->add_option("--data", options->data.data, "Folder of images and labels")->required();
  verb->add_option("--alpha", options->alpha, "Share of images that may miss")
      ->capture_default_str();
  verb->add_option("--report", options->report, "HTML page with figures and pictures to write");
  verb->add_option("--pictures", options->pictures, "Images shown in the report")
      ->capture_default_str();
  verb->add_option("--images", options->settings.image_csv,
                   "CSV to write with the figures of each image");
  add_segment_data(*verb, options->data);
  add_common(*verb, options->common);
  verb->callback([options] { run_segment_evaluate(*options); });
}

}  // namespace fcp
