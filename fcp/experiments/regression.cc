#include "fcp/experiments/regression.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <span>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/calibration/calibration.h"
#include "fcp/calibration/predictor.h"
#include "fcp/calibration/selection.h"
#include "fcp/data/folds.h"
#include "fcp/data/paper_sets.h"
#include "fcp/data/scaling.h"
#include "fcp/data/synthetic.h"
#include "fcp/evaluation/interval_evaluation.h"
#include "fcp/training/train.h"

namespace fcp {
namespace {

constexpr char kCut[] = "hidden2";  // f and g have two layers each
constexpr double kSelectionShare = 0.2;

torch::Tensor tensor_of(const Array& array) {
  return torch::from_blob(const_cast<float*>(array.values.data()), array.shape, torch::kFloat)
      .clone();
}

// One seed of one set: scaled folds, and networks trained on them when they are first asked for.
struct Prepared {
  Array x_training, y_training;
  uint64_t seed = 0;
  int64_t epochs = 0;
  torch::Tensor x_calibration, y_calibration;
  torch::Tensor x_test, y_test;
  mutable std::map<Loss, Graph> trained;

  const Graph& network(Loss loss) const {
    const auto found = trained.find(loss);
    if (found != trained.end()) return found->second;
    TrainOptions options;
    options.seed = seed;
    options.epochs = epochs;
    options.scale = false;
    options.loss = loss;
    options.two_networks = loss == Loss::kQuantile;
    return trained[loss] = train_network(x_training, y_training, options).graph;
  }
};

Prepared prepare(const DataSet& data, uint64_t seed) {
  const Folds folds = paper_folds(data.x.rows(), seed);
  const Array x_train = take_rows(data.x, folds.training);
  const Array y_train = take_rows(data.y, folds.training);
  const Standardiser scaler = fit_standardiser(x_train);
  const double unit = target_scale(y_train);
  const auto x_of = [&](const std::vector<size_t>& rows) {
    return tensor_of(standardise(scaler, take_rows(data.x, rows)));
  };
  const auto y_of = [&](const std::vector<size_t>& rows) {
    return tensor_of(divide(take_rows(data.y, rows), unit));
  };
  Prepared prepared;
  prepared.x_training = standardise(scaler, x_train);
  prepared.y_training = divide(y_train, unit);
  prepared.seed = seed;
  prepared.x_calibration = x_of(folds.calibration);
  prepared.y_calibration = y_of(folds.calibration);
  prepared.x_test = x_of(folds.test);
  prepared.y_test = y_of(folds.test);
  return prepared;
}

// The official code's step size (it has none for quantiles: there it is the one of surrogate) and,
// for the synthetic set, its number of steps.
ScoreOptions surrogate_options(const std::string& set, const std::string& method) {
  ScoreOptions score;
  score.name = method == "feature_cqr-paper" ? "feature_cqr" : "surrogate";
  score.paper = true;
  score.bound.method = method == "surrogate-crown" ? BoundMethod::kCrown : BoundMethod::kIbp;
  score.bound.outward = false;
  const bool small = set == "bio" || set == "bike" || set == "synthetic";
  score.step_rate = small ? 0.001 : 0.01;
  if (set == "synthetic") score.steps = 80;
  return score;
}

struct SplitRows {
  torch::Tensor slice, rest;
};

// A fifth of the rows, at random, and the others.
SplitRows split_rows(const torch::Tensor& rows, uint64_t seed) {
  const auto count = static_cast<size_t>(rows.size(0));
  std::vector<int64_t> order;
  for (const size_t row : Random(seed).permutation(count))
    order.push_back(static_cast<int64_t>(row));
  const torch::Tensor mixed = rows.index_select(0, torch::tensor(order, torch::kLong));
  const auto slice = static_cast<int64_t>(static_cast<double>(count) * kSelectionShare);
  return {mixed.narrow(0, 0, slice), mixed.narrow(0, slice, mixed.size(0) - slice)};
}

class Runner {
 public:
  Runner(const Prepared& prepared, const std::string& set, uint64_t seed, const Level& level)
      : prepared_(prepared), set_(set), seed_(seed), level_(level) {}

  RegressionCell run(const std::string& method) const {
    RegressionCell cell;
    cell.set = set_;
    cell.method = method;
    cell.seed = seed_;
    const auto start = std::chrono::steady_clock::now();
    try {
      measure(method, cell);
    } catch (const Error& error) {
      cell.failed = error.what();
    }
    cell.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return cell;
  }

 private:
  void measure(const std::string& method, RegressionCell& cell) const {
    const bool quantiles = method.find("cqr") != std::string::npos;
    if (quantiles && prepared_.y_test.size(1) != 1) fail("the paper's CQR is for one response");
    const Graph& network = prepared_.network(quantiles ? Loss::kQuantile : Loss::kMse);
    ScoreOptions score;
    score.name = method.substr(0, method.find('-'));
    score.asymmetric = method.ends_with("-asymmetric");
    std::string cut = kCut;
    torch::Tensor x = prepared_.x_calibration, y = prepared_.y_calibration;
    if (score.name == "surrogate" || method == "feature_cqr-paper") {
      score = surrogate_options(set_, method);
      if (score.steps == 0) score.steps = steps_for(network, score);
      cell.note = concat("M = ", score.steps);
    } else if (method.ends_with("-auto")) {
      const SplitRows xs = split_rows(x, seed_), ys = split_rows(y, seed_);
      SelectionOptions options;
      options.level = level_;
      const Selection selection = select_cut(network, score, xs.slice, ys.slice, options);
      const Candidate& chosen = selection.candidates[selection.chosen];
      score = chosen.score;
      cut = chosen.cut;
      x = xs.rest;
      y = ys.rest;
      cell.note = concat(cut, ", floor ", score.floor);
    }
    evaluate(Predictor(network, score, cut), score, x, y, cell);
  }

