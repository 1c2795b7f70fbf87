#include "fcp/fit/fit.h"

#include <cmath>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/calibrate/update.h"
#include "fcp/data/number.h"
#include "fcp/data/row_sources.h"
#include "fcp/evaluate/evaluate.h"
#include "fcp/evaluate/replay.h"
#include "fcp/methods/scores/cross.h"

#include "tests/support/files.h"

namespace fcp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// y = x + noise, beside a category and a column without a meaning.
std::string line_table(size_t rows, bool classes = false) {
  Random random(3);
  std::string text = "x,kind,y\n";
  for (size_t i = 0; i < rows; ++i) {
    const double x = random.normal(), y = 3 * x + 0.3 * random.normal();
    text += number_text(static_cast<float>(x)) + (i % 3 == 0 ? ",a," : ",b,");
    text += classes ? (y > 0 ? "up" : "down") : number_text(static_cast<float>(y));
    text += '\n';
  }
  return text;
}

FitRequest quick(const std::string& path) {
  FitRequest options;
  options.data.data = path;
  options.data.target = "y";
  options.training.members = 2;
  options.training.epochs = 10;
  options.training.layers = {16};
  options.method.score = "residual";
  return options;
}

TEST(Fit, TasksAndCalibrationsGoByTheirNames) {
  EXPECT_EQ(task_named("regression"), task_named("numbers"));
  EXPECT_EQ(task_named("classification"), Task::kClasses);
  EXPECT_EQ(task_named("classes"), Task::kClasses);
  EXPECT_EQ(fit_calibration_named("cross"), FitCalibration::kCross);
  EXPECT_EQ(fit_calibration_named("split"), FitCalibration::kSplit);
  EXPECT_THAT([] { task_named("ranking"); }, ::testing::ThrowsMessage<Error>(HasSubstr("ranking")));
  EXPECT_THAT(
      [] { fit_calibration_named("grouped"); },
      ::testing::ThrowsMessage<Error>(HasSubstr("expected split, cross, rectified or auto")));
}

TEST(Fit, NumbersBecomeIntervals) {
  const Folder folder;
  FitRequest options = quick(folder.write("t.csv", line_table(300)));
  options.training.epochs = 60;
  options.training.rate = 0.02;
  const FitOutcome result = fit_table(options, {});
  EXPECT_EQ(result.task, Task::kNumbers);
  EXPECT_EQ(result.rows.training, 180u);
  EXPECT_EQ(result.rows.calibration, 60u);
  EXPECT_EQ(result.test_rows, 60u);
  EXPECT_EQ(result.report.methods.front().intervals().rows, 60u);
  const PointError& error = result.report.methods.front().intervals().output_error.at(0);
  EXPECT_NEAR(error.deviation, 3, 1.2);
  EXPECT_LT(error.rmse, 0.7 * error.deviation) << "it has learned something";
  EXPECT_LT(result.holdout.rmse.at(0), 0.7 * error.deviation);
  EXPECT_EQ(result.rows.selection, 0u) << "the score was given";
  EXPECT_THAT(result.reason, HasSubstr("holds numbers"));
}

// Hears what is noted.
class Listener : public Observer {
 public:
  void note(const std::string& text) override { notes += text + '\n'; }
  std::string notes;
};

// x decides, noise does not.
std::string noisy_line_table(size_t rows) {
  Random random(8);
  std::string text = "noise,x,kind,y,twice\n";
  for (size_t i = 0; i < rows; ++i) {
    const double x = random.normal(), y = 3 * x + 0.3 * random.normal();
    text += concat(random.normal(), ",", x, i % 3 == 0 ? ",a," : ",b,", y, ",", 2 * y, "\n");
  }
  return text;
}

