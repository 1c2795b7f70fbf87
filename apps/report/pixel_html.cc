#include "apps/report/pixel_html.h"

#include <algorithm>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/base/text_table.h"
#include "fcp/data/images/heat_map.h"

#include "apps/report/format.h"
#include "apps/report/gallery.h"
#include "apps/report/promise.h"
#include "apps/report/sections.h"
#include "apps/report/verdict.h"

namespace fcp {
namespace {

constexpr char kDetectionRemark[] =
    "detected: images whose score is within the radius, which is what surrogate promises; its "
    "bands promise nothing";

constexpr char kBandsTitle[] = "Bands of pixels";
constexpr char kSetsTitle[] = "Label sets of pixels";

// One scale of uncertainty for all images, so that their maps compare.
double largest_uncertainty(const EvaluationReport& report) {
  float largest = 0;
  for (const Example& example : report.examples) {
    for (const float value : example.pixels().uncertainty) largest = std::max(largest, value);
  }
  return largest > 0 ? largest : 1;
}

GalleryStrip strip_of(const Example& example, double largest, bool sets) {
  const PixelExample& pixels = example.pixels();
  GalleryStrip strip{example.name};
  strip.missed = !example.covered;
  strip.caption =
      concat(example.covered ? "✓ covered: " : "✗ missed: ", format_percent(pixels.pixel_share, 2),
             " of the pixels are in");
  const auto add = [&](const char* caption, const std::string& png) {
    if (!png.empty()) strip.pictures.push_back({caption, png});
  };
  add("image", example.png);
  add("truth", pixels.truth);
  add("prediction", pixels.prediction);
  if (!pixels.uncertainty.empty()) {
    add("uncertainty",
        encode_png(heat_map(pixels.uncertainty, static_cast<int>(pixels.height),
                            static_cast<int>(pixels.width), 0, static_cast<float>(largest))));
  }
  add(sets ? "in red: the label is not in the set" : "in red: outside a band", pixels.missed);
  return strip;
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
  const Claim claim = claim_of(report);
  Gallery gallery;
  gallery.title = page_title(report, all.sets ? kSetsTitle : kBandsTitle);
  gallery.subtitle = pixel_promise(report);
  gallery.subtitle.front() = 'P';
  gallery.opening = verdict_html(verdict_of(report, claim));
  if (main.detection) {
    gallery.tiles.push_back(
        {"Images detected", format_percent(main.detection->rate), "what this score promises"});
  }
  gallery.tiles.push_back(
      {"Images covered", format_percent(all.coverage.rate),
       concat("target ", format_target(report.level), "\n", format_confidence(report.confidence),
              " ", format_percent_range(all.coverage.lower, all.coverage.upper))});
  gallery.tiles.push_back({"Pixels in", format_percent(all.pixel_coverage, 2), "mean over images"});
  gallery.tiles.push_back({all.sets ? "Mean size" : "Mean length", format_number(all.length),
                           "inside objects " + format_number(all.inside_length)});
  gallery.tiles.push_back({"Test images", format_count(all.coverage.rows),
                           concat("calibrated on ", format_count(report.calibration_rows))});
  const std::string law = verdict_text(claim);
  if (!law.empty()) gallery.notes.push_back(law);
  gallery.notes.insert(gallery.notes.end(), report.notes.begin(), report.notes.end());
  const PixelTable table = pixel_table(report);
  gallery.headers = table.headers;
  gallery.rows = table.rows;
  if (any_detection(report.methods)) gallery.table_remark = kDetectionRemark;
  const double largest = largest_uncertainty(report);
  for (const Example& example : report.examples) {
    gallery.strips.push_back(strip_of(example, largest, all.sets));
  }
  gallery.class_names = report.class_names;
  gallery.scale_low = "Uncertainty 0";
  gallery.scale_high = concat(format_number(largest), ", the largest of all images shown");
  gallery.closing = promise_section(claim);
  gallery.provenance = report.provenance;
  return gallery_html(gallery);
}

}  // namespace fcp
