#include "fcp/training/training_data.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

#include "tests/training/training_examples.h"

namespace fcp {
namespace {

using testing::HasSubstr;

std::string message_of(const Array& x, const Array& y, Loss loss = Loss::kMse) {
  try {
    prepare_training_data(x, y, loss, true);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(TrainingDataTest, StandardisesXAndDividesY) {
  Array x = normal_array(50, 2, 1);
  for (size_t i = 0; i < 50; ++i) {
    x.values[2 * i] = 1000 + 7 * x.values[2 * i];
    x.values[2 * i + 1] = 3;  // constant: moved to 0, not divided
  }
  const Array y = normal_array(50, 1, 2);
  const TrainingData data = prepare_training_data(x, y, Loss::kMse, true);
  double sum = 0, squares = 0, sizes = 0;
  for (size_t i = 0; i < 50; ++i) {
    sum += data.x[2 * i];
    squares += data.x[2 * i] * data.x[2 * i];
    sizes += std::abs(data.y[i]);
    EXPECT_EQ(data.x[2 * i + 1], 0);
    EXPECT_NEAR(data.y[i] * data.scaling.target, y.values[i], 1e-6);
  }
  EXPECT_NEAR(sum / 50, 0, 1e-4);
  EXPECT_NEAR(squares / 50, 1, 1e-4);
  EXPECT_NEAR(sizes / 50, 1, 1e-5);
}

TEST(TrainingDataTest, LeavesLabelsAndUnscaledDataAlone) {
  const Array x = normal_array(10, 2, 1);
  const Array labels{{10}, {0, 1, 2, 0, 1, 2, 0, 1, 2, 5}};
  EXPECT_EQ(prepare_training_data(x, labels, Loss::kCrossEntropy, true).y, labels.values);
  const TrainingData raw = prepare_training_data(x, labels, Loss::kMse, false);
  EXPECT_EQ(raw.x, x.values);
  EXPECT_EQ(raw.y, labels.values);
  EXPECT_TRUE(raw.scaling.empty());
}

TEST(TrainingDataTest, NamesWhatIsWrong) {
  const Array x = normal_array(12, 3, 1), y = normal_array(12, 1, 2);
  EXPECT_EQ(message_of(x, y), "no error");
  EXPECT_EQ(message_of(normal_array(9, 3, 1), normal_array(9, 1, 2)),
            "found 9 rows to train on, expected at least 10");
  EXPECT_THAT(message_of(x, normal_array(11, 1, 2)), HasSubstr("12 rows of features and 11"));
  EXPECT_THAT(message_of(zeros({12, 2, 2}), y), HasSubstr("features of shape [12, 2, 2]"));

  Array wrong = x;
  wrong.values[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(message_of(wrong, y),
            "feature of row 2, column 1 (from 0) is nan, expected a finite number");
  wrong = y;
  wrong.values[4] = -std::numeric_limits<float>::infinity();
  EXPECT_THAT(message_of(x, wrong), HasSubstr("target of row 4, column 0 (from 0) is -inf"));
  EXPECT_EQ(message_of(x, zeros({12, 1})),
            "the target is 0 in all 12 rows: there is nothing to learn");
  wrong = x;
  for (size_t i = 0; i < 12; ++i) wrong.values[3 * i + 1] = i == 5 ? 3e38f : -3e38f;
  EXPECT_EQ(message_of(wrong, y), "feature of row 5, column 1 (from 0) is too large for float32");
}

TEST(TrainingDataTest, NamesWrongLabels) {
  const Array x = normal_array(10, 2, 1);
  Array labels{{10, 1}, {0, 1, 2, 0, 1, 2, 0, 1, 2, 3}};
  EXPECT_EQ(message_of(x, labels, Loss::kCrossEntropy), "no error");
  labels.values[3] = 1.5;
  EXPECT_EQ(message_of(x, labels, Loss::kCrossEntropy),
            "label of row 3 (from 0) is 1.5, expected a whole number from 0");
  labels.values[3] = -1;
  EXPECT_THAT(message_of(x, labels, Loss::kCrossEntropy), HasSubstr("is -1"));
  labels.values = std::vector<float>(10, 2.0f);
  EXPECT_THAT(message_of(x, labels, Loss::kCrossEntropy), HasSubstr("nothing to learn"));
  EXPECT_THAT(message_of(x, normal_array(10, 2, 1), Loss::kCrossEntropy),
              HasSubstr("found 2 target columns"));
}

}  // namespace
}  // namespace fcp