TEST(Fit, TellsWhichColumnsMatterOnTestRows) {
  const Folder folder;
  FitRequest options = quick(folder.write("t.csv", noisy_line_table(400)));
  options.data.csv.drop = {"twice"};
  options.training.epochs = 40;
  options.training.rate = 0.02;
  const EvaluationReport report = fit_table(options, {.seed = 3}).report;
  const Explanation& found = report.importance.value();
  EXPECT_EQ(found.rows, report.methods[0].intervals().rows) << "of few test rows all";
  EXPECT_TRUE(found.widest.empty());
  ASSERT_EQ(found.columns.size(), 3u);
  EXPECT_EQ(found.columns[0].column, "x") << "the most important one first";
  EXPECT_GT(found.columns[0].prediction, 3 * found.columns[1].prediction);
  EXPECT_TRUE(std::isfinite(found.columns[0].length));
  const EvaluationReport again = fit_table(options, {.seed = 3}).report;
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(again.importance->columns[i].prediction, found.columns[i].prediction);
  }
  options.level = Level(0.001);
  const EvaluationReport infinite = fit_table(options, {.seed = 3}).report;
  EXPECT_GT(infinite.importance->columns[0].prediction, 0);
  EXPECT_TRUE(std::isnan(infinite.importance->columns[0].length)) << "regions are infinite";
}

TEST(Fit, ShowsEachOfSeveralTargetsByItsName) {
  const Folder folder;
  FitRequest options = quick(folder.write("t.csv", noisy_line_table(300)));
  options.data.target = "y,twice";
  const EvaluationReport report = fit_table(options, {}).report;
  EXPECT_THAT(report.responses, ElementsAre("y", "twice"));
  const IntervalEvaluation& intervals = report.methods[0].intervals();
  EXPECT_NEAR(intervals.output_error[1].deviation, 2 * intervals.output_error[0].deviation, 1e-4);
  for (const Example& example : report.examples) {
    ASSERT_EQ(example.others.size(), 1u);
    EXPECT_NEAR(example.others[0].truth, 2 * example.interval().truth, 1e-4);
    EXPECT_LT(example.others[0].lower, example.others[0].upper);
  }
}

TEST(Fit, SuggestsASupportAndUsesItWhereItIsAsked) {
  Random random(5);
  std::string text = "x,y\n";
  for (int i = 0; i < 120; ++i) {
    const double x = random.uniform();
    text += number_text(static_cast<float>(x)) + "," +
            std::to_string(static_cast<int>(20 * x + 5 * random.uniform())) + ".0\n";
  }
  const Folder folder;
  FitRequest options = quick(folder.write("t.csv", text));
  options.task = Task::kNumbers;
  options.data.csv.labels = CsvLabels::kNumbers;
  Listener heard;
  const FitOutcome plain = fit_table(options, {.observer = &heard});
  EXPECT_THAT(heard.notes, HasSubstr("fits '--support 0: --integer'; if new ones must"));
  EXPECT_FALSE(plain.calibrated.artifact.method.score.integer);
  options.method.score = "auto";
  options.method.set("support", "0:");
  options.method.set("side", "upper");
  heard.notes.clear();
  const FitOutcome asked = fit_table(options, {.observer = &heard});
  EXPECT_FALSE(asked.crossed);
  EXPECT_EQ(asked.calibrated.artifact.method.score.support, "0:");
  EXPECT_EQ(asked.report.methods.front().intervals().side, BoundSide::kUpper);
  EXPECT_EQ(heard.notes.find("--support"), std::string::npos);
  options.calibration = FitCalibration::kCross;
  EXPECT_THROW(fit_table(options, {}), Error);
}

TEST(Fit, TextBecomesLabelSets) {
  const Folder folder;
  FitRequest options = quick(folder.write("t.csv", line_table(200, true)));
  options.method.score = "lac";
  const FitOutcome result = fit_table(options, {});
  EXPECT_EQ(result.task, Task::kClasses);
  EXPECT_THAT(result.report.class_names, ElementsAre("down", "up"));
  const SetEvaluation& sets = result.report.methods.front().sets();
  EXPECT_EQ(sets.classes, 2u);
  EXPECT_GT(sets.auc.value(), 0.7);
  EXPECT_NEAR(sets.answers.at(0).auc.value(), sets.answers.at(1).auc.value(), 1e-6)
      << "of two classes they are the same";
  EXPECT_LT(sets.log_loss.value(), std::log(2.0));
}

