#include "apps/experiments/segmentation_experiment.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include <ftw.h>
#include <nlohmann/json.hpp>

#include "fcp/calibrate/calibrate.h"
#include "fcp/calibrate/collect_scores.h"
#include "fcp/data/images/scenes.h"
#include "fcp/data/images/segmentation.h"
#include "fcp/evaluate/evaluate.h"
#include "fcp/fit/train.h"
#include "fcp/nn/graph/onnx_reader.h"
#include "fcp/predictor/segmentation_task.h"

#include "apps/experiments/prepared_set.h"
#include "apps/experiments/result_rows.h"

namespace fcp {
namespace {

struct SegmentMethod {
  const char* name;
  const char* score;
  double pixels;
};
constexpr SegmentMethod kSegmentMethods[] = {{"residual", "residual", 1},
                                             {"nested", "nested", 1},
                                             {"surrogate-paper", "surrogate", 1},
                                             {"residual-0.99", "residual", 0.99},
                                             {"nested-0.99", "nested", 0.99},
                                             {"residual-0.9", "residual", 0.9},
                                             {"nested-0.9", "nested", 0.9},
                                             {"lac-0.99", "lac", 0.99},
                                             {"lac-0.95", "lac", 0.95}};

// The network and where its images are.
struct SegmentWorld {
  Graph network;
  SegmentTask task;
  SegmentationSet calibration, test;
  std::string weights;  // CSV of the classes' weights; empty: from the labels
};

SegmentWorld cityscapes(const std::string& data_dir) {
  const std::string folder = data_dir + "/cityscapes";
  const std::string model = data_dir + "/../models/cityscapes_fcn_resnet50.onnx";
  for (const std::string& needed : {folder, model}) {
    if (!std::filesystem::exists(needed)) throw MissingData(needed + ": no such file");
  }
  SegmentWorld world;
  world.network = read_onnx(model);
  SegmentDataOptions data;
  data.data = folder;
  const int classes = output_channels(world.network, "");
  world.calibration = open_labelled(data, "calibration", classes);
  world.test = open_labelled(data, "test", classes);
  world.task = prepare_network(world.network, {}, world.calibration.classes);
  if (std::filesystem::exists(folder + "/class_weights.csv")) {
    world.weights = folder + "/class_weights.csv";
  }
  return world;
}

// A folder that goes away with the program.
class SceneFolder {
 public:
  SceneFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "fcp_scenes_XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) fail(pattern, ": cannot be made");
    path_ = pattern;
  }
  ~SceneFolder() {
    if (path_.empty()) return;
    nftw(
        path_.c_str(), [](const char* name, const struct stat*, int, FTW*) { return remove(name); },
        16, FTW_DEPTH | FTW_PHYS);
  }
  SceneFolder(SceneFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  SceneFolder& operator=(SceneFolder&&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Streets {
  SceneFolder folder;
  SegmentWorld world;
};

Streets make_streets(uint64_t seed) {
  Streets streets;
  const std::string& folder = streets.folder.path();
  write_scenes(folder, seed, {60, 60, 30});
  const auto fold = [&](const char* name) {
    return open_segmentation(folder, kSceneClasses, {name});
  };
  const SegmenterOptions options{.classes = kSceneClasses, .seed = seed};
  streets.world.network = train_segmentation(fold("train"), options, {0, 0}, {}).graph;
  streets.world.task = prepare_network(streets.world.network, {}, kSceneClasses);
  streets.world.calibration = fold("calibration");
  streets.world.test = fold("test");
  return streets;
}

CalibrateSettings settings_of(const SegmentMethod& method, const SegmentWorld& world,
                              const Context& context) {
  CalibrateSettings settings;
  settings.data_name = "the calibration images";
  settings.method.score = method.score;
  settings.method.set("output", world.task.output);
  settings.method.set("pixels", method.pixels);
  settings.method.set("double_log", true);
  if (predicts_labels(method.score)) settings.method.set("allow_empty", true);
  if (uses_features(method.score))
    settings.method.cut = std::string("feature");  // its name in both networks
  if (method.score == SurrogateOptions::kName) {
    settings.method.set("rate", 0.1);  // the paper's, as is the number of steps
    settings.method.set("steps", 10);
    settings.method.set("paper", true);
    settings.method.set("loss_weights",
                        world.weights.empty()
                            ? channel_weights(world.calibration, world.task, context)
                            : read_channel_weights(world.weights, world.task));
  }
  return settings;
}

// Images whose score is within the radius of each level: the curve of the paper's Figure 4.
void add_level_rows(const std::string& set, const SegmentMethod& method,
                    const CalibrationArtifact& artifact, const std::vector<double>& scores,
                    Json& rows) {
  for (uint64_t i = 1; i < 20; ++i) {
    const Level level(0.05 * static_cast<double>(i));
    const double radius = artifact.radius(level)[0];
    const auto within =
        std::count_if(scores.begin(), scores.end(), [&](double score) { return score <= radius; });
    rows.push_back({{"set", set},
                    {"method", method.name},
                    {"alpha", level.value()},
                    {"images", scores.size()},
                    {"within", within}});
  }
}

Json run_segmentation(const CellKey& key, const ExperimentOptions& options, torch::Device device) {
  static Memo<Streets> memo;
  std::shared_ptr<const Streets> streets;
  SegmentWorld world;
  if (key.set == "streets") {
    streets = memo.get(std::to_string(options.seed), [&] { return make_streets(options.seed); });
    world = streets->world;
  } else {
    world = cityscapes(options.data_dir);
  }
  const SegmentMethod& method =
      *std::find_if(std::begin(kSegmentMethods), std::end(kSegmentMethods),
                    [&](const SegmentMethod& one) { return key.part == one.name; });
  const Context context{.device = device};
  const SegmentParts parts = truth_parts(method.score);
  SegmentationRows rows_to_calibrate(world.calibration, world.task, parts);
  const CalibrationArtifact artifact =
      calibrate(world.network, rows_to_calibrate, settings_of(method, world, context), context)
          .artifact;
  const bool sets = artifact.method.score.traits().labels;
  SegmentationRows images(world.test, world.task,
                          sets ? SegmentParts::kLabels : SegmentParts::kTargetAndWeights);
  const EvaluationReport report = evaluate(artifact, images, {.level = options.level}, context);
  SegmentationRows rows_to_test(world.test, world.task, parts);
  const RowScores tested =
      score_rows(world.network, rows_to_test, artifact.method.score, artifact.method.cut, context);
  const MethodResult& result = report.methods.front();
  const PixelEvaluation& figures = result.pixels();
  Json row = {{"set", key.set},
              {"method", method.name},
              {"calibration_images", report.calibration_rows},
              {"images", figures.coverage.rows},
              {"coverage", figures.coverage.rate},
              {"joint_coverage", figures.whole.rate},
              {"pixel_coverage", figures.pixel_coverage},
              {"length", figures.length}};
  if (result.detection) row["detection"] = result.detection->rate;
  if (!sets) {
    row["value_coverage"] = figures.value_coverage;
    row["weighted_length"] = figures.weighted_length;
  }
  Json rows = Json::array({row});
  add_level_rows(key.set, method, artifact, tested.scores, rows);
  return rows;
}

std::string share_text(const Json& row, std::string_view field) {
  return row.contains(std::string(field)) ? fixed_text(100 * number_of(row, field), 2) : "";
}

void present_segmentation(const Json& rows, const ExperimentOptions&, ResultSection& section) {
  section.setup =
      "Cityscapes at 512 × 256 with 19 classes, an FCN with ResNet-50 cut at the output of its "
      "last "
      "residual block, 200 images to calibrate and 100 to test (quick: generated scenes and a "
      "small "
      "network). A method's number is the share of an image's pixels that must be in; without one, "
      "all. `surrogate-paper`: 10 steps of 0.1 on the class-weighted squared error. Lengths of "
      "`lac` "
      "are labels per pixel.";
  ResultTable table{"Coverage of images, pixels and values, %, and lengths",
                    {"set", "method", "detection", "images in", "all pixels in", "pixels in",
                     "values in", "length", "weighted length"},
                    {}};
  ResultTable levels{"Largest shortfall and excess of images within the radius, over all α, points",
                     {"set", "method", "shortfall", "excess"},
                     {}};
  for (const Json& row : rows) {
    if (!row.contains("length")) continue;
    table.rows.push_back(
        {text_of(row, "set"), text_of(row, "method"), share_text(row, "detection"),
         share_text(row, "coverage"), share_text(row, "joint_coverage"),
         share_text(row, "pixel_coverage"), share_text(row, "value_coverage"),
         fixed_text(number_of(row, "length"), 4),
         row.contains("weighted_length") ? fixed_text(number_of(row, "weighted_length"), 4) : ""});
  }
  for (const RowGroup& group : group_rows(rows, {"set", "method"})) {
    double least = 0, most = 0;
    for (const Json* row : group.rows) {
      if (!row->contains("within")) continue;
      const double excess = 100 * (number_of(*row, "within") / number_of(*row, "images") - 1 +
                                   number_of(*row, "alpha"));
      least = std::min(least, excess);
      most = std::max(most, excess);
    }
    levels.rows.push_back({group.key[0], group.key[1], fixed_text(least, 1), fixed_text(most, 1)});
  }
  table.rows.push_back(
      {"cityscapes", "the paper: vanilla CP", "", "91.41", "", "", "", "40.15", "40.15"});
  table.rows.push_back(
      {"cityscapes", "the paper: Feature CP", "90.77", "", "", "", "", "1.032", "0.906"});
  section.tables = {table, levels};
}

}  // namespace

Experiment segmentation_experiment(torch::Device device) {
  Experiment experiment;
  experiment.name = "segmentation";
  experiment.title = "Segmentation: a band for every pixel";
  experiment.claim =
      "on Cityscapes vanilla CP covers 91.41 % with bands of length 40.15, Feature CP 90.77 % with "
      "1.032 (weighted 0.906), wide at boundaries and narrow inside of objects.";
  experiment.sets = {"cityscapes"};
  experiment.quick_sets = {"streets"};
  for (const SegmentMethod& method : kSegmentMethods) experiment.methods.push_back(method.name);
  experiment.shape = CellShape::kSetAndMethod;
  experiment.run = [device](const CellKey& key, const ExperimentOptions& options) {
    return run_segmentation(key, options, device);
  };
  experiment.present = present_segmentation;
  experiment.readings = {
      "Detection is near 90 % while not one image lies in the band of the paper's recipe: ten "
      "small "
      "steps hardly move the output, so the score is a gradient's length, not a distance to the "
      "label. docs/images.md explains it, and how the length depends on the unit of the "
      "features.",
      "Over all pixels at once `nested` is longer than vanilla CP, because its ball must grow "
      "until "
      "the worst of 2.5 million numbers is reached; for nine pixels of ten it is a third shorter.",
      "At every level the share of images within the radius follows 1 − α as 100 test images "
      "allow, "
      "for the paper's score too: its Figure 4 shows detection."};
  return experiment;
}

}  // namespace fcp
