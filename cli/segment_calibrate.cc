// fcp segment calibrate: a network that segments and images with labels become a calibrated
// predictor.
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/progress.h"
#include "fcp/base/sha256.h"
#include "fcp/calibration/scored_network.h"
#include "fcp/calibration/selection.h"
#include "fcp/conformal/quantile.h"
#include "fcp/data/csv_column.h"
#include "fcp/data/number.h"
#include "fcp/images/image_text.h"
#include "fcp/images/segmentation_target.h"
#include "fcp/network/onnx_reader.h"
#include "fcp/network/onnx_writer.h"
#include "fcp/pipeline/levels.h"
#include "fcp/report/format.h"
#include "fcp/report/json.h"

#include "cli/print_report.h"
#include "cli/segment_steps.h"
#include "cli/segment_verbs.h"

namespace fcp {

std::string digits(double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return {text, end};
}

torch::Tensor truth_of(const SegmentImage& image, const SegmentTask& task,
                       const ScoreOptions& score) {
  if (predicts_labels(score.name)) return view(pixel_labels(image.labels, task)).clone();
  return view(image.target);
}

namespace {

std::string_view bytes_of_pixels(const Image& image) {
  return {reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size()};
}

struct SegmentCalibrateOptions {
  CommonOptions common;
  SegmentDataOptions data;
  SegmentSettings settings;
  std::string model;
  std::string out;
  std::string alpha = "0.1";
  std::string norm = "inf";
  std::string weights;
  double pixels = 1;
  bool logits = false;
  std::optional<int> classes;  // none: the network's channels
  SegmentTaskOptions task;
  ImageTransform transform;  // where `normalizes`
  bool normalizes = false;
};

// The scores of the images, and of the plain score beside them.
class ImageScorer {
 public:
  ImageScorer(const Graph& network, const SegmentSettings& settings, torch::Device device)
      : predictor_(network, settings.score, settings.cut, device) {
    ScoreOptions plain = settings.score;
    plain.name = baseline_of(plain.name);
    if (!plain.name.empty()) baseline_ = make_score(plain, predictor_.shared_head());
  }

  void add(const SegmentImage& image, const torch::Tensor& truth) {
    const torch::Tensor features = predictor_.features(view(image.x));
    scores_.push_back(predictor_.score().score(features, truth)[0]);
    if (std::isnan(scores_.back())) {
      fail("has a score that is not a number: the network's answer is NaN there");
    }
    if (baseline_) plain_.push_back(baseline_->score(features, truth)[0]);
  }

  const ScoredNetwork& predictor() const { return predictor_; }
  const std::vector<double>& scores() const { return scores_; }
  const std::vector<double>& plain() const { return plain_; }  // empty: the score is plain itself

