#include "fcp/report/pixel_html.h"

#include <utility>

#include "fcp/base/error.h"
#include "fcp/base/text_table.h"
#include "fcp/report/format.h"
#include "fcp/report/gallery.h"
#include "fcp/report/promise.h"
#include "fcp/report/sections.h"

namespace fcp {
namespace {

constexpr char kDetectionRemark[] =
    "detected: images whose score is within the radius, which is what surrogate promises; its "
    "bands promise nothing";

constexpr char kBandsTitle[] = "Bands of pixels";
constexpr char kSetsTitle[] = "Label sets of pixels";

GalleryStrip strip_of(const Example& example) {
  const PixelExample& figures = example.pixels();
  return {example.name, example.png,
          concat(format_percent(figures.pixel_share, 2),
                 " of the pixels are in; the largest uncertainty is ",
                 format_number(figures.largest_uncertainty))};
}

}  // namespace

std::string pixel_promise(const EvaluationReport& report) {
  const PixelEvaluation& main = report.methods.at(0).pixels();
  const std::string target = format_target(report.level);
  const std::string what = main.sets ? " have their label in their set" : " lie in their bands";
  if (main.share == 1) {
    return concat("promised: in at least ", target, " of the images all ",
                  main.sets ? "labelled pixels" : "pixels and classes", what);
  }
  return concat("promised: in at least ", target, " of the images ", format_percent(main.share),
                " of the ", main.sets ? "labelled " : "", "pixels", what);
}

PixelTable pixel_table(const EvaluationReport& report) {
  const PixelEvaluation& main = report.methods.at(0).pixels();
  const bool detection = any_detection(report.methods), bands = !main.sets;
  const std::string size = main.sets ? "size" : "length";
  PixelTable table;
  table.headers = {"method"};
  if (detection) table.headers.emplace_back("detected");
  if (main.share < 1) {
    table.headers.push_back("images with " + format_percent(main.share) + " in");
  }
  table.headers.insert(table.headers.end(), {"images all in", "pixels in"});
  if (bands) table.headers.emplace_back("values in");
  table.headers.push_back(size);
  if (bands) table.headers.emplace_back("weighted");
  table.headers.insert(table.headers.end(), {"at boundaries", "inside"});
  if (bands) table.headers.insert(table.headers.end(), {"unsure at boundaries", "inside"});
  for (const MethodResult& method : report.methods) {
    const PixelEvaluation& all = method.pixels();
    std::vector<std::string> cells = {method.name};
    if (detection) {
      cells.push_back(method.detection ? format_percent(method.detection->rate) : "–");
    }
    if (main.share < 1) cells.push_back(format_percent(all.coverage.rate));
    cells.push_back(format_percent(all.whole.rate));
    cells.push_back(format_percent(all.pixel_coverage, 2));
    if (bands) cells.push_back(format_percent(all.value_coverage, 2));
    cells.push_back(format_number(all.length));
    if (bands) cells.push_back(format_number(all.weighted_length));
    cells.push_back(format_number(all.boundary_length));
    cells.push_back(format_number(all.inside_length));
    if (bands) {
      cells.push_back(format_percent(all.boundary_uncertainty));
      cells.push_back(format_percent(all.inside_uncertainty));
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::string pixel_text(const EvaluationReport& report) {
  const PixelTable cells = pixel_table(report);
  Table table(cells.headers);
  for (const std::vector<std::string>& row : cells.rows) table.add_row(row);
  const size_t images = report.methods.at(0).coverage().rows;
  std::string text = concat(format_count(images, "test image"), ", ",
                            format_count(report.calibration_rows, "calibration image"), "; ",
                            pixel_promise(report), "\n\n", table.text());
  if (any_detection(report.methods)) text += concat("\n", kDetectionRemark, "\n");
  return text;
}

std::string pixel_page(const EvaluationReport& report) {
  const MethodResult& main = report.methods.at(0);
  const PixelEvaluation& all = main.pixels();
  Gallery gallery;
  gallery.title = !report.title.empty() ? report.title : all.sets ? kSetsTitle : kBandsTitle;
  gallery.subtitle = pixel_promise(report);
  gallery.subtitle.front() = 'P';
  if (main.detection) {
    gallery.tiles.push_back(
        {"images detected", format_percent(main.detection->rate), "what this score promises"});
  }
  gallery.tiles.push_back({"images in", format_percent(all.coverage.rate),
                           format_percent_range(all.coverage.lower, all.coverage.upper)});
  gallery.tiles.push_back({"pixels in", format_percent(all.pixel_coverage, 2), "mean over images"});
  gallery.tiles.push_back({all.sets ? "mean size" : "mean length", format_number(all.length),
                           "inside objects " + format_number(all.inside_length)});
  gallery.notes = report.notes;
  std::string alarm = alarm_text(claim_of(report));
  if (!alarm.empty()) {
    alarm.front() = 'C';
    gallery.notes.push_back(std::move(alarm));
  }
  const PixelTable table = pixel_table(report);
  gallery.headers = table.headers;
  gallery.rows = table.rows;
  if (any_detection(report.methods)) gallery.table_remark = kDetectionRemark;
  gallery.parts = {"image", "prediction", "uncertainty"};
  for (const Example& example : report.examples) gallery.strips.push_back(strip_of(example));
  gallery.class_names = report.class_names;
  gallery.scale_low = "0";
  gallery.scale_high = "the largest of the image";
  gallery.provenance = report.provenance;
  return gallery_html(gallery);
}

}  // namespace fcp
