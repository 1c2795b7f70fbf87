// The default recipe of `fcp train`: a strong network for a table, without tuning.
//
//   TabularResult trained = train_tabular(x, y, {.seed = 1});
//   write_onnx(trained.graph, "model.onnx");
//
// A cross-fitted ensemble: the rows are dealt into as many folds as there are members, and member e
// learns from all folds but fold e, which picks its best epoch. The answer is the members' mean.
// Each member is a perceptron of 256, 256 and 128 ReLU units over encoded columns
// (input_encoding.h), whose inputs have learned scales (member_stack.h), trained as
// ensemble_fit.h says. Batches and epochs follow the number of rows.
//
// With `trees`, each member gains a gradient-boosted one beside it, which learns from the same
// rows, and the answer is a mix of both (tree_members.h). Networks are then trained for a quarter
// of the epochs, and for half of them more only where the mix leaves them a fifth of the weight.
//
// The target, or its logarithm (training_data.h), is standardised. The mean is learned beside the
// median, by squared and absolute error at once. Where the target has a heavy tail, a second set
// of members learns the median alone, and out-of-fold predictions decide: the median is the answer
// where its residuals give the shorter interval (by 3 % or more) and its root mean square error is
// at most 15 % larger.
//
// What each member says of the rows that it has not seen is kept for what is fitted next: heads on
// features, cross-conformal calibration.
//
// Same data, options, device and thread count: same bits. Cost: a second for 1,000 rows, a minute
// or two for 20,000, on two cores. Tested by tests/training/tabular_test.cc and
// tests/training/tabular_robustness_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/data/array.h"
#include "fcp/nn/graph/graph.h"
#include "fcp/training/ensemble_fit.h"
#include "fcp/training/holdout_error.h"
#include "fcp/training/loss.h"
#include "fcp/training/training_data.h"
#include "fcp/training/tree_members.h"

namespace fcp {

// What a regression predicts.
enum class Centre { kAuto, kMean, kMedian };

struct TabularOptions {
  int64_t members = 5;
  std::vector<int64_t> layers{256, 256, 128};  // at least one
  double dropout = 0.1;
  double rate = 0;       // at its peak; 0: by the number of rows, 0.003 or 0.0015
  int64_t batch = 0;     // 0: by the number of rows, 32 to 256
  int64_t epochs = 0;    // at most; 0: by the number of rows, 80 to 400
  int64_t patience = 0;  // epochs without improvement; 0: 30 % of all
  double holdout = 0.2;  // share of rows that choose the epoch of a single member
  Centre centre = Centre::kAuto;
  uint64_t seed = 0;
  Loss loss = Loss::kMse;
  double low = 0.05;  // levels of the quantiles
  double high = 0.95;
  int64_t classes = 0;            // cross-entropy; 0: the largest label + 1
  std::vector<double> weights{};  // of the loss: one per target, or one per class; empty: all 1
  bool fill_missing = false;      // the network reads missing values though no training row has one
  TargetScale target_scale = TargetScale::kIdentity;  // mse, one target; kLog: without negatives
  bool trees = false;  // boosted members beside the networks, where XGBoost is built in
  std::vector<CategoryColumns> categories{};  // one-hot columns that trees read as one
  std::vector<int64_t> dates{};               // columns of days, which gain a calendar
  bool heads = false;  // will read the features: trees tell of the spread too
  // The group of each row: rows of one group are in one fold, so that no member is judged by rows
  // whose group it learned from. Empty: each row is a group of its own.
  std::vector<int64_t> groups{};
  // The weight of each row in all losses: of networks and trees, of what chooses epochs and
  // members, of heads, and in the hold-out error. Above 0; empty: all are alike.
  std::vector<double> row_weights{};
  std::vector<std::string> target_names{};  // for warnings
  bool may_be_constant = false;  // a target that does not vary is no error: other rows' may
  torch::Device device = torch::kCPU;
};

// What a member says of rows that it has not seen, on the CPU in float32. D is the width of its
// last hidden layer. `outputs` are K for mse, 2K for quantile (all low, then all high), classes for
// cross-entropy.
struct UnseenRows {
  std::vector<int64_t> rows;  // of the training data, from 0
  torch::Tensor features;     // [n, D], its columns of the tensor `features` of the graph
  torch::Tensor predictions;  // [n, outputs], this member's own, in the target's unit
};

struct TabularResult {
  Graph graph;
  std::vector<UnseenRows> members;
  // [N, outputs]: each row predicted by the member that has not seen it; NaN for rows that all have
  // seen, which is where there is one member.
  torch::Tensor out_of_fold;
  bool log_target = false;         // learned by its logarithm
  std::vector<double> tree_share;  // of the trees in each target, of classes in all; empty: none
  Centre centre = Centre::kMean;   // mse: what was chosen
  HoldoutError error;              // of out_of_fold
  std::vector<FitCurve> curves;    // of the members
  int64_t epochs = 0;              // at most
  std::vector<std::string> warnings;
  double seconds = 0;
};

// x [N, columns], in which NaN is a missing value; y [N, K] or [N]; for cross-entropy y holds
// labels. Wrong data or options are an Error; Ctrl-C leaves as Interrupted.
TabularResult train_tabular(const Array& x, const Array& y, const TabularOptions& options = {},
                            const EnsembleProgress& progress = {});

// Rows that each member learns from and those it does not see. An Error where there are fewer
// groups than folds.
std::vector<FitRows> deal_rows(int64_t rows, int64_t members, double holdout, uint64_t seed,
                               std::span<const int64_t> groups = {});

}  // namespace fcp
