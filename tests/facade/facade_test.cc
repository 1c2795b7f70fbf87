#include <cmath>
#include <fstream>
#include <limits>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/random.h"
#include "fcp/data/row_digest.h"
#include "fcp/fcp.h"
#include "fcp/network/onnx_reader.h"
#include "fcp/network/onnx_writer.h"
#include "fcp/tensors.h"
#include "fcp/training/train.h"

#include "tests/network/graphs.h"
#include "tests/support/files.h"
#include "tests/training/training_examples.h"

namespace fcp {
namespace {

using testing::HasSubstr;

constexpr size_t kColumns = 3;

double bent(std::span<const float> row) { return row[0] + row[1] * row[1]; }

// A folder with a small network of three columns and calibration rows as a CSV file.
class FacadeTest : public testing::Test {
 protected:
  FacadeTest() : x_(normal_array(300, kColumns, 7)), y_(column_of(x_, bent)) {
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

  ConformalPredictor calibrated(const Settings& settings = {}) const {
    return calibrate(path("model.onnx"), x_.values, y_.values, settings);
  }

  Folder folder_;
  Array x_, y_;
};

template <typename Work>
std::string message_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_F(FacadeTest, FilesAndMemoryGiveTheSamePredictor) {
  const ConformalPredictor by_file = calibrate(path("model.onnx"), path("cal.csv"), "y");
  const ConformalPredictor by_memory = calibrated();
  EXPECT_EQ(by_file.calibration_rows(), 240u);  // a fifth of 300 chose the score
  EXPECT_EQ(by_file.calibration_rows(), by_memory.calibration_rows());
  EXPECT_EQ(by_file.score(), by_memory.score());
  EXPECT_NEAR(by_file.radius(Level(0.1)).at(0), by_memory.radius(Level(0.1)).at(0), 1e-4);
}

TEST_F(FacadeTest, OneRowOrMany) {
  const ConformalPredictor predictor = calibrated();
  const std::vector<Interval> all = predictor.intervals(x_.values, Level(0.1));
  ASSERT_EQ(all.size(), 300u);
  const std::vector<Interval> one =
      predictor.intervals(std::span(x_.values).subspan(kColumns, kColumns), Level(0.1));
  ASSERT_EQ(one.size(), 1u);
  EXPECT_NEAR(one[0].lower, all[1].lower, 1e-5);
  EXPECT_EQ(predictor.row_size(), kColumns);
  EXPECT_EQ(predictor.outputs(), 1u);
  // The calibration rows themselves: at least 1 − α of them, by the rank.
  size_t covered = 0;
  for (size_t i = 0; i < all.size(); ++i) covered += all[i].contains(y_.values[i]);
  EXPECT_GE(covered, 270u);
}

TEST_F(FacadeTest, AFileKeepsEverything) {
  const ConformalPredictor made = calibrated({.score = "linearized"});
  made.save(path("calibrated.onnx"));
  const ConformalPredictor read = ConformalPredictor::load(path("calibrated.onnx"));
  EXPECT_EQ(read.score(), "linearized");
  EXPECT_EQ(read.cut(), made.cut());
  EXPECT_EQ(read.provenance(), made.provenance());
  EXPECT_EQ(read.intervals(x_.values, Level(0.2)), made.intervals(x_.values, Level(0.2)));
  EXPECT_EQ(read.p_values(x_.values, y_.values), made.p_values(x_.values, y_.values));
}

TEST_F(FacadeTest, PValuesSayWhatIsInside) {
  const ConformalPredictor predictor = calibrated();
  const std::vector<Interval> intervals = predictor.intervals(x_.values, Level(0.3));
  const std::vector<double> p = predictor.p_values(x_.values, y_.values);
  for (size_t i = 0; i < p.size(); ++i) {
    EXPECT_EQ(p[i] > 0.3, intervals[i].contains(y_.values[i])) << i;
  }
}

TEST_F(FacadeTest, OptionsByName) {
  const Settings settings{.score = "nested", .more = {{"norm", "2"}}};
  EXPECT_GT(calibrated(settings).radius(Level(0.1)).at(0), calibrated().radius(Level(0.1)).at(0));
  EXPECT_THAT(message_of([&] { calibrated({.more = {{"flor", "1"}}}); }), HasSubstr("flor"));
  EXPECT_THAT(message_of([&] {
                calibrated({.score = "residual", .more = {{"floor", "1"}}});
              }),
              HasSubstr("floor: applies only to"));
}

TEST_F(FacadeTest, BadRowsAreNamed) {
  const ConformalPredictor predictor = calibrated();
  std::vector<float> x(2 * kColumns, 0);
  x[4] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(message_of([&] { predictor.intervals(x, Level(0.1)); }),
            "x: row 1 (from 0) has NaN in column 1, expected a number");
  EXPECT_EQ(message_of([&] { predictor.intervals(std::span(x).first(4), Level(0.1)); }),
            "x: found 4 numbers, expected rows of 3");
  EXPECT_THAT(message_of([&] { predictor.label_sets(x, Level(0.1)); }),
              HasSubstr("not label sets"));
  const Record record = {{"a", "1"}};
  EXPECT_THAT(message_of([&] { predictor.intervals(std::span(&record, 1), Level(0.1)); }),
              HasSubstr("does not say how its columns are called"));
}

TEST_F(FacadeTest, AnswersThatAreNotNumbersAreNamed) {
  const ConformalPredictor predictor = calibrated();
  std::vector<float> x(2 * kColumns, 0), y = {1, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_EQ(message_of([&] { predictor.p_values(x, y); }),
            "y: row 1 (from 0) has NaN in column 0, expected a number");
  y[1] = 1;
  for (size_t k = 0; k < kColumns; ++k) x[kColumns + k] = k % 2 == 0 ? 3e38f : -3e38f;
  torch::manual_seed(1);
  write_onnx(make_mlp({kColumns, 8, 8, 1}), path("model.onnx"));  // its layers take any number
  const ConformalPredictor overflowing = calibrated({.score = "residual"});
  const std::string told = "x: row 1 (from 0): the network's answer is NaN";
  EXPECT_THAT(message_of([&] { overflowing.p_values(x, y); }), HasSubstr(told));
  EXPECT_THAT(message_of([&] { overflowing.intervals(x, Level(0.1)); }), HasSubstr(told));
  EXPECT_THAT(message_of([&] { overflowing.predictions(x); }), HasSubstr(told));
}

TEST_F(FacadeTest, CalibrationRefusesWhatWouldBreakThePromise) {
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

TEST_F(FacadeTest, WarnsOfLevels) {
  const ConformalPredictor predictor = calibrated({.score = "residual"});
  EXPECT_THAT(predictor.warnings(Level(0.1)), testing::IsEmpty());
  EXPECT_THAT(predictor.warnings(Level(0.9)),
              testing::ElementsAre(HasSubstr("most regions may miss the truth")));
  EXPECT_THAT(predictor.warnings(Level(0.001)),
              testing::ElementsAre(HasSubstr("needs at least 999 calibration rows")));
}

TEST_F(FacadeTest, ThreadsShareAPredictor) {
  const ConformalPredictor predictor = calibrated();
  const std::vector<Interval> expected = predictor.intervals(x_.values, Level(0.1));
  std::vector<std::thread> threads;
  std::vector<int> same(4, 0);
  for (size_t t = 0; t < same.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i)
        same[t] += predictor.intervals(x_.values, Level(0.1)) == expected;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(same, testing::Each(20));
}

TEST_F(FacadeTest, TensorsSayTheSame) {
  const ConformalPredictor predictor = calibrated();
  const torch::Tensor x =
      torch::from_blob(x_.values.data(), {300, static_cast<int64_t>(kColumns)}, torch::kFloat);
  const TensorRegions found = regions(predictor, x, Level(0.1));
  const std::vector<Interval> intervals = predictor.intervals(x_.values, Level(0.1));
  EXPECT_EQ(found.lower[17][0].item<double>(), intervals[17].lower);
  EXPECT_EQ(features(predictor, x).size(0), 300);
  EXPECT_EQ(scores(predictor, x, x.select(1, 0).unsqueeze(1)).size(), 300u);
}

}  // namespace
}  // namespace fcp