// What is learned of columns must not come from rows that calibrate or test.
TEST(Fit, LearnsColumnsFromTrainingRowsAlone) {
  const Folder folder;
  std::string text = "t,kind,y\n";
  for (int i = 0; i < 100; ++i) {
    text += std::to_string(i * i) + (i < 80 ? i % 2 ? ",a," : ",b," : i % 2 ? ",c," : ",b,");
    text += std::to_string(i * 0.5) + "\n";
  }
  FitRequest options = quick(folder.write("t.csv", text));
  options.time = "t";
  options.shares = {3, 1, 1};
  const FitOutcome result = fit_table(options, {});
  EXPECT_EQ(result.rows.training, 60u);
  ASSERT_TRUE(result.refit.has_value());
  EXPECT_EQ(result.refit->training, 80u) << "all but the newest, which calibrate";
  const std::string columns = result.calibrated.artifact.network.metadata.at("fcp.columns");
  EXPECT_THAT(columns, HasSubstr(R"(["b","a"])"));
  EXPECT_THAT(columns, ::testing::Not(HasSubstr(R"("c")")));
}

// Below 1,000 rows all rows but those of the test train and calibrate.
TEST(Fit, CrossesFewRows) {
  const Folder folder;
  FitRequest options = quick(folder.write("t.csv", line_table(100)));
  options.method.score = kAutoScore;
  const FitOutcome result = fit_table(options, {});
  EXPECT_TRUE(result.crossed);
  EXPECT_EQ(result.rows.training, 80u);
  EXPECT_EQ(result.rows.calibration, 80u);
  EXPECT_EQ(result.calibrated.artifact.rows.count(), 80u);
  EXPECT_EQ(result.calibrated.artifact.method.calibration.value(field::folds), 10u);
  EXPECT_EQ(result.report.folds, 10u);
  EXPECT_FALSE(result.report.methods.front().radius.has_value()) << "no law of coverage is known";
  Graph sorted = result.calibrated.artifact.network;  // their order tells nothing
  sort_cross_rows(sorted);
  for (const auto& [name, tensor] : result.calibrated.artifact.network.initializers) {
    EXPECT_TRUE(sorted.initializers.at(name).tensor().equal(tensor)) << name;
  }
}

// Folds are of equal size; rows that are left over train, and do not calibrate.
TEST(Fit, CrossLeavesRowsOverThatTrainAlone) {
  const Folder folder;
  FitRequest options = quick(folder.write("t.csv", line_table(60)));
  options.method.score = kAutoScore;
  const FitOutcome result = fit_table(options, {});
  EXPECT_EQ(result.rows.training, 48u);
  EXPECT_EQ(result.rows.calibration, 40u);
  EXPECT_EQ(result.calibrated.artifact.rows.count(), 40u);
}

// What needs scores that are exchangeable with new ones refuses such a predictor.
TEST(Fit, CrossIsNotUpdatedOrMonitored) {
  CalibrationArtifact artifact;
  artifact.method.calibration = CalibrationOptions(CrossOptions::kName);
  EXPECT_THAT([&] { monitored_calibration(artifact); },
              ::testing::ThrowsMessage<Error>(HasSubstr("by its training rows (cross)")));
  const Folder folder;
  const auto rows = open_rows(folder.write("t.csv", line_table(20)), "y", {});
  EXPECT_THAT([&] { update(artifact, *rows, {}, {}); },
              ::testing::ThrowsMessage<Error>(HasSubstr("by its training rows (cross)")));
}

TEST(Fit, FewRowsLeaveEnoughToCalibrate) {
  EXPECT_THAT(usual_shares(30, Level(0.1)), ElementsAre(::testing::DoubleEq(0.4), 0.4, 0.2));
  EXPECT_THAT(usual_shares(10000, Level(0.1)),
              ElementsAre(::testing::DoubleNear(0.6, 1e-12), 0.2, 0.2));
  const Folder folder;
  EXPECT_EQ(
      message_of(folder, [&] { fit_table(quick(folder.write("t.csv", line_table(12))), {}); }),
      "t.csv: 12 rows with a target, expected at least 20");
}

// Rows of one group have one effect, which `code` tells and nothing else: 40 groups of 10 rows.
std::string group_table() {
  Random random(5);
  std::string text = "patient,code,x,y\n";
  for (int group = 0; group < 40; ++group) {
    const double effect = 5 * random.normal(), code = random.normal();
    for (int row = 0; row < 10; ++row) {
      const double x = random.normal();
      text += "p" + std::to_string(group) + "," + number_text(static_cast<float>(code)) + "," +
              number_text(static_cast<float>(x)) + "," +
              number_text(static_cast<float>(x + effect + 0.3 * random.normal())) + "\n";
    }
  }
  return text;
}

