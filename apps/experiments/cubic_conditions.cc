// The core of the paper's cubic conditions: how far the individual lengths lie from their quantile,
// in feature space and in output space.
//
//   V_i = 2 s_i              length of row i in feature space, s_i its score
//   H(V_i, X_i)              width of the band of radius s_i around its feature
//   feature distance         mean |Q(V) − V_i|
//   output distance          mean [Q(H(V)) − H(V_i)]
//   L                        largest |H(Q(V), X_i) − H(V_i, X_i)| / |Q(V) − V_i|
//
// The theorem asks for L · feature distance < output distance (its second condition, exponent 1);
// the paper's table leaves out L. Rows that no radius reaches are counted and left out of the
// means.
#include <algorithm>
#include <array>
#include <cmath>

#include <nlohmann/json.hpp>
#include <torch/utils.h>

#include "fcp/conformal/quantile.h"

#include "apps/experiments/paper_numbers.h"
#include "apps/experiments/registry.h"
#include "apps/experiments/regression.h"
#include "apps/experiments/result_rows.h"
#include "apps/report/charts.h"
#include "apps/report/json.h"

namespace fcp {
namespace {

constexpr std::array<const char*, 3> kCubicCuts = {"hidden1", "hidden2", "hidden3"};

const std::vector<std::string>& cubic_methods() {
  static const std::vector<std::string> methods = {"surrogate-ibp", "nested"};
  return methods;
}

torch::Tensor band_widths(const BuiltScore& built, const torch::Tensor& features,
                          const torch::Tensor& radii) {
  const Regions regions = built.predictor.score().region(features, radii.unsqueeze(1));
  return (regions.upper - regions.lower).mean(1);
}

std::vector<double> doubles_of(const torch::Tensor& tensor) {
  const torch::Tensor flat = tensor.to(torch::kDouble).contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

Json cubic_row(const PreparedSet& set, const BuiltScore& built, const Level& level) {
  torch::NoGradGuard no_grad;
  const std::vector<double> all = built.calibration_scores();
  const double radius = conformal_quantile(all, level);
  const torch::Tensor scores = torch::tensor(all, torch::kDouble);
  const torch::Tensor reached = scores.isfinite().nonzero().squeeze(1);
  const torch::Tensor own = scores.index_select(0, reached);
  const torch::Tensor features = built.predictor.features(built.x).index_select(0, reached);
  const torch::Tensor widths = band_widths(built, features, own);
  const torch::Tensor at_radius = band_widths(built, features, torch::full_like(own, radius));
  const torch::Tensor distance = 2 * (radius - own).abs();
  const torch::Tensor apart = distance > 1e-6 * radius;
  const torch::Tensor slopes =
      torch::where(apart, (at_radius - widths).abs() / distance, torch::zeros_like(distance));
  const double output_quantile = conformal_quantile(doubles_of(widths), level);
  const torch::Tensor test = built.predictor.features(set.x_test);
  Json row = {{"unreached", scores.size(0) - own.size(0)},
              {"feature_distance", json_number(distance.mean().item<double>())},
              {"output_distance", json_number(output_quantile - widths.mean().item<double>())},
              {"slope", json_number(slopes.max().item<double>())},
              {"band_quantile", json_number(output_quantile)}};
  row["length"] =
      json_number(band_widths(built, test, torch::full({test.size(0)}, radius, torch::kDouble))
                      .mean()
                      .item<double>());
  return row;
}

Json run_cubic(const CellKey& key, const ExperimentOptions& options) {
  const PreparedSet set = prepare_cell(key, options);
  RegressionOptions regression = regression_options(options, {});
  const BuiltScore vanilla = build_score(set, "residual", regression);
  const double vanilla_length = 2 * conformal_quantile(vanilla.calibration_scores(), options.level);
  Json rows = Json::array();
  for (const std::string& method : options.methods.empty() ? cubic_methods() : options.methods) {
    for (const char* cut : kCubicCuts) {
      Json row = {
          {"set", set.name}, {"method", method}, {"seed", set.seed}, {"cut", std::string(cut)}};
      regression.cut = cut;
      try {
        row.update(cubic_row(set, build_score(set, method, regression), options.level));
        row["vanilla_length"] = json_number(vanilla_length);
      } catch (const Error& error) {
        row["failed"] = error.what();
      }
      rows.push_back(row);
    }
  }
  return rows;
}

// How many rows satisfy the second condition, L included.
std::string expansion_text(const RowGroup& group) {
  size_t holds = 0;
  for (const Json* row : group.rows) {
    holds += number_of(*row, "slope") * number_of(*row, "feature_distance") <
             number_of(*row, "output_distance");
  }
  return concat(holds, " of ", group.rows.size());
}

std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<double> ranks;
  for (const double value : values) {
    double rank = 0;
    for (const double other : values) rank += other < value ? 1 : other == value ? 0.5 : 0;
    ranks.push_back(rank);
  }
  return ranks;
}

double rank_correlation(const std::vector<double>& x, const std::vector<double>& y) {
  const std::vector<double> a = ranks_of(x), b = ranks_of(y);
  const Spread of_a = spread_of(a), of_b = spread_of(b);
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - of_a.mean) * (b[i] - of_b.mean);
  return sum / (static_cast<double>(a.size()) - 1) / (of_a.deviation * of_b.deviation);
}

ResultTable cubic_table(const Json& rows) {
  const std::vector<RowGroup> cells = group_rows(rows, {"set", "method", "cut"});
  const std::vector<RowGroup> sets = group_rows(rows, {"set", "method"});
  ResultTable table{"Distances to the quantile at the cut after hidden layer 2",
                    {"set", "score", "feature space", "paper", "output space", "paper", "L",
                     "condition 2 holds with L", "length and metric, rank correlation"},
                    {}};
  for (const RowGroup& group : sets) {
    const RowGroup* middle = find_group(cells, {group.key[0], group.key[1], "hidden2"});
    if (!middle || middle->rows.empty()) continue;
    const PaperSet& paper = paper_set(group.key[0]);
    const bool ours = group.key[1] == "nested";
    const double correlation =
        rank_correlation(group.numbers("feature_distance"), group.numbers("length"));
    table.rows.push_back(
        {group.key[0], group.key[1], spread_text(middle->spread("feature_distance")),
         ours ? "" : std::string(paper.cubic_feature),
         spread_text(middle->spread("output_distance")),
         ours ? "" : std::string(paper.cubic_output), spread_text(middle->spread("slope"), 1),
         expansion_text(*middle), fixed_text(correlation, 2)});
  }
  return table;
}

void present_cubic(const Json& rows, const ExperimentOptions&, ResultSection& section) {
  section.setup =
      "On the calibration fold, at the level α; individual lengths are twice the scores. The rank "
      "correlation is over seeds and the three cuts of the cut ablation.";
  section.tables = {cubic_table(rows)};
  CurveChart chart{"Length and cubic metric",
                   "mean distance to the quantile in feature space",
                   "length / length of vanilla CP",
                   {}};
  for (const std::string& method : values_of(rows, "method")) {
    CurveLine line{method, {}, false};
    for (const Json& row : rows) {
      if (row.contains("failed") || row["method"] != method || row["cut"] != "hidden2") continue;
      line.points.push_back({number_of(row, "feature_distance"),
                             number_of(row, "length") / number_of(row, "vanilla_length")});
    }
    chart.lines.push_back(line);
  }
  section.figures = {{.caption = chart.title,
                      .remark = "One mark for each set and seed.",
                      .chart = curve_chart(chart)}};
}

}  // namespace