 private:
  ScoredNetwork predictor_;
  std::unique_ptr<Score> baseline_;
  std::vector<double> scores_, plain_;
};

void write_scores(const std::string& path, const SegmentationSet& set, const ImageScorer& scorer) {
  std::vector<std::string> columns = {"file", "score"};
  if (!scorer.plain().empty()) columns.emplace_back("residual");
  CsvWriter csv(path, columns);
  for (size_t i = 0; i < scorer.scores().size(); ++i) {
    csv.cell(std::string_view(set.pairs[i].name));
    csv.cell(std::string_view(digits(scorer.scores()[i])));
    if (!scorer.plain().empty()) csv.cell(std::string_view(digits(scorer.plain()[i])));
    csv.end_row();
  }
  csv.close();
}

}  // namespace

CalibrationArtifact calibrate_images(const Graph& network, const SegmentTask& task,
                                     const SegmentationSet& set, const SegmentSettings& asked,
                                     torch::Device device, const CommonOptions& common) {
  torch::NoGradGuard no_grad;
  SegmentSettings settings = asked;
  settings.score.output = task.output;
  if (uses_features(settings.score.name) && settings.cut.empty()) {
    settings.cut = default_cut(network);
  }
  ImageScorer scorer(network, settings, device);
  const bool sets = predicts_labels(settings.score.name);
  SegmentReader images(set, task, sets ? SegmentParts::kLabels : SegmentParts::kTarget);
  Sha256 hash;
  Progress progress("calibrate", images.size(), !common.quiet);
  while (const std::optional<SegmentImage> image = images.next()) {
    check_interrupted();
    hash.add(bytes_of_pixels(image->image));
    hash.add(bytes_of_pixels(image->labels));
    of_image(*image, [&] { scorer.add(*image, truth_of(*image, task, settings.score)); });
    progress.advance(1);
  }
  if (images.size() < 2) fail("calibration needs at least two images, found ", images.size());
  if (!settings.scores_csv.empty()) write_scores(settings.scores_csv, set, scorer);

  CalibrationArtifact artifact;
  artifact.network = network;
  artifact.score = settings.score;
  artifact.calibration.paper = settings.score.paper;
  artifact.cut = scorer.predictor().cut();
  artifact.rows.scores = sorted_scores(scorer.scores());
  artifact.baseline = sorted_scores(scorer.plain());
  artifact.provenance = settings.provenance;
  artifact.provenance["fcp"] = FCP_VERSION;
  artifact.provenance["score"] = settings.score.name;
  artifact.provenance["calibration"] = "split";
  artifact.provenance["pixels"] = format_number(settings.score.pixels);
  artifact.provenance["cut"] = artifact.cut.empty() ? "network input" : artifact.cut;
  artifact.provenance["calibration images"] = std::to_string(images.size());
  artifact.provenance["calibration data sha256"] = hash.hex();
  if (searches_surrogate(settings.score)) {
    artifact.provenance["steps"] = std::to_string(settings.score.steps);
  }
  Sha256 model;
  model.add(serialize_onnx(network));
  artifact.provenance["network sha256"] = model.hex();
  return artifact;
}

namespace {

void settle_score(SegmentCalibrateOptions& options) {
  ScoreOptions& score = options.settings.score;
  score.norm = parse_norm(options.norm);
  score.pixels = options.pixels;
  score.double_log = !options.logits;
  const bool surrogate = score.name == "surrogate";
  if (surrogate && options.pixels != 1) {
    throw UsageError(
        "--pixels: the score of surrogate is a distance of features, which has no pixels; use "
        "nested, residual or lac");
  }
  if (!surrogate && (score.paper || score.steps > 0 || !options.weights.empty())) {
    throw UsageError("--paper, --steps and --class-weights are about --score surrogate");
  }
  if (options.logits && score.name != "lac") {
    throw UsageError("--logits is about --score lac; bands are those of the double logarithm");
  }
  if (!options.settings.cut.empty() && !uses_features(score.name)) {
    throw UsageError(concat("--cut: the score ", score.name, " does not look at features"));
  }
  if (surrogate && score.steps == 0) score.steps = 10;  // the paper's
}

void print_segment_calibrated(const CalibrationArtifact& artifact, const SegmentTask& task,
                              const SegmentCalibrateOptions& options) {
  const Level levels[] = {Level::parse("0.2"), Level::parse("0.1"), Level::parse("0.05")};
  if (options.common.json) {
    nlohmann::ordered_json json = {{"images", artifact.rows.count()},
                                   {"score", artifact.score.name},
                                   {"pixels", artifact.score.pixels},
                                   {"classes", task.classes},
                                   {"channels", task.channels()},
                                   {"cut", artifact.cut},
                                   {"out", options.out}};
    for (const Level& level : levels) json["radius"][level.text()] = radius_json(artifact, level);
    std::cout << json_text(json) << '\n';
    return;
  }
  std::cout << "calibrated on " << format_count(artifact.rows.count(), "image") << " with score "
            << artifact.score.name;
  if (artifact.score.pixels < 1) {
    std::cout << " of " << format_percent(artifact.score.pixels) << " of the pixels";
  }
  std::cout << ": " << options.out << "\nradius";
  for (const Level& level : levels) {
    std::cout << "  " << format_target(level) << ": " << format_number(artifact.radius(level)[0]);
  }
  std::cout << '\n';
}

void run_segment_calibrate(SegmentCalibrateOptions& options) {
  const Context context = start(options.common);
  const Level level = parse_level(options.alpha);
  settle_score(options);
  Graph network = read_onnx(options.model);
  if (options.normalizes) options.task.transform = options.transform;
  const int classes =
      options.classes ? *options.classes : output_channels(network, options.task.output);
  const SegmentationSet set = open_labelled(options.data, "calibration", classes);
  const SegmentTask task = prepare_network(network, options.task, set.classes);
  if (!set.class_names.empty()) {
    network.metadata[kClassesKey] = class_names_text(set.class_names);
  }
  ScoreOptions& score = options.settings.score;
  if (score.name == "surrogate") {
    score.loss_weights = options.weights.empty() ? channel_weights(set, task, context)
                                                 : read_channel_weights(options.weights, task);
  }
  const auto name_of = [](const std::string& path) {
    return std::filesystem::path(path).lexically_normal().filename().string();
  };
  options.settings.provenance = {{"network", name_of(options.model)},
                                 {"calibration data", name_of(options.data.data)}};
  const CalibrationArtifact artifact =
      calibrate_images(network, task, set, options.settings, context.device, options.common);
  write_artifact(artifact, options.out);
  if (const auto warning = infinite_radius_warning(artifact, level)) {
    say(options.common, "warning: " + *warning);
  }
  print_segment_calibrated(artifact, task, options);
}

}  // namespace

void add_segment_calibrate(CLI::App& segment) {
  auto options = std::make_shared<SegmentCalibrateOptions>();
  CLI::App* verb = segment.add_subcommand("calibrate", "Calibrate a network on labelled images");
  verb->footer(
      "Examples:\n"
      "  fcp segment calibrate fcn.onnx --data cityscapes/ --pixels 0.99 --out calibrated.onnx\n"
      "  fcp segment calibrate fcn.onnx --data camvid/ --fold val --score residual --out "
      "calibrated.onnx\n"
      "  fcp segment calibrate fcn.onnx --data cityscapes/ --score lac --pixels 0.95 --out "
      "sets.onnx");
  ScoreOptions& score = options->settings.score;
  score.step_rate = 0.1;  // the paper's
  verb->add_option("model", options->model, "ONNX file: images in, a number a class and pixel out")
      ->required();
  verb->add_option("--data", options->data.data,
                   "Folder: leftImg8bit/ and gtFine/, NAME/ and NAMEannot/, or images/ and labels/")
      ->required();
  verb->add_option("--out", options->out, "Calibrated predictor to write")->required();
  verb->add_option("--score", score.name,
                   "nested, residual: bands; lac: a set of labels for each pixel; surrogate: the "
                   "paper's")
      ->check(CLI::IsMember({"nested", "residual", "surrogate", "lac"}))
      ->capture_default_str();
  verb->add_option("--pixels", options->pixels,
                   "Share of an image's pixels that must be in; 1: every one of them")
      ->check(CLI::Range(1e-9, 1.0))
      ->capture_default_str();
  verb->add_option("--output", options->task.output,
                   "The network's output to calibrate, where it has several");
  verb->add_option("--cut", options->settings.cut,
                   "Where features are: a tensor, a node or a number of layers; by default two "
                   "layers before the output");
  verb->add_option("--norm", options->norm, "Norm of feature space: inf, 2 or 1")
      ->check(CLI::IsMember({"inf", "2", "1"}))
      ->capture_default_str();
  verb->add_option("--memory", score.bound.memory,
                   "Bytes for bounds, as 1GB or 500MB; by default half of what is free")
      ->transform(CLI::AsSizeValue(false));
  verb->add_flag("--paper", score.paper,
                 "Surrogate: the paper's habits: detection is score < radius, and the largest "
                 "score stands for an infinite radius");
  verb->add_option("--steps", score.steps, "Surrogate: steps of the search; by default 10")
      ->check(CLI::PositiveNumber);
  verb->add_option("--rate", score.step_rate, "Surrogate: step size of the search")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb->add_option("--class-weights", options->weights,
                   "Surrogate: CSV with class,loss_weight; by default ENet's weights from the "
                   "labels");
  verb->add_flag("--logits", options->logits,
                 "lac: the network gives logits; by default log(-log p) of each class");
  verb->add_option("--classes", options->classes,
                   "Classes of the labels, class 0 (no label) included; by default the network's "
                   "channels")
      ->check(CLI::Range(2, 255));
  verb->add_flag("--keep-class-0", options->task.keep_unlabelled,
                 "Band class 0 as well; by default its channel is cut off the network");
  verb->add_flag("--resize", options->task.resize,
                 "Resize images and labels to what the network takes");
  const auto given = [raw = options.get()](const std::string&) { raw->normalizes = true; };
  verb->add_option("--mean", options->transform.mean, "Mean of each channel, in [0, 1]")
      ->delimiter(',')
      ->each(given);
  verb->add_option("--deviation", options->transform.deviation,
                   "Deviation of each channel, in [0, 1]")
      ->delimiter(',')
      ->each(given);
  verb->add_option("--scores", options->settings.scores_csv,
                   "CSV to write with the score of each image");
  verb->add_option("--alpha", options->alpha, "Level for which to warn of too few images")
      ->capture_default_str();
  add_segment_data(*verb, options->data);
  add_common(*verb, options->common);
  verb->callback([options] { run_segment_calibrate(*options); });
}

}  // namespace fcp
