// fcp segment: bands and sets for every pixel of an image.
#include "apps/cli/segment.h"

#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/data/csv_writer.h"
#include "fcp/evaluate/evaluate.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/predictor/batch.h"
#include "fcp/predictor/levels.h"
#include "fcp/predictor/predict.h"
#include "fcp/predictor/segmentation_task.h"

#include "apps/cli/common.h"
#include "apps/cli/print_report.h"
#include "apps/cli/segment_data.h"
#include "apps/report/json.h"

namespace fcp::cli {

void add_segment_data(CLI::App& verb, SegmentDataOptions& options) {
  verb.add_option("--fold", options.folds, "Folds of the data to use, where it has some")
      ->delimiter(',')
      ->allow_extra_args(false);
}

CalibrationArtifact read_segmenter(const std::string& path, const Level& level) {
  CalibrationArtifact artifact = read_artifact_for(path, std::span(&level, 1));
  if (!artifact.method.calibration.traits().one_radius) {
    fail(path, ": is of ", artifact.method.calibration.name(),
         " calibration; evaluate and predict of images take split calibration");
  }
  return artifact;
}

void add_segment(CLI::App& app) {
  CLI::App* segment =
      app.add_subcommand("segment", "Images: a band or a set of labels for every pixel");
  segment->require_subcommand(1);
  add_segment_demo(*segment);
  add_segment_scenes(*segment);
  add_segment_train(*segment);
  add_segment_calibrate(*segment);
  add_segment_predict(*segment);
  add_segment_evaluate(*segment);
}

// fcp segment predict: bands, or sets of labels, for every pixel of new images.

namespace {

struct SegmentPredictFlags {
  CommonOptions common;
  SegmentDataOptions data;
  std::string model;
  std::string alpha = "0.1";
  std::string folder;
  bool bands = false;  // .npy files as well
};

void run_segment_predict(const SegmentPredictFlags& flags) {
  const Context context = start(flags.common);
  const Level level = parse_level(flags.alpha);
  const CalibrationArtifact artifact = read_segmenter(flags.model, level);
  const SegmentTask task = parse_task(artifact.network, flags.model);
  for (const std::string& warning : level_warnings(artifact, level)) {
    say(flags.common, "warning: " + warning);
  }
  SegmentationRows images(open_unlabelled(flags.data, task.classes), task, SegmentParts::kImage);
  std::error_code error;
  std::filesystem::create_directories(flags.folder, error);
  if (error) fail(flags.folder, ": cannot be made: ", error.message());
  const auto writer = open_region_folder(flags.folder, flags.bands, images);
  const size_t count = predict(internal::PredictorCore(artifact, context.device), images,
                               {.levels = {level}}, context, *writer);
  if (flags.common.json) {
    const nlohmann::ordered_json json = {{"images", count},
                                         {"alpha", level.value()},
                                         {"radius", radius_json(artifact, level)},
                                         {"out", flags.folder}};
    std::cout << json_text(json) << '\n';
    return;
  }
  std::cout << count << (count == 1 ? " picture in " : " pictures in ") << flags.folder
            << ": image | prediction | uncertainty\n";
}

}  // namespace

void add_segment_predict(CLI::App& segment) {
  auto flags = std::make_shared<SegmentPredictFlags>();
  CLI::App* verb =
      segment.add_subcommand("predict", "Maps of uncertainty, and bands, for new images");
  verb->footer(
      "Example:\n"
      "  fcp segment predict calibrated.onnx --data photos/ --alpha 0.1 --out maps --bands");
  verb->add_option("model", flags->model, "Calibrated predictor")->required();
  verb->add_option("--data", flags->data.data,
                   "Images: a folder, a layout of segmentation data, or a single file")
      ->required();
  verb->add_option("--out", flags->folder,
                   "Folder to write NAME.png into: image | prediction | uncertainty")
      ->required();
  verb->add_flag("--bands", flags->bands,
                 "Write NAME.npy as well: lower and upper ends [2, classes, height, width], or "
                 "booleans [classes, height, width] for sets");
  verb->add_option("--alpha", flags->alpha, "Share of images that may miss")->capture_default_str();
  add_segment_data(*verb, flags->data);
  add_common(*verb, flags->common, kTakesJson | kTakesThreads | kTakesDevice);
  verb->callback([flags] { run_segment_predict(*flags); });
}

// fcp segment evaluate: how bands and sets do on images with labels.

namespace {

struct SegmentEvaluateFlags {
  CommonOptions common;
  SegmentDataOptions data;
  ReportFlags report;
  std::string model;
  std::string alpha = "0.1";
  std::string image_csv;
  size_t pictures = 6;
};

// The figures of each test image, a row per method.
void write_figures(const EvaluatedImage& image, CsvWriter& csv) {
  const ImageFigures& figures = image.figures;
  csv.cell(std::string_view(image.name));
  csv.cell(std::string_view(image.method));
  csv.cell(int64_t{image.covered});
  for (const double value :
       {figures.pixel_share(), figures.values_in, figures.length(), figures.weighted_length}) {
    csv.cell(value);
  }
  csv.end_row();
}

void run_segment_evaluate(const SegmentEvaluateFlags& flags) {
  const Context context = start(flags.common);
  const Level level = parse_level(flags.alpha);
  const CalibrationArtifact artifact = read_segmenter(flags.model, level);
  if (context.ranks->size() > 1) {
    check_same_bytes(*context.ranks, flags.model, serialize_onnx(artifact_graph(artifact)));
  }
  const SegmentTask task = parse_task(artifact.network, flags.model);
  const SegmentationSet set = open_labelled(flags.data, "test", task.classes);
  if (set.classes != task.classes) {
    fail(flags.data.data, ": has ", set.classes, " classes, the network was calibrated for ",
         task.classes);
  }
  SegmentationRows images(set, task,
                          artifact.method.score.traits().labels ? SegmentParts::kLabels
                                                                : SegmentParts::kTargetAndWeights);
  std::optional<CsvWriter> figures;
  if (context.ranks->rank() == 0 && !flags.image_csv.empty()) {
    figures.emplace(flags.image_csv,
                    std::vector<std::string>{"file", "method", "covered", "pixel_share",
                                             "value_share", "length", "weighted_length"});
  }
  EvaluateOptions options{.level = level};
  options.pictures = flags.report.html.empty() ? 0 : flags.pictures;
  options.on_image = [&](const EvaluatedImage& image) {
    if (figures) write_figures(image, *figures);
  };
  EvaluationReport report = evaluate(artifact, images, options, context);
  if (figures) figures->close();
  report.provenance.emplace_back("test data", file_name_of(flags.data.data));
  report.title = file_name_of(flags.data.data);
  report.model = file_name_of(flags.model);
  tell_report(report, flags.report, flags.common);
}

}  // namespace

void add_segment_evaluate(CLI::App& segment) {
  auto flags = std::make_shared<SegmentEvaluateFlags>();
  CLI::App* verb = segment.add_subcommand(
      "evaluate", "Coverage by image, pixel and value, and lengths, on labelled images");
  verb->footer(
      "Example:\n"
      "  fcp segment evaluate calibrated.onnx --data cityscapes/ --alpha 0.1 --report "
      "gallery.html");
  verb->add_option("model", flags->model, "Calibrated predictor")->required();
  verb->add_option("--data", flags->data.data, "Folder of images and labels")->required();
  verb->add_option("--alpha", flags->alpha, "Share of images that may miss")->capture_default_str();
  verb->add_option("--report", flags->report.html, "HTML page with figures and pictures to write");
  add_fail_below(*verb, flags->report);
  verb->add_option("--pictures", flags->pictures, "Images shown in the report")
      ->capture_default_str();
  verb->add_option("--images", flags->image_csv, "CSV to write with the figures of each image");
  add_segment_data(*verb, flags->data);
  add_common(*verb, flags->common);
  verb->callback([flags] { run_shared(flags->common, [&] { run_segment_evaluate(*flags); }); });
}

}  // namespace fcp::cli
