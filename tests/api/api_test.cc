#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iterator>
#include <limits>
#include <memory>
#include <sstream>
#include <thread>
#include <utility>

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/stat.h>

#include "fcp/base/parallel.h"
#include "fcp/base/random.h"
#include "fcp/calibrate/calibrate.h"
#include "fcp/conformal/quantile.h"
#include "fcp/data/columns.h"
#include "fcp/data/row_digest.h"
#include "fcp/fcp.h"
#include "fcp/nn/graph/onnx_reader.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/predictor_core.h"
#include "fcp/tensors.h"
#include "fcp/training/train.h"

#include "tests/nn/graphs.h"
#include "tests/support/files.h"
#include "tests/training/training_examples.h"

namespace fcp {
namespace {

using testing::HasSubstr;

constexpr size_t kColumns = 3;

double bent(std::span<const float> row) { return row[0] + row[1] * row[1]; }

// A folder with a small network of three columns and calibration rows as a CSV file.
class ApiTest : public testing::Test {
 protected:
  ApiTest() : x_(normal_array(300, kColumns, 7)), y_(column_of(x_, bent)) {
    TrainOptions options;
    options.layers = {8, 8};
    options.epochs = 3;
    write_onnx(train_network(x_, y_, options).graph, path("model.onnx"));
    std::ofstream csv(path("cal.csv"));
    csv << "a,b,c,y\n";
    for (size_t i = 0; i < x_.rows(); ++i) {
      for (size_t k = 0; k < kColumns; ++k) csv << x_.values[i * kColumns + k] << ',';
      csv << y_.values[i] << '\n';
    }
  }

  std::string path(const std::string& name) const { return folder_.path(name); }

  Predictor calibrated(const CalibrateOptions& settings = {}) const {
    return calibrate(path("model.onnx"), x_.values, y_.values, settings);
  }

