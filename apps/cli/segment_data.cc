// fcp segment scenes, fcp segment train: generated street scenes, and a small network for pixels.
#include "apps/cli/segment_data.h"

#include <algorithm>
#include <array>
#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "fcp/base/progress.h"
#include "fcp/data/images/folder.h"
#include "fcp/data/images/scenes.h"
#include "fcp/fit/train.h"
#include "fcp/nn/graph/onnx_writer.h"

#include "apps/cli/common.h"
#include "apps/report/format.h"
#include "apps/report/json.h"

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

}  // namespace fcp::cli
