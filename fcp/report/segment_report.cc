#include "fcp/report/segment_report.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/report/format.h"
#include "fcp/report/json.h"
#include "fcp/report/table.h"

namespace fcp {
namespace {

bool shows_detection(const SegmentReport& report) {
  return std::any_of(report.methods.begin(), report.methods.end(),
                     [](const auto& method) { return method.detection.has_value(); });
}

nlohmann::ordered_json segment_method_json(const SegmentMethodResult& method, bool sets) {
  const PixelEvaluation& all = method.evaluation;
  nlohmann::ordered_json json = {{"method", method.name},
                                 {"radius", json_number(method.radius)},
                                 {"images", all.coverage.rows},
                                 {"covered", all.coverage.covered},
                                 {"coverage", all.coverage.rate},
                                 {"coverage_low", all.coverage.lower},
                                 {"coverage_high", all.coverage.upper},
                                 {"joint_coverage", all.whole.rate},
                                 {"pixel_coverage", json_number(all.pixel_coverage)}};
  if (method.detection) json["detection_coverage"] = method.detection->rate;
  const std::string size = sets ? "size" : "length";
  if (!sets) json["value_coverage"] = json_number(all.value_coverage);
  json[size] = json_number(all.length);
  if (!sets) json["weighted_length"] = json_number(all.weighted_length);
  json["boundary_" + size] = json_number(all.boundary_length);
  json["inside_" + size] = json_number(all.inside_length);
  return json;
}

}  // namespace

std::string segment_promise(const SegmentReport& report) {
  const std::string target = format_target(report.level);
  const std::string what = report.sets ? " have their label in their set" : " lie in their bands";
  if (report.share == 1) {
    return concat("promised: in at least ", target, " of the images all ",
                  report.sets ? "labelled pixels" : "pixels and classes", what);
  }
  return concat("promised: in at least ", target, " of the images ", format_percent(report.share),
                " of the ", report.sets ? "labelled " : "", "pixels", what);
}

SegmentTable segment_table(const SegmentReport& report) {
  const bool detection = shows_detection(report), bands = !report.sets;
  const std::string size = report.sets ? "size" : "length";
  SegmentTable table;
  table.headers = {"method"};
  if (detection) table.headers.emplace_back("detected");
  if (report.share < 1) {
    table.headers.push_back("images with " + format_percent(report.share) + " in");
  }
  table.headers.insert(table.headers.end(), {"images all in", "pixels in"});
  if (bands) table.headers.emplace_back("values in");
  table.headers.push_back(size);
  if (bands) table.headers.emplace_back("weighted");
  table.headers.insert(table.headers.end(), {"at boundaries", "inside"});
  for (const SegmentMethodResult& method : report.methods) {
    const PixelEvaluation& all = method.evaluation;
    std::vector<std::string> cells = {method.name};
    if (detection) {
      cells.push_back(method.detection ? format_percent(method.detection->rate) : "–");
    }
    if (report.share < 1) cells.push_back(format_percent(all.coverage.rate));
    cells.push_back(format_percent(all.whole.rate));
    cells.push_back(format_percent(all.pixel_coverage, 2));
    if (bands) cells.push_back(format_percent(all.value_coverage, 2));
    cells.push_back(format_number(all.length));
    if (bands) cells.push_back(format_number(all.weighted_length));
    cells.push_back(format_number(all.boundary_length));
    cells.push_back(format_number(all.inside_length));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::string segment_report_text(const SegmentReport& report) {
  const SegmentTable cells = segment_table(report);
  Table table(cells.headers);
  for (const std::vector<std::string>& row : cells.rows) table.add_row(row);
  const size_t images = report.methods.empty() ? 0 : report.methods[0].evaluation.coverage.rows;
  std::string text = concat(format_count(images, "test image"), ", ",
                            format_count(report.calibration_images, "calibration image"), "; ",
                            segment_promise(report), "\n\n", table.text());
  if (shows_detection(report)) {
    text +=
        "\ndetected: images whose score is within the radius, which is what surrogate promises; "
        "its bands promise nothing\n";
  }
  return text;
}

nlohmann::ordered_json segment_report_json(const SegmentReport& report) {
  nlohmann::ordered_json json = {{"alpha", report.level.value()},
                                 {"pixels", report.share},
                                 {"calibration_images", report.calibration_images}};
  if (!report.methods.empty()) {
    json.update(segment_method_json(report.methods[0], report.sets));
  }
  for (size_t i = 1; i < report.methods.size(); ++i) {
    json["others"].push_back(segment_method_json(report.methods[i], report.sets));
  }
  for (const auto& [key, value] : report.provenance) json["provenance"][key] = value;
  if (!report.notes.empty()) json["notes"] = report.notes;
  return json;
}

}  // namespace fcp
