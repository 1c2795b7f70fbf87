// fcp segment demo: every step on generated street scenes, with every file left behind.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/base/output_file.h"
#include "fcp/calibrate/calibrate.h"
#include "fcp/data/images/scenes.h"
#include "fcp/evaluate/evaluate.h"
#include "fcp/fit/train.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/predictor/predict.h"
#include "fcp/predictor/segmentation_rows.h"

#include "apps/cli/common.h"
#include "apps/cli/segment_verbs.h"
#include "apps/report/console.h"
#include "apps/report/html.h"
#include "apps/report/json.h"

namespace fcp::cli {
namespace {

struct SegmentDemoOptions {
  CommonOptions common;
  std::string folder = "fcp-segment-demo";
  std::string alpha = "0.1";
  double pixels = 0.9;
  SceneCounts counts;
};

void run_segment_demo(const SegmentDemoOptions& options) {
  const Context context = start(options.common);
  const Level level = parse_level(options.alpha);
  std::error_code error;
  std::filesystem::create_directories(options.folder + "/maps", error);
  if (error) fail(options.folder, ": cannot be made: ", error.message());
  const auto file = [&](const char* name) { return options.folder + "/" + name; };
  const auto tell = [&](const std::string& line) {
    if (!options.common.json) std::cout << line << std::endl;
  };
  SegmentDataOptions data;
  data.data = file("streets");
  const auto fold = [&](const char* name) {
    return open_segmentation(data.data, kSceneClasses, {name});
  };

  tell(concat("$ fcp segment scenes ", data.data));
  write_scenes(data.data, options.common.seed, options.counts);

  tell(concat("$ fcp segment train ", data.data, " --out ", file("model.onnx")));
  const SegmenterOptions train{
      .classes = kSceneClasses, .seed = options.common.seed, .class_names = scene_class_names()};
  Graph network = train_segmentation(fold("train"), train, {0, 0}, context).graph;
  write_onnx(network, file("model.onnx"));

  tell(concat("$ fcp segment calibrate ", file("model.onnx"), " --data ", data.data, " --pixels ",
              options.pixels, " --out ", file("calibrated.onnx")));
  const SegmentTask task = prepare_network(network, {}, kSceneClasses);
  CalibrateSettings settings;
  settings.method.score = NestedOptions::kName;
  settings.method.set("output", task.output);
  settings.level = level;
  settings.data_name = data.data;
  settings.method.set("pixels", options.pixels);
  settings.provenance = {{"network", "model.onnx"}, {"calibration data", "streets"}};
  SegmentationRows rows(fold("calibration"), task, SegmentParts::kTarget);
  const CalibrationArtifact artifact = calibrate(network, rows, settings, context).artifact;
  write_artifact(artifact, file("calibrated.onnx"));

  tell(concat("$ fcp segment predict ", file("calibrated.onnx"), " --data ", data.data, " --alpha ",
              level.text(), " --out ", file("maps")));
  const SegmentationSet test = fold("test");
  SegmentationRows images(test, task, SegmentParts::kImage);
  predict(internal::PredictorCore(artifact, context.device), images, {.levels = {level}}, context,
          *open_region_folder(file("maps"), /*bands=*/false, images));

  tell(concat("$ fcp segment evaluate ", file("calibrated.onnx"), " --data ", data.data,
              " --alpha ", level.text(), " --report ", file("gallery.html")));
  SegmentationRows labelled(test, task, SegmentParts::kTargetAndWeights);
  const EvaluationReport report =
      evaluate(artifact, labelled, {.level = level, .pictures = 8}, context);
  write_file(file("gallery.html"), report_html(report));
  if (options.common.json) {
    std::cout << json_text(report_json(report)) << '\n';
    return;
  }
  std::cout << '\n';
  print_report(std::cout, report);
  std::cout << "\nEverything is in " << options.folder << "/; open " << file("gallery.html")
            << '\n';
}

}  // namespace

void add_segment_demo(CLI::App& segment) {
  auto options = std::make_shared<SegmentDemoOptions>();
  CLI::App* verb = segment.add_subcommand(
      "demo", "Every step on generated street scenes, and a page of pictures");
  verb->footer("Example:\n  fcp segment demo --out fcp-segment-demo");
  verb->add_option("--out", options->folder, "Folder for the files it makes")
      ->capture_default_str();
  verb->add_option("--alpha", options->alpha, "Share of images that may miss")
      ->capture_default_str();
  verb->add_option("--pixels", options->pixels,
                   "Share of an image's pixels that must be in; 1: every one of them")
      ->check(CLI::Range(1e-9, 1.0))
      ->capture_default_str();
  verb->add_option("--train", options->counts.train, "Scenes for training")->capture_default_str();
  verb->add_option("--calibration", options->counts.calibration, "Scenes for calibration")
      ->capture_default_str();
  verb->add_option("--test", options->counts.test, "Scenes for testing")->capture_default_str();
  add_common(*verb, options->common);
  verb->callback([options] { run_segment_demo(*options); });
}

}  // namespace fcp::cli