TEST(Fit, KeepsGroupsTogether) {
  const Folder folder;
  FitRequest options = quick(folder.write("t.csv", group_table()));
  options.keep_together = "patient";
  const FitOutcome result = fit_table(options, {});
  const TableSplit& split = result.split;
  EXPECT_THAT(split.text, HasSubstr("40 values of 'patient' together"));
  std::vector<std::set<int64_t>> parts;
  for (const auto* rows : {&split.training, &split.calibration, &split.test}) {
    const std::vector<int64_t> groups = take_groups(split.groups, *rows);
    parts.emplace_back(groups.begin(), groups.end());
    EXPECT_EQ(parts.back().size() * 10, rows->size()) << "a group is parted";
  }
  EXPECT_EQ(parts[0].size() + parts[1].size() + parts[2].size(), 40u);
  const auto& metadata = result.calibrated.artifact.network.metadata;
  EXPECT_THAT(metadata.at("fcp.columns"), ::testing::Not(HasSubstr("patient"))) << "no feature";
  EXPECT_EQ(result.report.origin, RowsOrigin::kNewGroups);
  EXPECT_GT(result.report.rows_alike, 1) << "rows of a group are covered alike";
  EXPECT_THAT(result.report.notes, ::testing::Not(::testing::Contains(HasSubstr("look alike"))));
  EXPECT_EQ(result.calibrated.artifact.provenance.at("rows split"), split.text);
  // Each member is judged by groups that it has not seen, which it can know nothing of.
  EXPECT_GT(result.holdout.rmse.at(0), 4);
}

// Patients that come one after the other, and come again.
TEST(Fit, KeepsGroupsTogetherInOrderOfTime) {
  const Folder folder;
  Random random(6);
  std::string text = "patient,day,x,y\n";
  for (int visit = 0; visit < 4; ++visit) {
    for (int patient = 0; patient < 60; ++patient) {
      const double x = random.normal();
      text += concat("p", patient, ",", patient + 15 * visit, ",", x, ",", 2 * x, "\n");
    }
  }
  FitRequest options = quick(folder.write("t.csv", text));
  options.keep_together = "patient";
  options.time = "day";
  const FitOutcome result = fit_table(options, {});
  const TableSplit& split = result.split;
  EXPECT_THAT(split.text, ::testing::AllOf(HasSubstr("by 'day'"), HasSubstr("tested on"),
                                           HasSubstr("60 values of 'patient' together where the "
                                                     "newest of them is")));
  std::vector<std::set<int64_t>> parts;
  for (const auto* rows : {&split.training, &split.calibration, &split.test}) {
    const std::vector<int64_t> groups = take_groups(split.groups, *rows);
    parts.emplace_back(groups.begin(), groups.end());
    EXPECT_EQ(parts.back().size() * 4, rows->size()) << "a patient is parted";
  }
  EXPECT_EQ(*parts[0].rbegin() + 1, *parts[1].begin()) << "patients are numbered by their time";
  EXPECT_EQ(*parts[1].rbegin() + 1, *parts[2].begin());
  EXPECT_EQ(result.report.origin, RowsOrigin::kLater);
  EXPECT_GE(result.report.rows_alike, 1);
  ASSERT_TRUE(result.refit);
  EXPECT_EQ(result.refit->training % 4, 0u) << "patients are whole in the refit too";
  EXPECT_GE(result.refit->calibration + result.refit->selection, split.calibration.size());
  EXPECT_EQ(result.refit->training + result.refit->calibration + result.refit->selection, 240u);
}

