// fcp segment evaluate: how bands and sets do on images with labels.
#include <memory>
#include <optional>
#include <string_view>

#include "fcp/base/error.h"
#include "fcp/data/csv_writer.h"
#include "fcp/evaluate/evaluate.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/predictor/levels.h"
#include "fcp/predictor/segmentation_rows.h"
#include "fcp/predictor/shared_batches.h"

#include "apps/cli/common.h"
#include "apps/cli/print_report.h"
#include "apps/cli/segment_verbs.h"

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
