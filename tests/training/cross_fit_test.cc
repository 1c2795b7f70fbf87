#include "fcp/training/cross_fit.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/methods/scores/cross.h"
#include "fcp/nn/runtime/network.h"

namespace fcp {
namespace {

struct Table {
  Array x, y;
};

Table line(size_t rows) {
  Random random(5);
  Table table{zeros({static_cast<int64_t>(rows), 2}), zeros({static_cast<int64_t>(rows), 1})};
  for (size_t i = 0; i < rows; ++i) {
    const double x = random.normal();
    table.x.values[2 * i] = static_cast<float>(x);
    table.x.values[2 * i + 1] = static_cast<float>(random.normal());
    table.y.values[i] = static_cast<float>(2 * x + 0.1 * random.normal());
  }
  return table;
}

TabularOptions small() {
  TabularOptions options;
  options.members = 2;
  options.epochs = 5;
  options.layers = {8};
  return options;
}

// The graph's ends are those of the ensembles that did not see the rows.
TEST(CrossFit, EndsAreOfNetworksThatDidNotSeeTheRow) {
  const Table table = line(60);
  const CrossFit fitted = train_crossed(table.x, table.y, small(), 3);
  ASSERT_EQ(fitted.graph.outputs.size(), 3u);
  const torch::Tensor x = torch::from_blob(const_cast<float*>(table.x.values.data()), {60, 2});
  const auto outputs = Network(fitted.graph).run({x});
  const torch::Tensor center = (outputs[1] + outputs[2]) / 2;    // [60, 60]
  const torch::Tensor residual = (outputs[2] - outputs[1]) / 2;  // the same in every row
  const torch::Tensor y = torch::from_blob(const_cast<float*>(table.y.values.data()), {60});
  const torch::Tensor own = (y - fitted.out_of_fold.flatten()).abs();
  for (int64_t i = 0; i < 60; ++i) {
    // The row is one of those with its residual, in the fold whose network did not see it.
    const torch::Tensor far =
        (residual[i] - own[i]).abs() + (center[i] - fitted.out_of_fold[i]).abs();
    EXPECT_LT(far.min().item<float>(), 1e-4) << i;
  }
  EXPECT_LT((std::get<0>(residual[7].sort()) - std::get<0>(own.sort())).abs().max().item<float>(),
            1e-4);
  // A row's own answer does not move the network that it is judged by.
  Table other = table;
  other.y.values[17] += 1;
  const CrossFit again = train_crossed(other.x, other.y, small(), 3);
  EXPECT_EQ(again.out_of_fold[17].item<float>(), fitted.out_of_fold[17].item<float>());
  EXPECT_FALSE(again.out_of_fold.equal(fitted.out_of_fold));
}

// Where the truth is a line, the ridge regression answers nearly alone, and its error is the noise;
// where the line says nothing, the networks do.
TEST(CrossFit, TheLinearMemberIsMixedByItsErrorOutOfFold) {
  const Table table = line(200);
  const CrossFit fitted = train_crossed(table.x, table.y, small(), 4);
  EXPECT_GT(fitted.ridge_share, 0.8);
  EXPECT_LT(fitted.error.rmse.at(0), 0.15);
  Table bent = table;
  for (size_t i = 0; i < 200; ++i) bent.y.values[i] = std::abs(table.x.values[2 * i]);
  TabularOptions longer = small();
  longer.epochs = 60;
  longer.layers = {32};
  const CrossFit curved = train_crossed(bent.x, bent.y, longer, 4);
  EXPECT_LT(curved.ridge_share, 0.2);
}

// One missing value, which the networks of its fold have never met, is one for all of them.
TEST(CrossFit, EveryNetworkReadsMissingValues) {
  Table table = line(60);
  table.x.values[2 * 11] = std::numeric_limits<float>::quiet_NaN();
  const CrossFit fitted = train_crossed(table.x, table.y, small(), 10);
  const torch::Tensor x = torch::full({1, 2}, std::numeric_limits<float>::quiet_NaN());
  for (const torch::Tensor& output : Network(fitted.graph).run({x})) {
    EXPECT_TRUE(output.isfinite().all().item<bool>());
  }
  EXPECT_TRUE(fitted.out_of_fold.isfinite().all().item<bool>());
}

// A class of one row: to the ensemble that did not see it every row of it is infinitely strange,
// the row itself as well, whatever the network answers.
TEST(CrossFit, ClassesThatAFoldHasNotSeenAreStrangest) {
  Table table = line(60);
  for (float& y : table.y.values) y = y < 0 ? 0.f : 1.f;
  table.y.values[17] = 2;
  TabularOptions options = small();
  options.loss = Loss::kCrossEntropy;
  options.classes = 3;
  const CrossFit fitted = train_crossed(table.x, table.y, options, 10);
  const torch::Tensor x = torch::from_blob(table.x.values.data(), {60, 2});
  const torch::Tensor margins =
      Network(fitted.graph).run({x})[1].reshape({60, 60, 3});  // row, calibration row, class
  int strangest = 0;  // calibration rows; the file does not say which is which
  for (int64_t i = 0; i < 60; ++i) {
    const torch::Tensor own = margins.select(1, i);
    strangest += own.select(1, 2).abs().max().item<float>() == 0 &&
                 own.narrow(1, 0, 2).max().item<float>() < -1e29;
  }
  EXPECT_EQ(strangest, 1);
  // The six rows of its fold find the class more unusual than their own; the others have met it.
  const torch::Tensor strange = margins.select(2, 2) > 1e29;
  EXPECT_EQ(strange[0].sum().item<int64_t>(), 5);
  EXPECT_EQ(margins.narrow(2, 0, 2).max().item<float>() > 1e29, false);
}

// Of ten folds one trains on a target that does not vary.
TEST(CrossFit, ATargetMayVaryInOneFoldAlone) {
  Table table = line(60);
  for (float& y : table.y.values) y = 0;
  table.y.values[17] = 1;
  const CrossFit fitted = train_crossed(table.x, table.y, small(), 10);
  EXPECT_TRUE(fitted.out_of_fold.isfinite().all().item<bool>());
}

// Where only rows beside these vary, as those of a test may, these need not.
TEST(CrossFit, ATargetMayVaryInOtherRowsAlone) {
  Table table = line(60);
  for (float& y : table.y.values) y = 0;
  TabularOptions options = small();
  EXPECT_THROW(train_crossed(table.x, table.y, options, 10), Error);
  options.may_be_constant = true;
  EXPECT_TRUE(
      train_crossed(table.x, table.y, options, 10).out_of_fold.isfinite().all().item<bool>());
}

// 32 rows in 3 folds: ten each, and two that train alone, which move every network.
TEST(CrossFit, RowsLeftOverTrainAlone) {
  const Table table = line(32);
  const CrossFit fitted = train_crossed(table.x, table.y, small(), 3);
  EXPECT_EQ(fitted.out_of_fold.size(0), 30);
  EXPECT_EQ(fitted.graph.outputs[1].shape[1], 30);
  ASSERT_EQ(fitted.calibrating.size(), 30u);
  size_t left_over = 0;
  while (left_over < 30 && fitted.calibrating[left_over] == left_over) ++left_over;
  Table other = table;
  other.y.values[left_over] += 1;
  const CrossFit again = train_crossed(other.x, other.y, small(), 3);
  EXPECT_TRUE((again.out_of_fold != fitted.out_of_fold).all().item<bool>());
}

// The margins of a classifier are those of the ensembles that did not see the rows, and its answer
// is their mean.
TEST(CrossFit, MarginsOfClasses) {
  Table table = line(60);
  for (float& y : table.y.values) y = y < -1 ? 0.f : y < 1 ? 1.f : 2.f;
  TabularOptions options = small();
  options.loss = Loss::kCrossEntropy;
  options.classes = 3;
  const CrossFit fitted = train_crossed(table.x, table.y, options, 4);
  ASSERT_EQ(fitted.out_of_fold.sizes(), (std::vector<int64_t>{60, 3}));
  const torch::Tensor x = torch::from_blob(const_cast<float*>(table.x.values.data()), {60, 2});
  const auto outputs = Network(fitted.graph).run({x});
  ASSERT_EQ(fitted.graph.outputs[0].name, "logits");
  const torch::Tensor margins = outputs[1].view({60, 60, 3});  // rows, calibration rows, classes
  const torch::Tensor surprise = -torch::log_softmax(fitted.out_of_fold, 1);
  const torch::Tensor labels =
      torch::from_blob(table.y.values.data(), {60, 1}, torch::kFloat).to(torch::kLong);
  // Of a row and itself, which is one of the 60: how much more surprising each class is than its
  // own.
  const torch::Tensor expected = surprise - surprise.gather(1, labels);
  for (int64_t i = 0; i < 60; ++i) {
    EXPECT_LT((margins[i] - expected[i]).abs().amax(1).min().item<float>(), 1e-4) << i;
  }
}

// In the file the rows of a fold lie by their residuals, not as they lay in the table; that order
// changes nothing else.
TEST(CrossFit, TheOrderOfRowsIsNotKept) {
  Table table = line(60);
  for (const bool labels : {false, true}) {
    TabularOptions options = small();
    if (labels) {
      for (float& y : table.y.values) y = y < -1 ? 0.f : y < 1 ? 1.f : 2.f;
      options.loss = Loss::kCrossEntropy;
      options.classes = 3;
    }
    const int64_t classes = labels ? 3 : 1;
    const CrossFit fitted = train_crossed(table.x, table.y, options, 4);
    Graph sorted = fitted.graph;
    sort_cross_rows(sorted);
    const auto& tensors = sorted.initializers;
    const torch::Tensor fold = tensors.at(labels ? "cross_column" : "cross_fold")
                                   .tensor()
                                   .reshape({60, classes})
                                   .select(1, 0)
                                   .to(torch::kDouble);
    const torch::Tensor residual = tensors.at("cross_residual")
                                       .tensor()
                                       .reshape({60, classes})
                                       .select(1, 0)
                                       .to(torch::kDouble);
    const torch::Tensor key = fold * 1e6 + residual;
    EXPECT_TRUE((key.slice(0, 1) >= key.slice(0, 0, 59)).all().item<bool>());

    // A file of an earlier version, in another order.
    Graph shuffled = fitted.graph;
    const torch::Tensor order = torch::arange(59, -1, -1, torch::kLong);
    for (const char* name : {labels ? "cross_column" : "cross_fold", "cross_residual"}) {
      const torch::Tensor tensor = shuffled.initializers.at(name);
      shuffled.initializers.at(name) =
          tensor.reshape({60, classes}).index_select(0, order).reshape(tensor.sizes());
    }
    sort_cross_rows(shuffled);
    for (const auto& [name, tensor] : tensors) {
      EXPECT_TRUE(shuffled.initializers.at(name).tensor().equal(tensor)) << name;
    }
  }
}

TEST(CrossFit, RefusesWhatItCannotDo) {
  const Table table = line(10);
  EXPECT_THROW(train_crossed(table.x, table.y, small(), 1), Error);
  EXPECT_THROW(train_crossed(table.x, table.y, small(), 11), Error);
  EXPECT_THROW(train_crossed(table.x, table.x, small(), 2), Error);
  TabularOptions classes = small();
  classes.loss = Loss::kCrossEntropy;
  EXPECT_THROW(train_crossed(table.x, table.y, classes, 2), Error);
  classes.loss = Loss::kQuantile;
  EXPECT_THROW(train_crossed(table.x, table.y, classes, 2), Error);
}

}  // namespace
}  // namespace fcp
