#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/report/console.h"
#include "apps/report/json.h"
#include "apps/report/page.h"
#include "label_samples.h"
#include "page_checks.h"

namespace fcp {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The figures of an image set on which the paper's recipe detects nine of ten and covers none.
EvaluationReport paper_report() {
  EvaluationReport report;
  report.calibration_rows = 200;
  PixelEvaluation figures;
  MethodResult surrogate;
  surrogate.name = "surrogate";
  surrogate.radius = 1.76e-4;
  surrogate.detection = coverage_of(9, 10);
  figures.coverage = figures.whole = coverage_of(0, 10);
  figures.pixel_coverage = 0.0125;
  figures.value_coverage = 0.327;
  figures.length = 0.0363;
  figures.weighted_length = 0.036;
  surrogate.evaluation = figures;
  surrogate.guaranteed = false;
  PixelEvaluation plain;
  MethodResult residual;
  residual.name = "residual";
  plain.coverage = plain.whole = coverage_of(8, 10);
  plain.boundary_length = std::numeric_limits<double>::infinity();
  residual.evaluation = plain;
  report.methods = {surrogate, residual};
  report.provenance = {{"network", "fcn.onnx"}};
  return report;
}

TEST(PixelReport, DetectionStandsBesideCoverage) {
  const nlohmann::ordered_json json = report_json(paper_report());
  EXPECT_EQ(json["method"], "surrogate");
  EXPECT_EQ(json["detection_coverage"], 0.9);
  EXPECT_EQ(json["coverage"], 0);
  EXPECT_EQ(json["value_coverage"], 0.327);
  EXPECT_EQ(json["pixels"], 1);
  EXPECT_EQ(json["others"][0]["method"], "residual");
  EXPECT_FALSE(json["others"][0].contains("detection_coverage"));
  EXPECT_EQ(json["others"][0]["boundary_length"], "inf");
  EXPECT_EQ(json["provenance"]["network"], "fcn.onnx");
  const std::string text = pixel_text(paper_report());
  EXPECT_THAT(text, HasSubstr("10 test images, 200 calibration images; promised: in at least 90 % "
                              "of the images all pixels and classes lie in their bands\n"));
  EXPECT_THAT(text, HasSubstr("method     detected  images all in  pixels in  values in"));
  EXPECT_THAT(text, HasSubstr("surrogate    90.0 %          0.0 %     1.25 %    32.70 %"));
  EXPECT_THAT(text, HasSubstr("its bands promise nothing"));
}

TEST(PixelReport, SharesAndSets) {
  EvaluationReport report;
  PixelEvaluation figures;
  figures.share = 0.99;
  figures.sets = true;
  MethodResult lac;
  lac.name = "lac";
  figures.coverage = coverage_of(9, 10);
  figures.whole = coverage_of(1, 10);
  figures.length = 1.5;
  lac.evaluation = figures;
  report.methods = {lac};
  const PixelTable table = pixel_table(report);
  EXPECT_THAT(table.headers,
              ::testing::ElementsAre("method", "images with 99.0 % in", "images all in",
                                     "pixels in", "size", "at boundaries", "inside"));
  EXPECT_EQ(table.rows[0].size(), table.headers.size());
  EXPECT_EQ(pixel_promise(report),
            "promised: in at least 90 % of the images 99.0 % of the labelled pixels have their "
            "label in their set");
  const nlohmann::ordered_json json = report_json(report);
  EXPECT_EQ(json["size"], 1.5);
  EXPECT_FALSE(json.contains("length"));
  EXPECT_THAT(pixel_text(report), Not(HasSubstr("detected")));
}

// A hundred images of which half are in say that the world has shifted, and the page does too.
TEST(PixelReport, SaysThatTheWorldHasShifted) {
  EvaluationReport report = paper_report();
  MethodResult& main = report.methods[0];
  main.guaranteed = true;
  main.detection = std::nullopt;
  std::get<PixelEvaluation>(main.evaluation).coverage = coverage_of(50, 100);
  EXPECT_EQ(report_json(report)["verdict"], "too low");
  EXPECT_LT(report_json(report)["p_coverage"], 1e-6);
  report.examples = {{"scene", "", false, PixelExample{0.5}}};
  const std::string html = report_html(report);
  EXPECT_THAT(html, HasSubstr("The guarantee fails on these rows"));
  EXPECT_THAT(html, HasSubstr("With 200 calibration images"));
  EXPECT_THAT(html, HasSubstr("✗ missed: 50.00&nbsp;% of the pixels are in"));
  EXPECT_THAT(html, HasSubstr("<section id=\"promise\">"));
}

TEST(PixelReport, ShowsThePicturesOfEachImage) {
  EvaluationReport report = paper_report();
  report.class_names = {"unlabelled", "<road>"};
  PixelExample pixels{.pixel_share = 0.5, .height = 1, .width = 2, .uncertainty = {0, 0.25F}};
  pixels.truth = testing::one_pixel_png();
  report.examples = {{"scene_\"2\"", testing::one_pixel_png(), false, pixels}};
  const std::string html = report_html(report);
  testing::expect_well_formed(html);
  testing::expect_self_contained(html);
  EXPECT_THAT(html, HasSubstr("<figure class=\"card strip missed\">"));
  EXPECT_THAT(html, HasSubstr("alt=\"scene_&quot;2&quot;: truth\""));
  EXPECT_THAT(html, HasSubstr("<span style=\"background:#000000\"></span>unlabelled"));
  EXPECT_THAT(html, HasSubstr("&lt;road&gt;"));
  EXPECT_THAT(html, HasSubstr("0.2500, the largest of all images shown"));
  EXPECT_EQ(testing::count_of(html, "<img "), 4u);  // image, truth, uncertainty, and the scale
  EXPECT_EQ(testing::page_json(html)["images"], 10);
}

}  // namespace
}  // namespace fcp
