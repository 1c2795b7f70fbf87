// fcp segment predict: bands, or sets of labels, for every pixel of new images.
#include <filesystem>
#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/predictor/levels.h"
#include "fcp/predictor/predict.h"
#include "fcp/predictor/segmentation_rows.h"

#include "apps/cli/common.h"
#include "apps/cli/print_report.h"
#include "apps/cli/segment_verbs.h"
#include "apps/report/json.h"

namespace fcp::cli {
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

}  // namespace fcp::cli