TEST(Fit, RowsTrainByTheirWeights) {
  const Folder folder;
  std::string text = "x,how much,y\n";
  for (int i = 0; i < 300; ++i) {
    text += concat(i % 7, i % 4 == 0 ? ",90,-1" : ",10,1", i % 3 == 0 ? ".01" : ".02", "\n");
  }
  FitRequest options = quick(folder.write("t.csv", text));
  options.row_weights = "how much";
  options.training.epochs = 60;
  options.training.rate = 0.02;
  for (const FitCalibration calibration : {FitCalibration::kSplit, FitCalibration::kCross}) {
    options.calibration = calibration;
    if (calibration == FitCalibration::kCross) options.method.score = kAutoScore;
    const FitOutcome result = fit_table(options, {});
    const EvaluationReport& report = result.report;
    double mean = 0;
    for (const Example& example : report.examples) mean += example.interval().prediction;
    EXPECT_NEAR(mean / static_cast<double>(report.examples.size()), -0.5, 0.2)
        << "a quarter of the rows has three quarters of the weight";
    EXPECT_NEAR(result.holdout.deviation.at(0), std::sqrt(0.75), 0.1);
    EXPECT_NEAR(report.methods[0].intervals().output_error[0].deviation, std::sqrt(0.75), 0.12)
        << "test rows count alike";
    const auto& artifact = result.calibrated.artifact;
    EXPECT_EQ(artifact.provenance.at("row weights"), "'how much', in training alone");
    EXPECT_THAT(artifact.network.metadata.at("fcp.columns"), ::testing::Not(HasSubstr("how much")));
  }
  options.data.data = folder.write("b.csv", text + "1,-2,1.0\n");
  EXPECT_THAT([&] { fit_table(options, {}); },
              ::testing::ThrowsMessage<Error>(
                  ::testing::AllOf(HasSubstr("how much: row 300"), HasSubstr("'-2', expected"))));
  options.data.data = folder.write("b.csv", text + "1,0,1.0\n");
  EXPECT_THAT([&] { fit_table(options, {}); },
              ::testing::ThrowsMessage<Error>(HasSubstr("row 300 (from 0) is 0, expected")));
}

// 1e9 + 3 x: float32 numbers there are 64 apart.
std::string far_table(size_t rows) {
  Random random(9);
  std::string text = "x,y\n";
  for (size_t i = 0; i < rows; ++i) {
    const double x = random.normal(), y = 3 * x + 0.3 * random.normal();
    char cells[64];
    std::snprintf(cells, sizeof cells, "%.4f,%.4f\n", x, 1e9 + y);
    text += cells;
  }
  return text;
}

TEST(Fit, KeepsTheSpreadOfTargetsFarFromZero) {
  const Folder folder;
  FitRequest options = quick(folder.write("t.csv", far_table(500)));
  options.training.epochs = 60;
  options.training.rate = 0.02;
  for (const FitCalibration calibration : {FitCalibration::kSplit, FitCalibration::kCross}) {
    options.calibration = calibration;
    options.method.score = kAutoScore;
    const FitOutcome result = fit_table(options, {});
    const IntervalEvaluation& found = result.report.methods[0].intervals();
    EXPECT_NEAR(found.output_error[0].deviation, 3, 0.8);
    EXPECT_LT(found.output_error[0].rmse, 1);
    EXPECT_LT(found.length.mean, 4);
    EXPECT_GT(found.coverage.rate, 0.7);
    EXPECT_NEAR(result.holdout.deviation.at(0), 3, 0.5);
    for (const Example& example : result.report.examples) {
      const IntervalExample& one = example.interval();
      EXPECT_NEAR(one.truth, 1e9, 15);
      EXPECT_NEAR(one.prediction, one.truth, 4);
    }
    const std::string path = folder.write("m.onnx", "");
    write_artifact(result.calibrated.artifact, path);
    const CalibrationArtifact read = read_artifact(path);
    const DataOptions data{.data = options.data.data, .target = "y", .needs_target = true};
    const auto source = open_data(data, &read.network);
    const EvaluationReport again = evaluate(read, *source, {}, {});
    EXPECT_NEAR(again.methods[0].intervals().output_error[0].deviation, 3, 0.5);
    EXPECT_LT(again.methods[0].intervals().output_error[0].rmse, 1);
  }
}

