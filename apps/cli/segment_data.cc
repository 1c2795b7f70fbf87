// fcp segment scenes, fcp segment train: generated street scenes, and a small network for pixels.
#include "apps/cli/segment_data.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/base/output_file.h"
#include "fcp/base/progress.h"
#include "fcp/calibrate/calibrate.h"
#include "fcp/data/images/image_list.h"
#include "fcp/data/images/scenes.h"
#include "fcp/evaluate/evaluate.h"
#include "fcp/fit/train.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/predictor/predict.h"
#include "fcp/predictor/segmentation_task.h"

#include "apps/cli/common.h"
#include "apps/cli/segment.h"
#include "apps/report/console.h"
#include "apps/report/json.h"
#include "apps/report/page.h"
#include "apps/report/results.h"

namespace fcp::cli {
namespace {

struct ScenesVerbOptions {
  CommonOptions common;
  std::string folder;
  SceneCounts counts;
  SceneOptions scene;
};

void run_scenes(const ScenesVerbOptions& options) {
  start(options.common);
  Progress progress("scenes", options.counts.all(), !options.common.quiet);
  write_scenes(options.folder, options.common.seed, options.counts, options.scene,
               [&] { progress.advance(1); });
  const SceneCounts& counts = options.counts;
  if (options.common.json) {
    const nlohmann::ordered_json json = {{"out", options.folder},
                                         {"train", counts.train},
                                         {"calibration", counts.calibration},
                                         {"test", counts.test},
                                         {"classes", scene_class_names()}};
    std::cout << json.dump(2) << '\n';
    return;
  }
  std::cout << format_count(counts.all(), "scene") << " (" << format_count(counts.train)
            << " train, " << format_count(counts.calibration) << " calibration, "
            << format_count(counts.test) << " test): " << options.folder << '\n';
}

struct SegmentTrainOptions {
  CommonOptions common;
  std::string data;
  std::vector<std::string> folds = {"train"};
  std::vector<int> size;
  std::string class_names;
  std::string out;
  SegmenterOptions train;
};

void print_segmenter(const SegmenterResult& result, size_t images,
                     const SegmentTrainOptions& options) {
  if (options.common.json) {
    nlohmann::ordered_json losses = nlohmann::ordered_json::array();
    for (const double loss : result.training_loss) losses.push_back(json_number(loss));
    const nlohmann::ordered_json json = {{"out", options.out},
                                         {"seconds", result.seconds},
                                         {"images", images},
                                         {"training_loss", losses}};
    std::cout << json.dump(2) << '\n';
    return;
  }
  std::cout << "trained on " << format_count(images, "image") << " in "
            << format_number(result.seconds, 3) << " s";
  if (!result.training_loss.empty()) {
    std::cout << ", loss " << format_number(result.training_loss.front()) << " → "
              << format_number(result.training_loss.back());
  }
  std::cout << ": " << options.out << '\n';
}

void run_segment_train(SegmentTrainOptions& options) {
  const Context context = start(options.common);
  // Without a number of classes, their names or the labels say how many there are.
  const int most = options.train.classes == 0 ? SegmentationSet::kNoClass : options.train.classes;
  const SegmentationSet set = open_segmentation(options.data, most, options.folds);
  if (set.classes != most) options.train.classes = set.classes;  // the layout fixes it
  options.train.class_names =
      options.class_names.empty() ? set.class_names : read_lines(options.class_names);
  if (options.train.classes == 0) {
    options.train.classes = static_cast<int>(options.train.class_names.size());
  }
  options.train.seed = options.common.seed;
  std::array<int, 2> size = {0, 0};
  std::copy(options.size.begin(), options.size.end(), size.begin());
  const SegmenterResult result = train_segmentation(set, options.train, size, context);
  write_onnx(result.graph, options.out);
  print_segmenter(result, set.pairs.size(), options);
}

}  // namespace

void add_segment_scenes(CLI::App& segment) {
  auto options = std::make_shared<ScenesVerbOptions>();
  CLI::App* verb = segment.add_subcommand(
      "scenes", "Generate street scenes with a label for every pixel, to try things on");
  verb->footer(
      "Example:\n"
      "  fcp segment scenes streets --train 200 --calibration 200 --test 100\n"
      "Writes images/, labels/, split.csv and classes.txt.");
  verb->add_option("folder", options->folder, "Where to write them")->required();
  verb->add_option("--train", options->counts.train, "Scenes for training")->capture_default_str();
  verb->add_option("--calibration", options->counts.calibration, "Scenes for calibration")
      ->capture_default_str();
  verb->add_option("--test", options->counts.test, "Scenes for testing")->capture_default_str();
  verb->add_option("--height", options->scene.height, "Pixels")->capture_default_str();
  verb->add_option("--width", options->scene.width, "Pixels")->capture_default_str();
  verb->add_option("--noise", options->scene.noise, "Deviation of a pixel's colour, of 1")
      ->capture_default_str();
  add_common(*verb, options->common, kTakesJson | kTakesSeed | kTakesThreads);
  verb->callback([options] { run_scenes(*options); });
}

void add_segment_train(CLI::App& segment) {
  auto options = std::make_shared<SegmentTrainOptions>();
  CLI::App* verb = segment.add_subcommand(
      "train", "Train a small network that segments images and write it as ONNX");
  verb->footer(
      "Example:\n"
      "  fcp segment train streets --out segmenter.onnx\n"
      "Images are kept in memory: for small data. Networks of other programs need no training.");
  verb->add_option("data", options->data, "Labelled images: a folder of a known layout")
      ->required();
  verb->add_option("--out", options->out, "ONNX file to write")->required();
  verb->add_option("--fold", options->folds, "Folds to train on")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  verb->add_option("--size", options->size, "Height,width to which images are resized")
      ->delimiter(',')
      ->expected(2);
  SegmenterOptions& train = options->train;
  verb->add_option("--classes", train.classes,
                   "Classes, class 0 included; 0: as many as names, or the largest label + 1")
      ->capture_default_str();
  verb->add_option("--class-names", options->class_names, "Names of all classes, one per line");
  verb->add_option("--channels", train.channels, "Channels of the feature")->capture_default_str();
  verb->add_option("--epochs", train.epochs, "Times each image is seen")->capture_default_str();
  verb->add_option("--train-batch", train.batch, "Images of one step")->capture_default_str();
  verb->add_option("--rate", train.rate, "Learning rate of Adam, falling to 0")
      ->capture_default_str();
  add_common(*verb, options->common);
  verb->callback([options] { run_segment_train(*options); });
}

// fcp segment demo: every step on generated street scenes, with every file left behind.

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
