#include "fcp/report/segment_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace fcp {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The figures of an image set on which the paper's recipe detects nine of ten and covers none.
SegmentReport paper_report() {
  SegmentReport report;
  report.calibration_images = 200;
  SegmentMethodResult surrogate;
  surrogate.name = "surrogate";
  surrogate.radius = 1.76e-4;
  surrogate.detection = coverage_of(9, 10);
  surrogate.evaluation.coverage = surrogate.evaluation.whole = coverage_of(0, 10);
  surrogate.evaluation.pixel_coverage = 0.0125;
  surrogate.evaluation.value_coverage = 0.327;
  surrogate.evaluation.length = 0.0363;
  surrogate.evaluation.weighted_length = 0.036;
  SegmentMethodResult residual;
  residual.name = "residual";
  residual.evaluation.coverage = residual.evaluation.whole = coverage_of(8, 10);
  residual.evaluation.boundary_length = std::numeric_limits<double>::infinity();
  report.methods = {surrogate, residual};
  report.provenance = {{"network", "fcn.onnx"}};
  return report;
}

TEST(SegmentReport, DetectionStandsBesideCoverage) {
  const nlohmann::ordered_json json = segment_report_json(paper_report());
  EXPECT_EQ(json["method"], "surrogate");
  EXPECT_EQ(json["detection_coverage"], 0.9);
  EXPECT_EQ(json["coverage"], 0);
  EXPECT_EQ(json["value_coverage"], 0.327);
  EXPECT_EQ(json["pixels"], 1);
  EXPECT_EQ(json["others"][0]["method"], "residual");
  EXPECT_FALSE(json["others"][0].contains("detection_coverage"));
  EXPECT_EQ(json["others"][0]["boundary_length"], "inf");
  EXPECT_EQ(json["provenance"]["network"], "fcn.onnx");
  const std::string text = segment_report_text(paper_report());
  EXPECT_THAT(text, HasSubstr("10 test images, 200 calibration images; promised: in at least 90 % "
                              "of the images all pixels and classes lie in their bands\n"));
  EXPECT_THAT(text, HasSubstr("method     detected  images all in  pixels in  values in"));
  EXPECT_THAT(text, HasSubstr("surrogate    90.0 %          0.0 %     1.25 %    32.70 %"));
  EXPECT_THAT(text, HasSubstr("its bands promise nothing"));
}

TEST(SegmentReport, SharesAndSets) {
  SegmentReport report;
  report.share = 0.99;
  report.sets = true;
  SegmentMethodResult lac;
  lac.name = "lac";
  lac.evaluation.coverage = coverage_of(9, 10);
  lac.evaluation.whole = coverage_of(1, 10);
  lac.evaluation.length = 1.5;
  report.methods = {lac};
  const SegmentTable table = segment_table(report);
  EXPECT_THAT(table.headers,
              ::testing::ElementsAre("method", "images with 99.0 % in", "images all in",
                                     "pixels in", "size", "at boundaries", "inside"));
  EXPECT_EQ(table.rows[0].size(), table.headers.size());
  EXPECT_EQ(segment_promise(report),
            "promised: in at least 90 % of the images 99.0 % of the labelled pixels have their "
            "label in their set");
  const nlohmann::ordered_json json = segment_report_json(report);
  EXPECT_EQ(json["size"], 1.5);
  EXPECT_FALSE(json.contains("length"));
  EXPECT_THAT(segment_report_text(report), Not(HasSubstr("detected")));
}

}  // namespace
}  // namespace fcp
