#include "apps/experiments/regression.h"

#include <chrono>
#include <limits>
#include <span>
#include <utility>

#include <nlohmann/json.hpp>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/calibrate/choose_cut.h"
#include "fcp/calibrate/surrogate_steps.h"
#include "fcp/evaluate/measures/interval_evaluation.h"
#include "fcp/methods/method.h"

#include "apps/report/json.h"

namespace fcp {
namespace {

// The official code's step size (it has none for quantiles: there it is the one of surrogate) and,
// for the synthetic set, its number of steps.
ScoreOptions surrogate_options(const std::string& set, const std::string& method) {
  const bool small = set == "bio" || set == "bike" || set == "synthetic";
  const double rate = small ? 0.001 : 0.01;
  const int steps = set == "synthetic" ? 80 : 0;
  if (method == "feature_cqr-paper") {
    return FeatureCqrOptions{.steps = steps, .step_rate = rate, .paper = true};
  }
  SurrogateOptions score{.steps = steps, .step_rate = rate, .paper = true};
  if (method == "surrogate-crown") score.bound.method = BoundMethod::kCrown;
  return score;
}

int steps_for(const PreparedSet& set, const Graph& network, const ScoreOptions& score,
              const std::string& cut) {
  ScoreOptions one = score;
  *one.find(field::steps) = 1;
  const ScoredNetwork predictor(network, one, cut);
  const SplitRows xs = split_rows(set.x_calibration, set.seed);
  const SplitRows ys = split_rows(set.y_calibration, set.seed);
  const StepsFolds rows{predictor.features(xs.rest), ys.rest, predictor.features(xs.slice),
                        ys.slice};
  return choose_steps(predictor.shared_head(), score, rows, Level::fraction(1, 10)).steps;
}

// Cut and floor chosen on a fifth of the calibration rows, which is then left out.
BuiltScore build_auto(const PreparedSet& set, const Graph& network, const ScoreOptions& score,
                      const Level& level) {
  const SplitRows xs = split_rows(set.x_calibration, set.seed);
  const SplitRows ys = split_rows(set.y_calibration, set.seed);
  SelectionOptions options;
  options.level = level;
  options.work = std::numeric_limits<double>::infinity();
  const Selection selection = select_cut(network, score, xs.slice, ys.slice, options);
  const Candidate& chosen = selection.candidates[selection.chosen];
  return {ScoredNetwork(network, chosen.score, chosen.cut), chosen.score,
          concat(chosen.cut, ", floor ", chosen.score.value(field::floor)), xs.rest, ys.rest};
}

void measure_regions(const Regions& regions, const torch::Tensor& y, const Level& level,
                     RegressionCell& cell) {
  const torch::Tensor truth = y.to(torch::kDouble).contiguous();
  const torch::Tensor lower = regions.lower.contiguous(), upper = regions.upper.contiguous();
  const auto numbers = [](const torch::Tensor& tensor) {
    return std::span(tensor.data_ptr<double>(), static_cast<size_t>(tensor.numel()));
  };
  const IntervalEvaluation evaluation = evaluate_intervals(
      {.lower = numbers(lower), .upper = numbers(upper), .truth = numbers(truth)},
      static_cast<size_t>(truth.size(1)), {.level = level});
  cell.coverage = evaluation.coverage.rate;
  cell.worst_third = evaluation.worst_third.coverage.rate;
  cell.length = evaluation.length.mean;
  cell.empty = evaluation.length.empty_share;
}

void measure(const PreparedSet& set, const BuiltScore& built, const Level& level,
             RegressionCell& cell) {
  torch::NoGradGuard no_grad;
  const Score& score = built.predictor.score();
  const CalibrationOptions split(SplitOptions{}, {.paper = built.options.value(field::paper)});
  CalibrationScores rows;
  rows.sides = score.sides();
  rows.scores = built.calibration_scores();
  const auto calibration = make_calibration(split, rows);
  const TestInputs fresh{built.predictor.features(set.x_test), {}, {}};
  const torch::Tensor radii = calibration->radii(fresh, level);
  measure_regions(score.region(fresh.features, radii), set.y_test, level, cell);
  if (built.options.obeys_law()) return;
  // The paper's code detects strictly.
  const std::vector<double> test = score.score(fresh.features, set.y_test);
  const torch::Tensor scores =
      torch::tensor(test, torch::kDouble).reshape({fresh.features.size(0), rows.sides});
  cell.detection = (scores < radii).all(1).to(torch::kDouble).mean().item<double>();
}

Json row_of(const RegressionCell& cell) {
  Json row = {{"set", cell.set}, {"method", cell.method}, {"seed", cell.seed}};
  if (!cell.failed.empty()) {
    row["failed"] = cell.failed;
    return row;
  }
  row["note"] = cell.note;
  row["coverage"] = cell.coverage;
  row["length"] = json_number(cell.length);
  row["worst_third_coverage"] = cell.worst_third;
  row["empty"] = cell.empty;
  if (cell.detection) row["detection_coverage"] = *cell.detection;
  row["seconds"] = cell.seconds;
  return row;
}

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

RegressionOptions regression_options(const ExperimentOptions& options,
                                     const std::vector<std::string>& methods) {
  RegressionOptions regression;
  regression.methods = options.methods.empty() ? methods : options.methods;
  regression.level = options.level;
  if (options.epochs > 0) regression.epochs = options.epochs;
  return regression;
}

std::vector<double> BuiltScore::calibration_scores() const {
  torch::NoGradGuard no_grad;
  return predictor.score().score(predictor.features(x), y);
}

BuiltScore build_score(const PreparedSet& set, const std::string& method,
                       const RegressionOptions& options) {
  const bool quantiles = method.find("cqr") != std::string::npos;
  if (quantiles && set.y_test.size(1) != 1) fail("the paper's CQR is for one response");
  const std::shared_ptr<const Graph> network =
      trained_network(set, quantiles ? Loss::kQuantile : Loss::kMse, options.epochs);
  ScoreOptions score(method.substr(0, method.find('-')));
  if (bool* sides = score.find(field::asymmetric)) *sides = method.ends_with("-asymmetric");
  if (method.ends_with("-auto")) return build_auto(set, *network, score, options.level);
  std::string note;
  if (score.searches() || method == "feature_cqr-paper") {
    score = surrogate_options(set.name, method);
    int& steps = *score.find(field::steps);
    if (steps == 0) steps = steps_for(set, *network, score, options.cut);
    note = concat("M = ", steps);
  }
  return {ScoredNetwork(*network, score, options.cut), score, note, set.x_calibration,
          set.y_calibration};
}

std::vector<RegressionCell> run_regression(const PreparedSet& set,
                                           const RegressionOptions& options) {
  std::vector<RegressionCell> cells;
  for (const std::string& method : options.methods) {
    RegressionCell cell;
    cell.set = set.name;
    cell.method = method;
    cell.seed = set.seed;
    const auto start = std::chrono::steady_clock::now();
    try {
      const BuiltScore built = build_score(set, method, options);
      cell.note = built.note;
      measure(set, built, options.level, cell);
    } catch (const Error& error) {
      cell.failed = error.what();
    }
    cell.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    cells.push_back(cell);
  }
  return cells;
}

Json rows_of(const std::vector<RegressionCell>& cells) {
  Json rows = Json::array();
  for (const RegressionCell& cell : cells) rows.push_back(row_of(cell));
  return rows;
}

}  // namespace fcp
