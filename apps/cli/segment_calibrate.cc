// fcp segment calibrate: a network that segments and images with labels become a calibrated
// predictor.
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/calibrate/calibrate.h"
#include "fcp/calibrate/collect_scores.h"
#include "fcp/data/csv_writer.h"
#include "fcp/data/images/image_transform.h"
#include "fcp/data/images/segmentation.h"
#include "fcp/methods/options.h"
#include "fcp/nn/graph/onnx_reader.h"
#include "fcp/predictor/levels.h"
#include "fcp/predictor/segmentation_task.h"

#include "apps/cli/common.h"
#include "apps/cli/option_flags.h"
#include "apps/cli/print_report.h"
#include "apps/cli/segment.h"

namespace fcp::cli {

namespace {

struct SegmentCalibrateOptions {
  CommonOptions common;
  SegmentDataOptions data;
  SegmentTaskOptions task;
  CalibrateSettings settings;
  std::string model;
  std::string out;
  std::string alpha = "0.1";
  std::vector<std::string> levels;
  CLI::Option* rate = nullptr;
  std::string group;
  std::string weights;
  std::string scores_csv;  // the score of each image; empty: not written
  std::string checkpoint;
  std::optional<int> classes;  // none: the network's channels
  ImageTransform transform;    // where `normalizes`
  bool normalizes = false;
  bool logits = false;
};

void check_scope_of(const std::string& option, bool given, const std::string& only,
                    const std::string& score) {
  if (given && score != only) {
    fail_option(option, "applies only to ", only, "; the score is ", score);
  }
}

// The score that is asked for, with the numbers of the paper where none are given.
void resolve_score(SegmentCalibrateOptions& options) {
  MethodRequest& method = options.settings.method;
  check_scope_of("class_weights", !options.weights.empty(), SurrogateOptions::kName, method.score);
  check_scope_of("logits", options.logits, LacOptions::kName, method.score);
  check_options(method);
  CalibrateSettings& settings = options.settings;
  options.task.output = method.text("output");
  if (method.number("pixels") == 0) method.set("pixels", 1.0);
  method.set("double_log", !options.logits);
  if (method.score == SurrogateOptions::kName) {  // the numbers of the paper
    if (options.rate->count() == 0) method.set("rate", 0.1);
    if (method.is_auto("steps")) method.set("steps", 10);
  }
  settings.level = parse_level(options.alpha);
  settings.levels = parse_levels(options.levels);
  if (!options.checkpoint.empty()) settings.checkpoint = options.checkpoint;
}

// Groups are those of the images in the order of the set.
void read_image_groups(SegmentCalibrateOptions& options) {
  if (options.group.empty()) return;
  if (!options.group.ends_with(".npy")) {
    fail_option("group", options.group, ": expected an .npy file with a number per image");
  }
  options.settings.method.calibration = GroupedOptions::kName;
  options.settings.method.set("group", options.group);
  options.settings.facts = read_facts(DataOptions{}, {options.group, ""});
}

// A row per calibration image.
void write_image_scores(const std::string& path, const SegmentationSet& set,
                        const RowScores& rows) {
  std::vector<std::string> columns = {"file", "score"};
  if (!rows.baseline.empty()) columns.emplace_back("residual");
  CsvWriter csv(path, columns);
  for (size_t i = 0; i < rows.scores.size(); ++i) {
    csv.cell(std::string_view(set.pairs[i].name));
    csv.cell(rows.scores[i]);
    if (!rows.baseline.empty()) csv.cell(rows.baseline[i]);
    csv.end_row();
  }
  csv.close();
}

void run_segment_calibrate(SegmentCalibrateOptions& options) {
  const Context context = start(options.common);
  resolve_score(options);
  Graph network = read_onnx(options.model);
  if (options.normalizes) options.task.transform = options.transform;
  const int classes =
      options.classes ? *options.classes : output_channels(network, options.task.output);
  const SegmentationSet set = open_labelled(options.data, "calibration", classes);
  const SegmentTask task = prepare_network(network, options.task, set.classes);
  if (!set.class_names.empty()) {
    network.metadata[kClassesKey] = class_names_text(set.class_names);
  }
  MethodRequest& method = options.settings.method;
  if (method.score == SurrogateOptions::kName) {
    method.set("loss_weights", options.weights.empty()
                                   ? channel_weights(set, task, context)
                                   : read_channel_weights(options.weights, task));
  }
  method.set("output", task.output);
  read_image_groups(options);
  options.settings.data_name = options.data.data;
  options.settings.provenance = {{"network", file_name_of(options.model)},
                                 {"calibration data", file_name_of(options.data.data)}};
  SegmentationRows rows(set, task, truth_parts(method.score));
  const bool lists_scores = !options.scores_csv.empty();
  if (lists_scores && !options.settings.levels.empty()) {
    fail_option("levels", "keeps no scores of rows, which are asked for as well");
  }
  UnfinishedCalibration made =
      begin_calibration(network, rows, options.settings, context, {.finish_later = lists_scores});
  if (context.ranks->rank() != 0) return;
  if (lists_scores) write_image_scores(options.scores_csv, set, made.row_scores());
  made.finish();
  const CalibrateResult& result = *made.result;
  finish_calibration(result, options.settings, options.out, options.common,
                     {{"pixels", method.number("pixels")},
                      {"classes", task.classes},
                      {"channels", task.channels()}});
}

// The options of the table that images take, some with other words or defaults.
void add_method_flags(CLI::App& verb, SegmentCalibrateOptions& options) {
  const auto add = [&](const Option& option) {
    return add_option_flag(verb, options.settings.method, option);
  };
  options.settings.method.score = NestedOptions::kName;
  Option score = find_option("score");
  score.choices = {"nested", "residual", "surrogate", "lac"};
  score.only_made.clear();
  score.help =
      "nested, residual: bands; lac: a set of labels for each pixel; surrogate: the paper's";
  add(score)->default_str("nested");
  add(find_option("pixels"))->default_str("1");
  add(find_option("output"));
  Option cut = find_option("cut");
  cut.may_be_auto = false;
  cut.help =
      "Where to cut the network: a tensor, a node or a number of layers; by "
      "default two layers before the output";
  add(cut);
  add(find_option("allow_empty"));
  add(find_option("norm"))->default_str("inf");
  add(find_option("paper"));
  Option steps = find_option("steps");
  steps.may_be_auto = false;
  steps.help = "Steps of the search";
  add(steps)->default_str("10");
  options.rate = add(find_option("rate"))->default_str("0.1");
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
      "sets.onnx\n"
      "  mpirun -n 4 fcp segment calibrate fcn.onnx --data cityscapes/ --threads 1 --out "
      "calibrated.onnx");
  verb->add_option("model", options->model,
                   "ONNX file: images in, a number per class and pixel out")
      ->required();
  verb->add_option("--data", options->data.data,
                   "Folder: leftImg8bit/ and gtFine/, NAME/ and NAMEannot/, or images/ and labels/")
      ->required();
  verb->add_option("--out", options->out, "Calibrated predictor to write")->required();
  add_method_flags(*verb, *options);
  verb->add_option("--memory", options->settings.method.memory,
                   "Bytes for bounds, as 1GB or 500MB; by default half of what is free")
      ->transform(CLI::AsSizeValue(false));
  verb->add_option("--class-weights", options->weights,
                   "surrogate: CSV with class,loss_weight; by default ENet's weights from the "
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
  verb->add_option("--scores", options->scores_csv, "CSV to write with the score of each image");
  verb->add_option("--alpha", options->alpha, "Level for which to warn of too few images")
      ->capture_default_str();
  verb->add_option("--levels", options->levels,
                   "Keep the radii of these alphas alone, as 0.05,0.1, instead of all scores")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb->add_option("--group", options->group,
                   "A radius for each group of images: an .npy file with a number per image");
  verb->add_option("--checkpoint", options->checkpoint,
                   "File that keeps the scores as they come: the same command goes on from it "
                   "after a crash, and removes it at the end");
  add_segment_data(*verb, options->data);
  add_common(*verb, options->common);
  verb->callback(
      [options] { run_shared(options->common, [&] { run_segment_calibrate(*options); }); });
}

}  // namespace fcp::cli
