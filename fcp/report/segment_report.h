// What a report on the bands, or label sets, of images is made of, and its tables and JSON. The
// program fills it in; the gallery (gallery.h) shows it with pictures.
//
// Of a score that obeys the law, `coverage` is what is guaranteed: the rate of images with at least
// the share of pixels in that was asked for. Of the surrogate it is only what happens, and what is
// guaranteed is `detection`, the rate of images whose score is within the radius: that the two
// differ must be seen, so they stand side by side.
// Tested by tests/report/segment_report_test.cc.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "fcp/conformal/level.h"
#include "fcp/evaluation/pixel_evaluation.h"

namespace fcp {

struct SegmentMethodResult {
  std::string name;
  PixelEvaluation evaluation;
  double radius = 0;
  std::optional<Coverage> detection;  // where the law does not hold
};

// One image for the gallery.
struct SegmentStrip {
  std::string name;
  std::string png;      // the bytes of the file: image | prediction | uncertainty
  std::string caption;  // what its figures are
};

struct SegmentReport {
  Level level = Level(0.1);
  double share = 1;   // of the pixels that must be in
  bool sets = false;  // of labels; otherwise bands
  size_t calibration_images = 0;
  std::vector<SegmentMethodResult> methods;  // the main one first; at least one
  std::vector<SegmentStrip> strips;
  std::vector<std::pair<std::string, std::string>> provenance;
  std::vector<std::string> notes;
};

// A table with a row for each method: headers and cells as text.
struct SegmentTable {
  std::vector<std::string> headers;
  std::vector<std::vector<std::string>> rows;
};
SegmentTable segment_table(const SegmentReport& report);

// For the terminal: what was promised, and the table.
std::string segment_report_text(const SegmentReport& report);

// What is promised for the share of pixels, in one sentence.
std::string segment_promise(const SegmentReport& report);

// The main method's numbers at the top, the others likewise in `others`. `coverage` and
// `joint_coverage` are rates of images, `pixel_coverage` and `value_coverage` mean shares of an
// image; sets have `size` in place of `length`.
nlohmann::ordered_json segment_report_json(const SegmentReport& report);

}  // namespace fcp
