#include "apps/report/json.h"

#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/report/console.h"
#include "apps/report/page.h"
#include "label_samples.h"
#include "report_samples.h"

namespace fcp {
namespace {

using Json = nlohmann::ordered_json;
using testing::kInfinity;
using testing::kNaN;

TEST(Json, InfinitiesAreStrings) {
  EXPECT_EQ(json_number(kInfinity), "inf");
  EXPECT_EQ(json_number(-kInfinity), "-inf");
  EXPECT_TRUE(json_number(kNaN).is_null());
  EXPECT_EQ(json_number(1.5), 1.5);
}

TEST(Json, TheNumbersThatScriptsRelyOn) {
  const EvaluationReport report = testing::sample_report();
  const IntervalEvaluation& evaluation = report.methods[0].intervals();
  const Json json = Json::parse(json_text(evaluation_json(evaluation, report.level)));
  EXPECT_EQ(json["alpha"], 0.1);
  EXPECT_EQ(json["coverage"], evaluation.coverage.rate);
  EXPECT_GT(json["coverage"], 0.8);
  EXPECT_LE(json["coverage"], 1.0);
  EXPECT_EQ(json["coverage_low"], evaluation.coverage.lower);
  EXPECT_EQ(json["coverage_high"], evaluation.coverage.upper);
  EXPECT_EQ(json["length"], evaluation.length.mean);
  EXPECT_EQ(json["median_length"], *evaluation.length.median);
  EXPECT_EQ(json["interval_score"], evaluation.interval_score);
  EXPECT_EQ(json["thirds"].size(), 3u);
  EXPECT_EQ(json["groups"][1]["name"], "<b>green</b>");
  EXPECT_EQ(json["worst_group"]["name"], evaluation.worst_group->name);
  EXPECT_EQ(json["length_strata"].size(), 4u);
  EXPECT_FALSE(json.contains("by_output"));
}

TEST(Json, InfiniteIntervals) {
  const std::vector<double> lower = {0, -kInfinity}, upper = {1, kInfinity}, truth = {0, 0};
  IntervalBatch rows;
  rows.lower = lower;
  rows.upper = upper;
  rows.truth = truth;
  const std::string text = json_text(evaluation_json(evaluate_intervals(rows, 2), Level(0.1)));
  const Json json = Json::parse(text);
  EXPECT_EQ(json["length"], "inf");
  EXPECT_EQ(json["finite_length"], 1.0);
  EXPECT_EQ(json["by_output"][1]["length"], "inf");
  EXPECT_EQ(json["by_output"].size(), 2u);
}

TEST(Json, MissingMedianIsNull) {
  const std::vector<double> zero = {0};
  IntervalBatch rows;
  rows.lower = rows.upper = rows.truth = zero;
  IntervalEvaluationOptions options;
  options.medians = false;
  const Json json = evaluation_json(evaluate_intervals(rows, 1, options), Level(0.1));
  EXPECT_TRUE(json["median_length"].is_null());
}

TEST(Json, WholeReport) {
  EvaluationReport report = testing::sample_report();
  report.methods[1].radius = kInfinity;
  report.methods[1].guaranteed = false;
  report.methods[1].detection = coverage_of(9, 10);
  const Json json = Json::parse(json_text(report_json(report)));
  EXPECT_EQ(json["method"], "nested");
  EXPECT_EQ(json["radius"], *report.methods[0].radius);
  EXPECT_EQ(json["calibration_rows"], 500);
  EXPECT_EQ(json["curve"].size(), 19u);
  EXPECT_EQ(json["others"][0]["radius"], "inf");
  EXPECT_EQ(json["others"][0]["detection_coverage"], 0.9);
  EXPECT_FALSE(json.contains("detection_coverage"));
  EXPECT_EQ(json["provenance"]["seed"], "7");
  EXPECT_EQ(json["notes"].size(), 1u);
}

TEST(Json, ConditionalCoverage) {
  EvaluationReport report = testing::sample_report();
  EXPECT_FALSE(report_json(report).contains("conditional"));
  report.methods[0].conditional = ConditionalCoverage{.rows = 1000,
                                                      .worst_slab = coverage_of(80, 100),
                                                      .excess_risk = ExcessRisk{0.01, 0.002},
                                                      .correlation = -0.25};
  Json json = report_json(report)["conditional"];
  EXPECT_EQ(json["rows"], 1000);
  EXPECT_EQ(json["worst_slab"]["coverage"], 0.8);
  EXPECT_EQ(json["excess_risk"], 0.01);
  EXPECT_EQ(json["excess_risk_error"], 0.002);
  EXPECT_EQ(json["length_miss_correlation"], -0.25);
  EXPECT_FALSE(json.contains("stability"));
  report.methods[0].conditional->refits = 2;
  report.methods[0].conditional->stability = 0.75;
  json = report_json(report)["conditional"];
  EXPECT_EQ(json["refits"], 2);
  EXPECT_EQ(json["stability"], 0.75);
  report.methods[0].conditional = ConditionalCoverage{.rows = 3};
  json = report_json(report)["conditional"];
  EXPECT_TRUE(json["worst_slab"].is_null());
  EXPECT_TRUE(json["excess_risk"].is_null());
  EXPECT_TRUE(json["excess_risk_error"].is_null());
}

TEST(Json, Distributions) {
  EvaluationReport report = testing::sample_report(20, 20);
  EXPECT_FALSE(report_json(report).contains("distribution"));
  report.methods[0].distribution = DistributionEvaluation{.rows = 20,
                                                          .crps = 0.5,
                                                          .pit = {20},
                                                          .pit_low = 0,
                                                          .pit_high = 4,
                                                          .thresholds = {{3, 0.4, 0.5}}};
  const Json json = report_json(report)["distribution"];
  EXPECT_EQ(json["crps"], 0.5);
  EXPECT_EQ(json["pit"][0], 20);
  EXPECT_EQ(json["pit"].size(), 10u);
  EXPECT_EQ(json["above"][0]["predicted"], 0.4);
  EXPECT_NE(report_html(report).find("Predictive distributions"), std::string::npos);
  std::ostringstream text;
  print_report(text, report);
  EXPECT_NE(text.str().find("CRPS"), std::string::npos);
  EXPECT_NE(text.str().find("9 of 10"), std::string::npos) << text.str();
}

TEST(Json, NamesNeedNotBeUtf8) {
  EvaluationReport report = testing::sample_report(20, 20);
  report.methods[0].name =
      "Gr\xf6\xdf"
      "e";
  EXPECT_NO_THROW(Json::parse(json_text(report_json(report))));
}

TEST(Json, WholeLabelReport) {
  EvaluationReport report = testing::sample_label_report();
  report.methods[1].radius = kInfinity;
  report.methods[1].guaranteed = false;
  report.methods[1].detection = coverage_of(9, 10);
  const SetEvaluation& result = report.methods[0].sets();
  const Json json = Json::parse(json_text(report_json(report)));
  EXPECT_EQ(json["method"], "lac");
  EXPECT_EQ(json["radius"], *report.methods[0].radius);
  EXPECT_EQ(json["alpha"], 0.1);
  EXPECT_EQ(json["coverage"], result.coverage.rate);
  EXPECT_EQ(json["coverage_low"], result.coverage.lower);
  EXPECT_EQ(json["size"], result.mean_size);
  EXPECT_EQ(json["size_histogram"].size(), 21u);
  EXPECT_EQ(json["size_strata"].size(), result.size_strata.size());
  EXPECT_EQ(json["class_coverage"].size(), 20u);
  EXPECT_EQ(json["class_coverage"][0]["name"], "<b>cat</b>");
  EXPECT_EQ(json["worst_class"]["name"], result.worst_class.name);
  EXPECT_EQ(json["curve"].size(), 19u);
  EXPECT_EQ(json["top1"], 0.8125);
  EXPECT_EQ(json["top5"], 0.9375);
  EXPECT_EQ(json["calibration_rows"], 500);
  EXPECT_FALSE(json.contains("detection_coverage"));
  EXPECT_EQ(json["others"][0]["method"], "aps");
  EXPECT_EQ(json["others"][0]["radius"], "inf");
  EXPECT_EQ(json["others"][0]["detection_coverage"], 0.9);
  EXPECT_FALSE(json["others"][0].contains("top1"));
  EXPECT_EQ(json["class_names"].size(), 20u);
  EXPECT_EQ(json["provenance"]["seed"], "11");
  EXPECT_EQ(json["notes"].size(), 1u);
  EXPECT_FALSE(json.contains("examples"));
}

TEST(Json, LabelSets) {
  const std::vector<uint8_t> members = {1, 0, 1, 1};
  const std::vector<int64_t> truth = {0, 1};
  LabelSetBatch rows;
  rows.members = members;
  rows.truth = truth;
  const Json json = evaluation_json(evaluate_sets(rows, 2), Level(0.1));
  EXPECT_EQ(json["coverage"], 1.0);
  EXPECT_EQ(json["size"], 1.5);
  EXPECT_EQ(json["size_histogram"], (std::vector<size_t>{0, 1, 1}));
  EXPECT_EQ(json["class_coverage"].size(), 2u);
}

TEST(ReportJson, ErrorLevelsAndConfusions) {
  EvaluationReport report = testing::sample_report();
  EXPECT_FALSE(report_json(report).contains("rmse"));
  EXPECT_FALSE(report_json(report).contains("levels"));
  std::get<IntervalEvaluation>(report.methods[0].evaluation).output_error = {{4.5, 3.25, 14.5}};
  report.methods[0].levels = {{Level(0.05), coverage_of(96, 100), testing::kInfinity}};
  const nlohmann::ordered_json json = report_json(report);
  EXPECT_EQ(json["rmse"], 4.5);
  EXPECT_EQ(json["mae"], 3.25);
  EXPECT_EQ(json["deviation"], 14.5);
  EXPECT_EQ(json["levels"][0]["alpha"], 0.05);
  EXPECT_EQ(json["levels"][0]["length"], "inf");
  EXPECT_EQ(json["levels"][0]["covered"], 96);
  SetEvaluation sets;
  sets.confusions = {{"cat", "dog", 3, 2}};
  EXPECT_EQ(evaluation_json(sets, Level(0.1))["confusions"][0]["prediction"], "dog");
}

}  // namespace
}  // namespace fcp