TEST(Fit, WarnsOfGroupsThatNothingKeepsTogether) {
  const Folder folder;
  const FitOutcome result = fit_table(quick(folder.write("t.csv", group_table())), {});
  EXPECT_THAT(result.report.notes,
              ::testing::Contains(::testing::AllOf(HasSubstr("rows of one 'patient' look alike"),
                                                   HasSubstr("--keep-together patient"))));
  EXPECT_EQ(result.report.origin, RowsOrigin::kRandomSplit);
  FitRequest asked = quick(folder.write("t.csv", group_table()));
  asked.keep_together = "patient";
  asked.data.csv.types["patient"] = "category";
  EXPECT_THAT(fit_table(asked, {}).calibrated.artifact.network.metadata.at("fcp.columns"),
              HasSubstr("patient"))
      << "a feature, where it is asked for";
}

TEST(Fit, CoversEachGroupOrClass) {
  const Folder folder;
  FitRequest options = quick(folder.write("t.csv", line_table(300)));
  options.cover_each = "kind";
  FitOutcome result = fit_table(options, {});
  EXPECT_EQ(std::string(result.calibrated.artifact.method.calibration.name()), "grouped");
  EXPECT_THAT(result.calibrated.artifact.rows.group_names,
              ::testing::UnorderedElementsAre("a", "b"));
  EXPECT_EQ(result.report.guaranteed_groups.size(), 2u);
  EXPECT_TRUE(result.report.guaranteed_groups[0].coverage.has_value());
  options = quick(folder.write("t.csv", line_table(300, true)));
  options.method.score = "lac";
  options.cover_each = "label";
  result = fit_table(options, {});
  EXPECT_TRUE(result.report.guaranteed_classes);
  options.calibration = FitCalibration::kEvened;
  EXPECT_THAT([&] { fit_table(options, {}); },
              ::testing::ThrowsMessage<Error>(HasSubstr("take one of the two")));
}

TEST(Fit, EvensCoverageOut) {
  const Folder folder;
  FitRequest options = quick(folder.write("t.csv", line_table(600)));
  options.calibration = FitCalibration::kEvened;
  const FitOutcome result = fit_table(options, {});
  EXPECT_FALSE(result.calibrated.artifact.method.score.rectifier.empty());
}

// A target that drifts: what is made at the end calibrates on the newest rows, and the newest rows
// that test are told in periods.
TEST(Fit, ByTimeTheNewestRowsCalibrate) {
  const Folder folder;
  Random random(9);
  std::string text = "day,x,y\n";
  for (int i = 0; i < 400; ++i) {
    const double x = random.normal();
    text += std::to_string(1000 + i) + "," + number_text(static_cast<float>(x)) + "," +
            number_text(static_cast<float>(x + 0.02 * i)) + "\n";
  }
  FitRequest options = quick(folder.write("t.csv", text));
  options.time = "day";
  options.shares = {3, 1, 1};
  const FitOutcome result = fit_table(options, {});
  EXPECT_EQ(result.rows.training, 240u);
  EXPECT_EQ(result.test_rows, 80u);
  ASSERT_TRUE(result.refit.has_value());
  EXPECT_EQ(result.refit->training, 320u);
  EXPECT_EQ(result.refit->calibration, 80u);
  EXPECT_EQ(result.report.over_time.size(), 3u);
  EXPECT_THAT(result.report.over_time[0].name, HasSubstr("1320 to "));
  EXPECT_THAT(result.calibrated.artifact.provenance.at("rows split"),
              HasSubstr("trained on 1000 to 1319, calibrated on 1320 to 1399"));
  EXPECT_THAT(result.split.text, HasSubstr("tested on 1320 to 1399"));
  EXPECT_EQ(result.report.calibration_rows, 80u);
}

TEST(TableRows, AreTheChosenOnes) {
  const Folder folder;
  const auto whole = open_rows(folder.write("t.csv", "a,y\n1,10\n2,20\n3,30\n4,40\n"), "y");
  const Rows all = read_all(*whole);
  TableRows rows(*whole, all, {1, 3});
  EXPECT_EQ(rows.size(), 2u);
  Rows out;
  ASSERT_TRUE(rows.next(1, out));
  EXPECT_THAT(out.x.values, ElementsAre(2));
  ASSERT_TRUE(rows.next(5, out));
  EXPECT_THAT(out.y.values, ElementsAre(40));
  EXPECT_EQ(out.first_row, 1u);
  EXPECT_THAT(out.place(0), HasSubstr("row 3"));
  EXPECT_FALSE(rows.next(5, out));
}

}  // namespace
}  // namespace fcp
