// fcp segment evaluate: how bands and sets do on images with labels.
#include <memory>

#include "fcp/base/error.h"
#include "fcp/network/onnx_writer.h"
#include "fcp/pipeline/evaluate.h"
#include "fcp/pipeline/image_tables.h"
#include "fcp/pipeline/levels.h"
#include "fcp/pipeline/segmentation_rows.h"
#include "fcp/pipeline/shared_batches.h"

#include "cli/common.h"
#include "cli/print_report.h"
#include "cli/segment_verbs.h"

namespace fcp::cli {
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
                          predicts_labels(artifact.score.name) ? SegmentParts::kLabels
                                                               : SegmentParts::kTargetAndWeights);
  const bool first = context.ranks->rank() == 0;
  ImageFiguresFile figures(first ? flags.image_csv : "");
  EvaluateOptions options{.level = level};
  options.pictures = flags.report.html.empty() ? 0 : flags.pictures;
  options.on_image = [&](const EvaluatedImage& image) { figures.add(image); };
  EvaluationReport report = evaluate(artifact, images, options, context);
  figures.close();
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