  Folder folder_;
  Array x_, y_;
};

template <typename Rows>
std::vector<Interval> intervals(const Predictor& predictor, const Rows& rows, const Level& level,
                                const RowInfo& info = {}) {
  const Answer answer = predictor.predict(predictor.schema().encode(rows, info), {level});
  std::vector<Interval> found;
  for (size_t i = 0; i < answer.rows(); ++i) {
    for (size_t k = 0; k < answer.outputs(); ++k) found.push_back(answer.interval(i, k));
  }
  return found;
}

template <typename Rows>
std::vector<double> predictions(const Predictor& predictor, const Rows& rows) {
  const Answer answer = predictor.predict(predictor.schema().encode(rows), {});
  return {answer.points().begin(), answer.points().end()};
}

std::vector<double> p_values(const Predictor& predictor, std::span<const float> x,
                             std::span<const float> y, const RowInfo& info = {}) {
  return predictor.p_values(predictor.schema().encode(x, info), y);
}

template <typename Work>
std::string message_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_F(ApiTest, FilesAndMemoryGiveTheSamePredictor) {
  const Predictor by_file = calibrate(path("model.onnx"), path("cal.csv"), "y");
  const Predictor by_memory = calibrated();
  EXPECT_EQ(by_file.calibration_rows(), 240u);  // a fifth of 300 chose the score
  EXPECT_EQ(by_file.calibration_rows(), by_memory.calibration_rows());
  EXPECT_EQ(by_file.method("score"), by_memory.method("score"));
  EXPECT_NEAR(by_file.radius(Level(0.1)).at(0), by_memory.radius(Level(0.1)).at(0), 1e-4);
}

TEST_F(ApiTest, OneRowOrMany) {
  const Predictor predictor = calibrated();
  const std::vector<Interval> all = intervals(predictor, x_.values, Level(0.1));
  ASSERT_EQ(all.size(), 300u);
  const std::vector<Interval> one =
      intervals(predictor, std::span(x_.values).subspan(kColumns, kColumns), Level(0.1));
  ASSERT_EQ(one.size(), 1u);
  EXPECT_NEAR(one[0].lower, all[1].lower, 1e-5);
  EXPECT_EQ(predictor.schema().row_size(), kColumns);
  EXPECT_EQ(predictor.outputs(), 1u);
  // The calibration rows themselves: at least 1 − α of them, by the rank.
  size_t covered = 0;
  for (size_t i = 0; i < all.size(); ++i) covered += all[i].contains(y_.values[i]);
  EXPECT_GE(covered, 270u);
}

TEST_F(ApiTest, AFileKeepsEverything) {
  const Predictor made = calibrated({.score = "linearized"});
  made.save(path("calibrated.onnx"));
  const Predictor read = Predictor::load(path("calibrated.onnx"));
  EXPECT_EQ(read.method("score"), "linearized");
  EXPECT_EQ(read.method("cut"), made.method("cut"));
  EXPECT_EQ(read.provenance(), made.provenance());
  EXPECT_EQ(intervals(read, x_.values, Level(0.2)), intervals(made, x_.values, Level(0.2)));
  EXPECT_EQ(p_values(read, x_.values, y_.values), p_values(made, x_.values, y_.values));
}

TEST_F(ApiTest, PValuesSayWhatIsInside) {
  const Predictor predictor = calibrated();
  const std::vector<Interval> found = intervals(predictor, x_.values, Level(0.3));
  const std::vector<double> p = p_values(predictor, x_.values, y_.values);
  for (size_t i = 0; i < p.size(); ++i) {
    EXPECT_EQ(p[i] > 0.3, found[i].contains(y_.values[i])) << i;
  }
}

TEST_F(ApiTest, OptionsByName) {
  const CalibrateOptions settings{.score = "nested", .more = {{"norm", "2"}}};
  EXPECT_GT(calibrated(settings).radius(Level(0.1)).at(0), calibrated().radius(Level(0.1)).at(0));
  EXPECT_THAT(message_of([&] { calibrated({.more = {{"flor", "1"}}}); }), HasSubstr("flor"));
  EXPECT_THAT(message_of([&] {
                calibrated({.score = "residual", .more = {{"floor", "1"}}});
              }),
              HasSubstr("floor: applies only to"));
}

// Options of the choice itself, which no file keeps, go by their names as well.
TEST_F(ApiTest, TheObjectiveOfAuto) {
  const auto chosen_by = [&](const std::map<std::string, std::string>& more) {
    return internal::Access::core(calibrated({.more = more})).artifact().tried.value().by;
  };
  EXPECT_EQ(chosen_by({}), ChosenBy::kIntervalScore);
  EXPECT_EQ(chosen_by({{"objective", "length"}}), ChosenBy::kLength);
  EXPECT_THAT(message_of([&] {
                calibrated({.more = {{"objective", "beauty"}}});
              }),
              HasSubstr("beauty"));
  EXPECT_EQ(calibrated({.more = {{"selection", "0.5"}}}).calibration_rows(), 150u);
  const FitOptions fit_by_length{.members = 1, .epochs = 1, .more = {{"objective", "beauty"}}};
  EXPECT_THAT(message_of([&] { fit(path("cal.csv"), "y", fit_by_length); }), HasSubstr("beauty"));
}

TEST_F(ApiTest, BadRowsAreNamed) {
  const Predictor predictor = calibrated();
  std::vector<float> x(2 * kColumns, 0);
  x[4] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(message_of([&] { intervals(predictor, x, Level(0.1)); }),
            "x: row 1 (from 0) has NaN in column 1, expected a number");
  EXPECT_EQ(message_of([&] { intervals(predictor, std::span(x).first(4), Level(0.1)); }),
            "x: found 4 numbers, expected rows of 3");
  EXPECT_THAT(message_of([&] {
                predictor.predict(predictor.schema().encode(x_.values), {Level(0.1)}).labels(0);
              }),
              HasSubstr("not label sets"));
  const Record record = {{"a", "1"}};
  EXPECT_THAT(message_of([&] { intervals(predictor, std::span(&record, 1), Level(0.1)); }),
              HasSubstr("does not say how its columns are called"));
}

TEST_F(ApiTest, AnswersThatAreNotNumbersAreNamed) {
  const Predictor predictor = calibrated();
  std::vector<float> x(2 * kColumns, 0), y = {1, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_EQ(message_of([&] { p_values(predictor, x, y); }),
            "y: row 1 (from 0) has NaN in column 0, expected a number");
  y[1] = 1;
  for (size_t k = 0; k < kColumns; ++k) x[kColumns + k] = k % 2 == 0 ? 3e38f : -3e38f;
  torch::manual_seed(1);
  write_onnx(make_mlp({kColumns, 8, 8, 1}), path("model.onnx"));  // its layers take any number
  const Predictor overflowing = calibrated({.score = "residual"});
  const std::string told = "x: row 1 (from 0): the network's answer is NaN";
  EXPECT_THAT(message_of([&] { p_values(overflowing, x, y); }), HasSubstr(told));
  EXPECT_THAT(message_of([&] { intervals(overflowing, x, Level(0.1)); }), HasSubstr(told));
  EXPECT_THAT(message_of([&] { predictions(overflowing, x); }), HasSubstr(told));
}

TEST_F(ApiTest, CalibrationRefusesWhatWouldBreakThePromise) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float number = std::exchange(x_.values[7], nan);
  EXPECT_EQ(message_of([&] { calibrated(); }),
            "x: row 2 (from 0) has NaN in column 1, expected a number");
  x_.values[7] = number;
  const float answer = std::exchange(y_.values[4], nan);
  EXPECT_EQ(message_of([&] { calibrated(); }),
            "y: row 4 (from 0) has NaN in column 0, expected a number");
  y_.values[4] = answer;

  Graph network = read_onnx(path("model.onnx"));
  RowSample training;
  training.add(row_codes(x_));
  network.metadata[kTrainingFilterKey] = training.filter();
  write_onnx(network, path("model.onnx"));
  EXPECT_THAT(message_of([&] { calibrated(); }),
              HasSubstr("x: about 100 % of the rows that the network was trained on"));
}

TEST_F(ApiTest, WarnsOfLevels) {
  const Predictor predictor = calibrated({.score = "residual"});
  EXPECT_THAT(predictor.warnings(Level(0.1)), testing::IsEmpty());
  EXPECT_THAT(predictor.warnings(Level(0.9)),
              testing::ElementsAre(HasSubstr("most regions may miss the truth")));
  EXPECT_THAT(predictor.warnings(Level(0.001)),
              testing::ElementsAre(HasSubstr("needs at least 999 calibration rows")));
}

TEST_F(ApiTest, ThreadsShareAPredictor) {
  const Predictor predictor = calibrated();
  const std::vector<Interval> expected = intervals(predictor, x_.values, Level(0.1));
  std::vector<std::thread> threads;
  std::vector<int> same(4, 0);
  for (size_t t = 0; t < same.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i)
        same[t] += intervals(predictor, x_.values, Level(0.1)) == expected;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(same, testing::Each(20));
}

// The artifact that `fcp calibrate --levels` writes.
TEST_F(ApiTest, ReadsFilesWithTheRadiiOfSomeLevelsAlone) {
  for (const std::string score : {"residual", "nested"}) {
    const Graph network = read_onnx(path("model.onnx"));
    const auto source = open_data({.data = path("cal.csv"), .target = "y"}, &network);
    CalibrateSettings settings;
    settings.method.score = score;
    settings.levels = {Level(0.05), Level(0.1)};
    write_artifact(calibrate(network, *source, settings, Context()).artifact, path("levels.onnx"));
    const Predictor all = calibrate(path("model.onnx"), path("cal.csv"), "y", {.score = score});
    const Predictor read = Predictor::load(path("levels.onnx"));
    EXPECT_EQ(read.outputs(), 1u);
    EXPECT_EQ(predictions(read, x_.values), predictions(all, x_.values));
    EXPECT_EQ(intervals(read, x_.values, Level(0.1)), intervals(all, x_.values, Level(0.1)));
    EXPECT_THAT(message_of([&] { intervals(read, x_.values, Level(0.2)); }),
                HasSubstr("keeps the radii for levels 0.05, 0.1 alone"));
  }
}

// Rows of the regions "north" and "south", whose answers err by 1 and by 3 at most.
class GroupedApi : public ApiTest {
 protected:
  GroupedApi() {
    Graph network = read_onnx(path("model.onnx"));
    CsvEncoding encoding{.columns = {"a", "b", "c"}, .categories = {{}, {}, {}}};
    encoding.positions = {0, 1, 2};
    encoding.width = 5;
    network.metadata[kEncodingKey] = encoding_text(encoding);
    write_onnx(network, path("model.onnx"));
    const std::vector<double> answers = predictions(calibrated({.score = "residual"}), x_.values);
    std::ofstream csv(path("grouped.csv"));
    csv << "a,b,c,region,y\n";
    for (size_t i = 0; i < x_.rows(); ++i) {
      const bool south = i % 3 == 0;
      info_.groups.push_back(south ? "south" : "north");
      const double error = (south ? 3.0 : 1.0) * static_cast<double>(i % 100 + 1) / 100;
      y_.values[i] = static_cast<float>(answers[i] + error);
      for (size_t k = 0; k < kColumns; ++k) {
        csv << std::setprecision(9) << x_.values[i * kColumns + k] << ',';
      }
      csv << info_.groups.back() << ',' << std::setprecision(9) << y_.values[i] << '\n';
    }
  }