  int steps_for(const Graph& network, const ScoreOptions& score) const {
    ScoreOptions one = score;
    one.steps = 1;
    const Predictor predictor(network, one, kCut);
    const SplitRows xs = split_rows(prepared_.x_calibration, seed_);
    const SplitRows ys = split_rows(prepared_.y_calibration, seed_);
    const StepsRows rows{predictor.features(xs.rest), ys.rest, predictor.features(xs.slice),
                         ys.slice};
    return choose_steps(predictor.shared_head(), score, rows, Level::fraction(1, 10)).steps;
  }

  void evaluate(const Predictor& predictor, const ScoreOptions& options, const torch::Tensor& x,
                const torch::Tensor& y, RegressionCell& cell) const {
    torch::NoGradGuard no_grad;
    CalibrationOptions split;
    split.paper = options.paper;
    CalibrationRows rows;
    rows.sides = predictor.score().sides();
    rows.scores = predictor.score().score(predictor.features(x), y);
    const auto calibration = make_calibration(split, rows);
    const NewRows fresh{predictor.features(prepared_.x_test), {}, {}};
    const torch::Tensor radii = calibration->radii(fresh, level_);
    const Regions regions = predictor.score().region(fresh.features, radii);
    measure_regions(regions, cell);
    if (obeys_law(options)) return;
    // The paper's code detects strictly.
    const std::vector<double> test = predictor.score().score(fresh.features, prepared_.y_test);
    const torch::Tensor scores =
        torch::tensor(test, torch::kDouble).reshape({fresh.features.size(0), rows.sides});
    cell.detection = (scores < radii).all(1).to(torch::kDouble).mean().item<double>();
  }

  void measure_regions(const Regions& regions, RegressionCell& cell) const {
    const torch::Tensor truth = prepared_.y_test.to(torch::kDouble).contiguous();
    const torch::Tensor lower = regions.lower.contiguous(), upper = regions.upper.contiguous();
    const auto numbers = [](const torch::Tensor& tensor) {
      return std::span(tensor.data_ptr<double>(), static_cast<size_t>(tensor.numel()));
    };
    const IntervalEvaluation evaluation = evaluate_intervals(
        {.lower = numbers(lower), .upper = numbers(upper), .truth = numbers(truth)},
        static_cast<size_t>(truth.size(1)), {.level = level_});
    cell.coverage = evaluation.coverage.rate;
    cell.worst_third = evaluation.worst_third.coverage.rate;
    cell.length = evaluation.length.mean;
    cell.empty = evaluation.length.empty_share;
  }

  const Prepared& prepared_;
  const std::string& set_;
  uint64_t seed_;
  const Level& level_;
};

}  // namespace

const std::vector<std::string>& regression_methods() {
  static const std::vector<std::string> methods = {"residual", "surrogate-ibp", "surrogate-crown",
                                                   "nested",   "nested-auto",   "linearized"};
  return methods;
}

const std::vector<std::string>& quantile_methods() {
  static const std::vector<std::string> methods = {
      "cqr",         "cqr-asymmetric",         "feature_cqr-paper",
      "feature_cqr", "feature_cqr-asymmetric", "feature_cqr-auto"};
  return methods;
}

std::vector<std::string> regression_sets() {
  std::vector<std::string> sets = paper_set_names();
  sets.push_back("synthetic");
  return sets;
}

DataSet load_regression_set(const std::string& name, const std::string& data_dir, uint64_t seed) {
  return name == "synthetic" ? synthetic_set(seed) : load_paper_set(name, data_dir);
}

std::vector<RegressionCell> run_regression(const DataSet& data, const std::string& name,
                                           uint64_t seed, const RegressionOptions& options) {
  Prepared prepared = prepare(data, seed);
  prepared.epochs = options.epochs;
  const Runner runner(prepared, name, seed, options.level);
  std::vector<RegressionCell> cells;
  for (const std::string& method : options.methods) {
    cells.push_back(runner.run(method));
    if (options.observe) options.observe(cells.back());
  }
  return cells;
}

std::vector<RegressionSummary> summarize(const std::vector<RegressionCell>& cells) {
  std::vector<RegressionSummary> summaries;
  std::vector<std::vector<const RegressionCell*>> members;
  for (const RegressionCell& cell : cells) {
    size_t at = 0;
    while (at < summaries.size() &&
           (summaries[at].set != cell.set || summaries[at].method != cell.method)) {
      ++at;
    }
    if (at == summaries.size()) {
      summaries.emplace_back();
      summaries.back().set = cell.set;
      summaries.back().method = cell.method;
      members.emplace_back();
    }
    if (cell.failed.empty()) {
      members[at].push_back(&cell);
    } else {
      ++summaries[at].failed;
    }
  }
  for (size_t i = 0; i < summaries.size(); ++i) {
    RegressionSummary& summary = summaries[i];
    const auto n = static_cast<double>(members[i].size());
    summary.seeds = members[i].size();
    for (const RegressionCell* cell : members[i]) {
      summary.coverage += cell->coverage / n;
      summary.worst_third += cell->worst_third / n;
      summary.length += cell->length / n;
      summary.seconds += cell->seconds / n;
      if (cell->detection) summary.detection = summary.detection.value_or(0) + *cell->detection / n;
    }
    double squares = 0;
    for (const RegressionCell* cell : members[i]) {
      squares += (cell->length - summary.length) * (cell->length - summary.length);
    }
    summary.length_deviation = n > 1 ? std::sqrt(squares / (n - 1)) : 0;
  }
  return summaries;
}

}  // namespace fcp
