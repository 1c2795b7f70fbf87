// What happens where 90 % of the scores are zero: the paper's two tables on zero quantiles.
//
// y = f*(x) + ε with a random network f*, ε = 0 with probability 0.901 and standard normal
// otherwise. `exact` predicts by f* itself, so that the 90 % quantile of the scores is about zero;
// `trained` learns from a training fold, in which case no score is zero. Lengths are in the unit of
// y. Tested by tests/experiments/small_experiments_test.cc.
#include <algorithm>
#include <memory>

#include <nlohmann/json.hpp>
#include <torch/utils.h>

#include "fcp/data/folds.h"
#include "fcp/nn/runtime/network.h"
#include "fcp/training/export.h"

#include "apps/experiments/registry.h"
#include "apps/experiments/regression.h"
#include "apps/experiments/result_rows.h"
#include "apps/experiments/synthetic.h"
#include "apps/report/json.h"

namespace fcp {
namespace {

const std::vector<std::string>& zero_methods() {
  static const std::vector<std::string> methods = {"residual", "nested", "surrogate-ibp"};
  return methods;
}

Graph graph_of(const DenseNetwork& network) {
  MlpOptions options;
  options.inputs = network.weights.front().shape[1];
  options.outputs = network.weights.back().shape[0];
  options.hidden.clear();
  for (size_t i = 0; i + 1 < network.weights.size(); ++i) {
    options.hidden.push_back(network.weights[i].shape[0]);
  }
  Mlp mlp(options);
  float* to = mlp.parameters().data();  // layer by layer, weight before bias
  for (size_t i = 0; i < network.weights.size(); ++i) {
    to = std::copy(network.weights[i].values.begin(), network.weights[i].values.end(), to);
    to = std::copy(network.biases[i].values.begin(), network.biases[i].values.end(), to);
  }
  return export_mlp(mlp, {}, Loss::kMse);
}

// The truth as the network computes it, plus the noise: where that is zero the residual is, too.
PreparedSet exact_set(const ZeroQuantileSet& data, uint64_t seed) {
  torch::NoGradGuard no_grad;
  PreparedSet set;
  set.name = "exact";
  set.seed = seed;
  set.network = std::make_shared<const Graph>(graph_of(data.truth));
  const Network network(*set.network);
  const auto tensor = [](const Array& array) {
    torch::Tensor copy = torch::empty(array.shape, torch::kFloat);
    std::copy(array.values.begin(), array.values.end(), copy.data_ptr<float>());
    return copy;
  };
  const auto fill = [&](const std::vector<size_t>& rows, torch::Tensor& x, torch::Tensor& y) {
    x = tensor(take_rows(data.data.x, rows));
    y = network.forward(x) + tensor(take_rows(data.noise, rows));
  };
  const Folds folds = paper_folds(data.data.x.rows(), seed);
  fill(folds.calibration, set.x_calibration, set.y_calibration);
  fill(folds.test, set.x_test, set.y_test);
  return set;
}

Json run_zero_quantile(const CellKey& key, const ExperimentOptions& options) {
  ZeroQuantileOptions size;
  if (options.quick) size.rows = 2000;
  const ZeroQuantileSet data = zero_quantile_set(key.seed, size);
  PreparedSet set = key.set == "exact" ? exact_set(data, key.seed) : prepare(data.data, key.seed);
  set.name = key.set;
  const RegressionOptions regression = regression_options(options, zero_methods());
  set.network = trained_network(set, Loss::kMse, regression.epochs);  // once for all methods
  Json rows = Json::array();
  for (const RegressionCell& cell : run_regression(set, regression)) {
    Json row = {{"network", key.set}, {"method", cell.method}, {"seed", key.seed}};
    if (cell.failed.empty()) {
      row["note"] = cell.note;
      row["coverage"] = cell.coverage;
      row["length"] = json_number(cell.length * set.unit);
      if (cell.detection) row["detection_coverage"] = *cell.detection;
    } else {
      row["failed"] = cell.failed;
    }
    rows.push_back(row);
  }
  return rows;
}

void present_zero_quantile(const Json& rows, const ExperimentOptions&, ResultSection& section) {
  section.setup =
      "10,000 rows, 100 inputs, f* of two hidden layers of 64, folds 2 : 2 : 1, cut after hidden "
      "layer 2, one f* a seed. The paper's coverages: 90.6, 90.1, 89.7, 89.7, 90.2 % with length 0 "
      "(exact), 90.6, 89.7, 89.8, 89.3, 90.1 % with length 0.11 to 0.13 (trained).";
  ResultTable table{"Coverage % and length by seed",
                    {"network", "score", "seed", "coverage %", "detection %", "length"},
                    {}};
  for (const Json& row : rows) {
    table.rows.push_back(
        {text_of(row, "network"), text_of(row, "method"), text_of(row, "seed"),
         fixed_text(100 * number_of(row, "coverage"), 1),
         row.contains("detection_coverage")
             ? fixed_text(100 * number_of(row, "detection_coverage"), 1)
             : "",
         row.contains("failed") ? "no M" : fixed_text(number_of(row, "length"), 4)});
  }
  section.tables = {table};
}

}  // namespace

Experiment zero_quantile() {
  Experiment experiment;
  experiment.name = "zero-quantile";
  experiment.title = "A quantile of zero";
  experiment.claim =
      "where the network is the truth on 90.1 % of the rows the quantile is zero, the length 0 and "
      "the coverage still about 90 %; a trained network has a quantile that is not zero.";
  experiment.sets = {"exact", "trained"};
  experiment.quick_sets = experiment.sets;
  experiment.methods = zero_methods();
  experiment.run = run_zero_quantile;
  experiment.present = present_zero_quantile;
  experiment.readings = {
      "As in the paper: where the network is the truth the quantile is 0, intervals are "
      "points, and they cover the 90 % of the rows that have no noise; a trained network "
      "has intervals of positive length at the same coverage. Ties at zero do no harm to "
      "`residual` and `nested`, whose regions include their ends.",
      "Detection as the paper's code does it, score strictly below the threshold, is 0 % at "
      "a threshold of zero; its table must have counted equality. On two of five seeds of "
      "the exact network there is no number of steps: where a few calibration scores are "
      "not zero, the bands of one step are far too narrow.",
      "Over the trained network the surrogate's detection is 90 % while its intervals cover "
      "84 to 92 %."};
  return experiment;
}

}  // namespace fcp