Experiment cubic_conditions() {
  Experiment experiment;
  experiment.name = "cubic";
  experiment.title = "Cubic conditions";
  experiment.claim =
      "lengths lie closer to their quantile in feature space than in output space (by a factor of "
      "about seven on all ten sets, the Lipschitz factor left out), which makes Feature CP "
      "shorter; a "
      "larger cubic metric goes with a shorter band.";
  experiment.sets = one_dimensional_sets();
  experiment.quick_sets = {"demo"};
  experiment.methods = cubic_methods();
  experiment.run = run_cubic;
  experiment.present = present_cubic;
  experiment.readings = {
      "Without the factor L the picture is the paper's: lengths lie 4 to 20 times closer to "
      "their quantile in feature space than in output space, with distances near those it "
      "prints (bike 0.092, star 0.021, community 0.131; bio half of it).",
      "With L, which the theorem asks for, its second condition does not hold: L is 12 to "
      "25 at this cut, and none of 200 cases (sets, seeds, cuts and both scores) "
      "satisfies it. The comparison without L says nothing by itself: features "
      "have no unit, and dividing them by ten within the network would divide only one side "
      "by ten. That bands are shorter in feature space is true (see the regression sets) "
      "but not explained by this."};
  return experiment;
}

}  // namespace fcp
