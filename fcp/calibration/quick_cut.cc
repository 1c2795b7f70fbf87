#include "fcp/calibration/quick_cut.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <utility>
#include <vector>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/calibration/scored_network.h"
#include "fcp/conformal/quantile.h"
#include "fcp/network/cut.h"
#include "fcp/network/libtorch_error.h"
#include "fcp/network/simplify.h"
#include "fcp/scores/head_outputs.h"

namespace fcp {
namespace {

constexpr int64_t kCoarseRows = 300;
constexpr int64_t kFineRows = 1000;
constexpr size_t kFineCuts = 3;
constexpr double kRegionsOfALadder = 10;

// A cut with the floor that is best there.
struct JudgedCut {
  std::string cut;
  ScoreOptions score;
  double loss = std::numeric_limits<double>::infinity();
};

// Every other row: rows that lie side by side in a file may be alike.
std::vector<size_t> every_other(size_t rows, size_t first) {
  std::vector<size_t> half;
  for (size_t row = first; row < rows; row += 2) half.push_back(row);
  return half;
}

double halved_loss(const RegionLadder& ladder, double widening, const SelectionOptions& options) {
  const std::vector<double> scores = ladder.scores(widening);
  const double penalty = miss_penalty(options.objective, options.level);
  double loss = 0;
  for (const size_t side : {0, 1}) {
    std::vector<double> own;
    for (const size_t row : every_other(ladder.rows(), side)) own.push_back(scores[row]);
    const double radius = conformal_quantile(own, options.level);
    const std::vector<size_t> others = every_other(ladder.rows(), 1 - side);
    loss += ladder.mean_length(radius, widening, others) / 2;
    loss += penalty * ladder.mean_distance(radius, widening, others) / 2;
  }
  return loss;
}

class CutSearch {
 public:
  CutSearch(const Graph& network, const ScoreOptions& score, const torch::Tensor& x,
            const torch::Tensor& y, const SelectionOptions& options)
      : network_(network), score_(score), x_(x), y_(y), options_(options) {}

  QuickCut find() {
    Graph folded = graph_for_score(network_, score_);
    fold_constants(folded);
    std::vector<std::string> cuts = options_.cuts.empty() ? feature_cuts(folded) : options_.cuts;
    const int64_t coarse = score_.name == "linearized" ? kFineRows : kCoarseRows;
    // The rows that the shortest cuts are looked at besides are those of about as many cuts.
    cuts = affordable_cuts(
        CutWork(folded, score_, x_), cuts, std::min(coarse, x_.size(0)), kRegionsOfALadder,
        options_, [&](const std::string& cut, const std::string& why) { skipped_.add(cut, why); });
    std::vector<JudgedCut> judged = judge_all(cuts, coarse);
    if (coarse < std::min(x_.size(0), kFineRows) && judged.size() > 1) {
      judged.resize(std::min(judged.size(), kFineCuts));
      cuts.clear();
      for (const JudgedCut& one : judged) cuts.push_back(one.cut);
      judged = judge_all(cuts, kFineRows);
    }
    return measured(judged.front());
  }

 private:
  // Those with a finite loss, the least first.
  std::vector<JudgedCut> judge_all(const std::vector<std::string>& cuts, int64_t rows) {
    const torch::Tensor x = spread_rows(x_, rows), y = spread_rows(y_, rows);
    std::vector<JudgedCut> judged;
    for (const std::string& tensor : cuts) {
      check_interrupted();
      try {
        judged.push_back(judge(tensor, x, y));
        if (std::isfinite(judged.back().loss)) continue;
        judged.pop_back();
        skipped_.add(tensor, "infinite");
      } catch (const std::exception&) {
        skipped_.add(tensor, failure_reason());
      }
    }
    if (judged.empty()) {
      fail("no cut gives finite intervals on the ", x.size(0), " selection rows", skipped_.text());
    }
    std::stable_sort(judged.begin(), judged.end(),
                     [](const auto& a, const auto& b) { return a.loss < b.loss; });
    return judged;
  }

  JudgedCut judge(const std::string& tensor, const torch::Tensor& x, const torch::Tensor& y) const {
    JudgedCut judged{tensor, score_};
    const RegionLadder ladder = make_ladder(judged, x, y);
    const double slope = ladder.slope(options_.level);
    for (const double floor : options_.floors) {
      const double loss = halved_loss(ladder, floor * slope / 2, options_);
      if (loss >= judged.loss) continue;
      judged.loss = loss;
      judged.score.floor = floor;
      judged.score.slope = floor > 0 ? slope : 0;
    }
    return judged;
  }

  // Sets the scale of the score on the way.
  RegionLadder make_ladder(JudgedCut& judged, const torch::Tensor& x,
                           const torch::Tensor& y) const {
    judged.score.floor = judged.score.slope = 0;
    const ScoredNetwork predictor(network_, judged.score, judged.cut, options_.device);
    const torch::Tensor features = checked_features(predictor, x);
    if (options_.scaled && judged.score.name == "nested") {
      judged.score.scale = feature_spread(features);
    }
    const std::unique_ptr<Score> sharp = make_score(judged.score, predictor.shared_head());
    return RegionLadder(*sharp, judged.score, features, y, options_.level);
  }

  // On all rows, with the floor that was found.
  QuickCut measured(JudgedCut best) const {
    const double floor = best.score.floor;
    RegionLadder ladder = make_ladder(best, x_, y_);
    best.score.floor = floor;
    best.score.slope = floor > 0 ? ladder.slope(options_.level) : 0;
    return {best.cut, best.score, std::move(ladder)};
  }

  const Graph& network_;
  const ScoreOptions& score_;
  const torch::Tensor& x_;
  const torch::Tensor& y_;
  const SelectionOptions& options_;
  SkippedCuts skipped_;
};

}  // namespace

QuickCut find_cut(const Graph& network, const ScoreOptions& score, const torch::Tensor& x,
                  const torch::Tensor& y, const SelectionOptions& options) {
  const torch::NoGradGuard no_gradients;
  return CutSearch(network, score, x, y, options).find();
}

}  // namespace fcp