  // The conformal quantile of the errors of one region.
  double radius_of(const std::string& region, const std::vector<double>& answers,
                   const Level& level) const {
    std::vector<double> errors;
    for (size_t i = 0; i < x_.rows(); ++i) {
      if (info_.groups[i] == region) errors.push_back(std::abs(y_.values[i] - answers[i]));
    }
    return conformal_quantile_sorted(sorted_scores(errors), level);
  }

  void check_intervals(const Predictor& predictor, const std::vector<Interval>& found) {
    const std::vector<double> answers = predictions(predictor, x_.values);
    ASSERT_EQ(found.size(), x_.rows());
    for (size_t i = 0; i < found.size(); ++i) {
      const double radius = radius_of(info_.groups[i], answers, Level(0.1));
      EXPECT_NEAR(found[i].upper - answers[i], radius, 1e-5) << i;
      EXPECT_NEAR(answers[i] - found[i].lower, radius, 1e-5) << i;
    }
  }

  CalibrateOptions by_region() const {
    return {.score = "residual", .calibration = "grouped", .group = "region"};
  }

  RowInfo info_;
};

TEST_F(GroupedApi, AColumnOfAFileTellsTheGroups) {
  const Predictor made = calibrate(path("model.onnx"), path("grouped.csv"), "y", by_region());
  made.save(path("calibrated.onnx"));
  const Predictor read = Predictor::load(path("calibrated.onnx"));
  EXPECT_EQ(read.method("group"), "region");
  for (const Predictor* predictor : {&made, &read}) {
    check_intervals(*predictor, intervals(*predictor, x_.values, Level(0.1), info_));
    EXPECT_TRUE(predictor->radius(Level(0.1)).empty());
    EXPECT_TRUE(predictor->warnings(Level(0.1)).empty());
  }
  std::vector<Record> records;
  for (size_t i = 0; i < x_.rows(); ++i) {
    const float* row = x_.values.data() + i * kColumns;
    const auto text = [](float value) {
      return (std::ostringstream() << std::setprecision(9) << value).str();
    };
    records.push_back({{"a", text(row[0])},
                       {"b", text(row[1])},
                       {"c", text(row[2])},
                       {"region", info_.groups[i]}});
  }
  EXPECT_EQ(intervals(read, records, Level(0.1)), intervals(read, x_.values, Level(0.1), info_));
  records[2].erase("region");
  EXPECT_THAT(message_of([&] { intervals(read, records, Level(0.1)); }),
              HasSubstr("row 2 (from 0): has no column 'region'"));
  EXPECT_EQ(predictions(read, records), predictions(read, x_.values));
  EXPECT_EQ(intervals(read, records, Level(0.1), info_),
            intervals(read, x_.values, Level(0.1), info_));
}

TEST_F(GroupedApi, GroupsOfRowsInMemory) {
  const Predictor predictor =
      calibrate(path("model.onnx"), x_.values, y_.values, by_region(), info_);
  check_intervals(predictor, intervals(predictor, x_.values, Level(0.1), info_));
  const std::vector<Interval> found = intervals(predictor, x_.values, Level(0.3), info_);
  const std::vector<double> p = p_values(predictor, x_.values, y_.values, info_);
  for (size_t i = 0; i < p.size(); ++i) {
    EXPECT_EQ(p[i] > 0.3, found[i].contains(y_.values[i])) << i;
  }
  const torch::Tensor x =
      torch::from_blob(x_.values.data(), {300, static_cast<int64_t>(kColumns)}, torch::kFloat);
  EXPECT_EQ(regions(predictor, x, Level(0.3), info_).upper[5][0].item<double>(), found[5].upper);
  EXPECT_EQ(scores(predictor, x, x.select(1, 0).unsqueeze(1)).size(), 300u);
}

TEST_F(GroupedApi, GroupsThatAreMissingOrUnknown) {
  const Predictor predictor = calibrate(path("model.onnx"), path("grouped.csv"), "y", by_region());
  EXPECT_EQ(message_of([&] { intervals(predictor, x_.values, Level(0.1)); }),
            "groups: the predictor was calibrated by group: give the group of each row");
  const std::span<const float> one = std::span(x_.values).first(kColumns);
  EXPECT_EQ(message_of([&] { intervals(predictor, one, Level(0.1), info_); }),
            "groups: found 300 for 1 rows; the calibration needs one per row");
  const Interval unseen = intervals(predictor, one, Level(0.1), {.groups = {"west"}}).at(0);
  EXPECT_TRUE(std::isinf(unseen.lower) && std::isinf(unseen.upper));
  const Predictor split = calibrated({.score = "residual"});
  EXPECT_EQ(message_of([&] { intervals(split, one, Level(0.1), {.groups = {"north"}}); }),
            "groups: found 1, but the calibration uses none");
  EXPECT_THAT(message_of([&] { calibrated(by_region()); }), HasSubstr("groups: found 0 for 300"));
}

TEST_F(GroupedApi, SetsOfLabelsByGroup) {
  torch::manual_seed(3);
  write_onnx(make_mlp({kColumns, 8, 4}), path("labels.onnx"));
  std::vector<float> labels;
  for (size_t i = 0; i < x_.rows(); ++i) labels.push_back(static_cast<float>(i * 7 % 4));
  CalibrateOptions settings = by_region();
  settings.score = "lac";
  const Predictor predictor = calibrate(path("labels.onnx"), x_.values, labels, settings, info_);
  const Answer sets = predictor.predict(predictor.schema().encode(x_.values, info_), {Level(0.3)});
  const std::vector<double> p = p_values(predictor, x_.values, labels, info_);
  for (size_t i = 0; i < sets.rows(); ++i) {
    EXPECT_EQ(sets.in_set(i, static_cast<size_t>(labels[i])), p[i] > 0.3) << i;
  }
}

TEST_F(ApiTest, LikelihoodRatiosOfRowsInMemory) {
  const RowInfo equal{.weights = std::vector<double>(x_.rows(), 2.0)};
  const Predictor predictor = calibrate(path("model.onnx"), x_.values, y_.values,
                                        {.score = "residual", .calibration = "weighted"}, equal);
  // Equal weights are no weights at all.
  EXPECT_EQ(intervals(predictor, x_.values, Level(0.1), equal),
            intervals(calibrated({.score = "residual"}), x_.values, Level(0.1)));
  EXPECT_EQ(predictions(predictor, x_.values).size(), 300u);
  EXPECT_EQ(message_of([&] { intervals(predictor, x_.values, Level(0.1)); }),
            "weights: the predictor was calibrated with given likelihood ratios: give that of each "
            "row");
  RowInfo wrong = equal;
  wrong.weights[7] = -1;
  EXPECT_EQ(message_of([&] { intervals(predictor, x_.values, Level(0.1), wrong); }),
            "weights: row 7 (from 0) is -1, expected a finite number, not negative");
}

TEST_F(ApiTest, DistributionsOfRowsInMemory) {
  const Distribution distribution(calibrated({.score = "residual", .more = {{"side", "upper"}}}));
  const Batch rows = distribution.predictor().schema().encode(x_.values);
  const std::vector<double> found = distribution.quantiles(rows, {Level(0.05), Level(0.9)});
  const Answer bounds = distribution.predictor().predict(rows, {Level(0.1)});
  const auto above = distribution.above(rows, 0.5), below = distribution.below(rows, 0.5);
  const auto between = distribution.between(rows, -0.5, 0.5);
  for (size_t i = 0; i < 300; ++i) {
    EXPECT_LT(found[2 * i], found[2 * i + 1]);
    EXPECT_EQ(found[2 * i + 1], bounds.upper()[i]);
    EXPECT_NEAR(above[i].lower + below[i].upper, 1, 1e-9);
    EXPECT_LE(between[i].lower, below[i].upper);
    EXPECT_LE(below[i].lower, below[i].upper);
  }
  EXPECT_THAT(message_of([&] { Distribution{calibrated()}; }), HasSubstr("scores of one end"));
  EXPECT_THAT(message_of([&] { distribution.between(rows, 2, 1); }), HasSubstr("smaller number"));
}

// Labels by the sign of a column: the pair of each row against the softmax of the same network.
TEST_F(ApiTest, ProbabilitiesOfRowsInMemory) {
  Graph graph = make_mlp({3, 2});
  graph.initializers["w1"] = torch::tensor({{0.0f, 0.0f, 0.0f}, {2.0f, 0.5f, 0.0f}});
  graph.initializers["b1"] = torch::zeros({2});
  write_onnx(graph, path("classes.onnx"));
  std::vector<float> labels;
  for (size_t i = 0; i < 300; ++i) {
    labels.push_back(x_.values[3 * i] + x_.values[3 * i + 2] > 0 ? 1 : 0);
  }
  const auto made = [&](const std::map<std::string, std::string>& more) {
    return Probabilities(
        calibrate(path("classes.onnx"), x_.values, labels, {.score = "lac", .more = more}));
  };
  const Probabilities plain = made({}), fitted = made({{"probabilities", "venn-abers"}});
  EXPECT_FALSE(plain.calibrated());
  EXPECT_TRUE(fitted.calibrated());
  const Batch rows = fitted.predictor().schema().encode(x_.values);
  const RowProbabilities own = plain.of(plain.predictor().schema().encode(x_.values));
  const RowProbabilities found = fitted.of(rows);
  EXPECT_TRUE(own.p0.empty() && own.p1.empty());
  for (size_t i = 0; i < 300; ++i) {
    EXPECT_NEAR(own.merged[2 * i] + own.merged[2 * i + 1], 1, 1e-12);
    EXPECT_LT(found.p0[2 * i + 1], found.p1[2 * i + 1]);
    EXPECT_DOUBLE_EQ(found.p0[2 * i], 1 - found.p1[2 * i + 1]);
    EXPECT_DOUBLE_EQ(found.merged[2 * i + 1],
                     found.p1[2 * i + 1] / (1 - found.p0[2 * i + 1] + found.p1[2 * i + 1]));
    for (size_t j = 0; j < i; ++j) {  // as the network ranks them
      if (own.merged[2 * i + 1] < own.merged[2 * j + 1]) {
        EXPECT_LE(found.p1[2 * i + 1], found.p1[2 * j + 1]);
      }
    }
  }
  EXPECT_THAT(message_of([&] { Probabilities{calibrated()}; }), HasSubstr("gives intervals"));
}

TEST_F(ApiTest, OutliersOfRowsInMemory) {
  const Predictor predictor = calibrated({.score = "residual"});
  std::vector<float> fresh(x_.values.begin(), x_.values.begin() + 60);
  for (size_t k = 0; k < 12; ++k) fresh[k] += 50;
  const OutlierDetector detector(predictor, predictor.schema().encode(x_.values), {.seed = 1});
  EXPECT_EQ(detector.reference_rows() + detector.calibration_rows(), 300u);
  const Batch rows = predictor.schema().encode(fresh);
  const std::vector<double> p_values = detector.p_values(rows);
  const std::vector<bool> told = discoveries(p_values, Level(0.1), detector.dependence());
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(told[i]) << p_values[i];
  EXPECT_LT(std::count(told.begin(), told.end(), true), 10);
  EXPECT_EQ(detector.scores(rows).size(), 20u);
  EXPECT_THAT(message_of([&] { detector.p_values(rows, std::vector<double>(20, 1)); }),
              HasSubstr("weights"));
}

size_t threads_of_this_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

// ctest sets OMP_WAIT_POLICY for all tests, so that none of them keeps a core busy by waiting.
TEST_F(ApiTest, LeavesNoThreadsBehind) {
  unsetenv("OMP_WAIT_POLICY");
  unsetenv("GOMP_SPINCOUNT");
  const int threads = at::get_num_threads(), of_blas = blas_threads();
  const mode_t mask = umask(027);
  calibrated();
  const size_t before = threads_of_this_process();
  for (int i = 0; i < 6; ++i) {
    calibrated({.score = "nested", .threads = 1 + i % 2});
    EXPECT_EQ(at::get_num_threads(), threads);
    EXPECT_EQ(blas_threads(), of_blas);
  }
  EXPECT_EQ(umask(mask), 027u);
  // A thread that has been joined may be listed for a moment more.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (threads_of_this_process() > before && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_LE(threads_of_this_process(), before);
}

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// By default glibc maps a block of 64 MiB by itself, and gives it back as soon as it is freed.
TEST_F(ApiTest, LeavesTheAllocatorAsItIs) {
  calibrated();
  constexpr size_t kBytes = size_t{64} << 20;
  const size_t before = mallinfo2().hblkhd;
  const std::unique_ptr<char[]> block(new char[kBytes]);
  block[0] = 1;
  EXPECT_GE(mallinfo2().hblkhd, before + kBytes);
}
#endif

TEST_F(ApiTest, TensorsSayTheSame) {
  const Predictor predictor = calibrated();
  const torch::Tensor x =
      torch::from_blob(x_.values.data(), {300, static_cast<int64_t>(kColumns)}, torch::kFloat);
  const TensorRegions tensors = regions(predictor, x, Level(0.1));
  const std::vector<Interval> found = intervals(predictor, x_.values, Level(0.1));
  EXPECT_EQ(tensors.lower[17][0].item<double>(), found[17].lower);
  EXPECT_EQ(features(predictor, x).size(0), 300);
  EXPECT_EQ(scores(predictor, x, x.select(1, 0).unsqueeze(1)).size(), 300u);
}

}  // namespace
}  // namespace fcp
