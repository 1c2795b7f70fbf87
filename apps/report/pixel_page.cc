// The page of a report on the bands, or label sets, of images (see page.h): headline figures, the
// table of methods, then each image with the pictures that belong to it, side by side.
#include <algorithm>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/base/text_table.h"
#include "fcp/data/images/heat_map.h"
#include "fcp/data/images/image.h"

#include "apps/report/console.h"
#include "apps/report/json.h"
#include "apps/report/results.h"
#include "apps/report/sections.h"

namespace fcp {
namespace {

constexpr char kDetectionRemark[] =
    "detected: images whose score is within the radius, which is what surrogate promises; its "
    "bands promise nothing";

std::string css_colour(int label, const std::string& name) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "#";
  for (const uint8_t value : class_colour(label, name)) {
    text += kDigits[value / 16];
    text += kDigits[value % 16];
  }
  return text;
}

std::string class_legend(const std::vector<std::string>& names) {
  if (names.empty()) return "";
  std::string html = "<ul class=\"swatches\">";
  for (size_t i = 0; i < names.size(); ++i) {
    html += concat("<li><span style=\"background:", css_colour(static_cast<int>(i), names[i]),
                   "\"></span>", html_text(names[i]), "</li>");
  }
  return html + "</ul>\n";
}

// One scale of uncertainty for all images, so that their maps compare.
float largest_uncertainty(const EvaluationReport& report) {
  float largest = 0;
  for (const Example& example : report.examples) {
    for (const float value : example.pixels().uncertainty) largest = std::max(largest, value);
  }
  return largest > 0 ? largest : 1;
}

std::string heat_legend(float largest) {
  std::vector<float> ramp(128);
  for (size_t i = 0; i < ramp.size(); ++i) ramp[i] = static_cast<float>(i);
  const Image image = heat_map(ramp, 1, static_cast<int>(ramp.size()), 0, 127);
  return concat("<p class=\"ramp\">Uncertainty 0 ",
                html_png(encode_png(image), "the colours of the heat maps"), " ",
                html_text(concat(format_number(largest), ", the largest of all images shown")),
                "</p>\n");
}

// An image with its pictures; those that are missing are left out.
std::string strip_html(const Example& example, float largest, bool sets) {
  const PixelExample& pixels = example.pixels();
  std::string html =
      concat("<figure class=\"card strip", example.covered ? "" : " missed", "\"><figcaption><h3>",
             html_text(example.name), "</h3>",
             html_paragraph(concat(example.covered ? "✓ covered: " : "✗ missed: ",
                                   format_percent(pixels.pixel_share, 2), " of the pixels are in"),
                            "remark"),
             "</figcaption>\n<div class=\"pictures\">\n");
  const auto add = [&](const char* caption, const std::string& png) {
    if (png.empty()) return;
    html += concat("<div>", html_png(png, concat(example.name, ": ", caption)), "<span>",
                   html_text(caption), "</span></div>\n");
  };
  add("image", example.png);
  add("truth", pixels.truth);
  add("prediction", pixels.prediction);
  if (!pixels.uncertainty.empty()) {
    add("uncertainty", encode_png(heat_map(pixels.uncertainty, static_cast<int>(pixels.height),
                                           static_cast<int>(pixels.width), 0, largest)));
  }
  add(sets ? "in red: the label is not in the set" : "in red: outside a band", pixels.missed);
  return html + "</div></figure>\n";
}

std::string strips_section(const EvaluationReport& report, bool sets) {
  if (report.examples.empty()) return "";
  const float largest = largest_uncertainty(report);
  std::string html = class_legend(report.class_names) + heat_legend(largest);
  for (const Example& example : report.examples) html += strip_html(example, largest, sets);
  return html_section("gallery", "Image by image", html);
}

std::string pixel_tiles(const EvaluationReport& report, const Claim& claim) {
  const MethodResult& main = report.methods.at(0);
  const PixelEvaluation& all = main.pixels();
  std::string tiles;
  if (main.detection) {
    tiles += html_tile("Images detected", format_percent(main.detection->rate),
                       "what this score promises");
  }
  tiles += html_tile(
      "Images covered", format_percent(all.coverage.rate),
      concat("target ", format_target(report.level), "\n", format_confidence(report.confidence),
             " ", format_percent_range(all.coverage.lower, all.coverage.upper)));
  tiles += html_tile("Pixels in", format_percent(all.pixel_coverage, 2), "mean over images");
  tiles += html_tile(all.sets ? "Mean size" : "Mean length", format_number(all.length),
                     "inside objects " + format_number(all.inside_length));
  return tiles + rows_tile(claim, "");
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
  const bool sets = report.methods.at(0).pixels().sets;
  const Claim claim = claim_of(report);
  std::string subtitle = pixel_promise(report);
  subtitle.front() = 'P';
  const PixelTable table = pixel_table(report);
  return html_page(page_title(report, sets ? "Label sets of pixels" : "Bands of pixels"), subtitle,
                   concat(headline_section(report, claim, pixel_tiles(report, claim)),
                          methods_section(table.headers, table.rows,
                                          any_detection(report.methods) ? kDetectionRemark : ""),
                          strips_section(report, sets), promise_section(claim),
                          provenance_section(report.provenance)),
                   report_json(report));
}

}  // namespace fcp
