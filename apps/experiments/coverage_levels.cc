// Empirical coverage minus 1 − α over α: the paper's Figure 4.
//
// One calibration answers all levels. The surrogate is counted twice: by detection, as the paper
// does, and by its printed intervals. Over seeds, covered rows are added up.

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>
#include <torch/utils.h>

#include "fcp/conformal/quantile.h"

#include "apps/experiments/experiment.h"
#include "apps/experiments/regression.h"
#include "apps/experiments/result_rows.h"
#include "apps/report/charts.h"
#include "apps/report/json.h"

namespace fcp {
namespace {

constexpr char kDetection[] = "surrogate, detection";
constexpr char kIntervals[] = "surrogate, intervals";

std::vector<Level> curve_levels() {
  std::vector<Level> levels;
  for (uint64_t i = 1; i < 20; ++i) levels.push_back(Level(0.05 * static_cast<double>(i)));
  return levels;
}

struct LevelCounts {
  size_t detected = 0;  // score ≤ radius
  size_t covered = 0;   // truth in the region
  double length = 0;
};

LevelCounts count_level(const BuiltScore& built, const torch::Tensor& features,
                        const torch::Tensor& truth, const torch::Tensor& scores, double radius) {
  const Regions regions = built.predictor.score().region(features, radius);
  const torch::Tensor inside = (regions.lower <= truth).logical_and(regions.upper >= truth).all(1);
  return {static_cast<size_t>((scores <= radius).sum().item<int64_t>()),
          static_cast<size_t>(inside.sum().item<int64_t>()),
          (regions.upper - regions.lower).mean().item<double>()};
}

void add_curve(const PreparedSet& set, const std::string& method, const RegressionOptions& options,
               Json& rows) {
  const BuiltScore built = build_score(set, method, options);
  torch::NoGradGuard no_grad;
  const std::vector<double> calibration = built.calibration_scores();
  const torch::Tensor features = built.predictor.features(set.x_test);
  const torch::Tensor truth = set.y_test.to(torch::kDouble);
  const torch::Tensor scores =
      torch::tensor(built.predictor.score().score(features, set.y_test), torch::kDouble);
  for (const Level& level : curve_levels()) {
    const double radius = conformal_quantile(calibration, level);
    const LevelCounts counts = count_level(built, features, truth, scores, radius);
    const auto add = [&](const std::string& name, size_t covered) {
      rows.push_back({{"set", set.name},
                      {"method", name},
                      {"seed", set.seed},
                      {"alpha", level.value()},
                      {"calibration_rows", calibration.size()},
                      {"rows", truth.size(0)},
                      {"covered", covered},
                      {"length", counts.length}});
    };
    if (built.options.obeys_law()) {
      add(method, counts.covered);
    } else {
      add(kDetection, counts.detected);
      add(kIntervals, counts.covered);
    }
  }
}

Json run_coverage_levels(const CellKey& key, const ExperimentOptions& options) {
  const PreparedSet set = prepare_cell(key, options);
  Json rows = Json::array();
  const RegressionOptions regression = regression_options(options, {});
  for (const char* method : {"nested", "residual"}) add_curve(set, method, regression, rows);
  try {
    add_curve(set, "surrogate-ibp", regression, rows);
  } catch (const Error& error) {
    rows.push_back({{"set", set.name},
                    {"method", kDetection},
                    {"seed", set.seed},
                    {"alpha", nullptr},
                    {"failed", error.what()}});
  }
  return rows;
}

// Sums over seeds.
std::vector<CurvePoint> pooled_curve(const std::vector<RowGroup>& groups, const std::string& set,
                                     const std::string& method) {
  std::vector<CurvePoint> points;
  for (const RowGroup& group : groups) {
    if (group.key[0] != set || group.key[1] != method || group.rows.empty()) continue;
    double covered = 0, rows = 0;
    for (const Json* row : group.rows) {
      covered += number_of(*row, "covered");
      rows += number_of(*row, "rows");
    }
    points.push_back({Level(number_of(*group.rows[0], "alpha")),
                      {},
                      coverage_of(static_cast<size_t>(covered), static_cast<size_t>(rows))});
  }
  return points;
}

std::vector<std::string> shortfall_line(const std::string& set, const std::string& method,
                                        const std::vector<CurvePoint>& points) {
  double low = 0, high = 0;
  for (const CurvePoint& point : points) {
    const double difference = point.coverage.rate - (1 - point.level.value());
    low = std::min(low, difference);
    high = std::max(high, difference);
  }
  return {set, method, fixed_text(100 * low, 1), fixed_text(100 * high, 1)};
}

void present_coverage_levels(const Json& rows, const ExperimentOptions&, ResultSection& section) {
  section.setup =
      "Seeds are added up; the network is cut after hidden layer 2. The grey range is where a "
      "single calibration lies nine times in ten.";
  const std::vector<RowGroup> groups = group_rows(rows, {"set", "method", "alpha"});
  const std::vector<RowGroup> sets = group_rows(rows, {"set"});
  ResultTable table{"Largest shortfall and excess of coverage over all α, percentage points",
                    {"set", "method", "shortfall", "excess"},
                    {}};
  for (const RowGroup& of_set : sets) {
    const std::string& set = of_set.key[0];
    std::vector<std::pair<std::string, std::vector<CurvePoint>>> curves;
    for (const char* method : {"nested", kIntervals, kDetection, "residual"}) {
      std::vector<CurvePoint> points = pooled_curve(groups, set, method);
      if (points.empty()) continue;
      table.rows.push_back(shortfall_line(set, method, points));
      curves.emplace_back(method, std::move(points));
    }
    std::vector<CurveSeries> series;
    for (const auto& [method, points] : curves) series.push_back({method, points});
    const auto n = static_cast<size_t>(of_set.spread("calibration_rows").mean);
    section.figures.push_back({.caption = set, .chart = coverage_curve_chart(series, n)});
  }
  section.tables = {table};
}

}  // namespace

Experiment coverage_levels() {
  Experiment experiment;
  experiment.name = "levels";
  experiment.title = "Coverage over all levels";
  experiment.claim =
      "coverage minus (1 − α) stays above zero most of the time, for Feature CP as for the "
      "baseline (its Figure 4: facebook1, synthetic, Cityscapes).";
  experiment.sets = {"facebook1", "synthetic"};
  experiment.quick_sets = {"demo"};
  experiment.run = run_coverage_levels;
  experiment.present = present_coverage_levels;
  experiment.readings = {
      "At every level the scores that obey the law, `nested` and `residual`, stay within a "
      "point of 1 − α, and so does the surrogate's detection, which is what the paper's "
      "figure shows.",
      "Its printed intervals do not follow: their number of steps is chosen for 90 %, and "
      "away from that level they fall short of 1 − α by up to 38 percentage points on "
      "facebook1 and 42 on the synthetic set. A detection curve near zero says nothing "
      "about intervals."};
  return experiment;
}

// How scores are distributed over the calibration fold: the paper's figure on the validity of its
// score, for one seed of some sets.
//
// 200 quantiles stand for the scores. Tested by tests/experiments/small_experiments_test.cc.

namespace {

constexpr size_t kQuantiles = 200;
constexpr size_t kSlices = 20;  // of the scores, to look for their peak

const std::vector<std::string>& distribution_methods() {
  static const std::vector<std::string> methods = {"residual", "surrogate-ibp", "nested"};
  return methods;
}

Json run_distribution(const CellKey& key, const ExperimentOptions& options) {
  const PreparedSet set = prepare_cell(key, options);
  const RegressionOptions regression = regression_options(options, {});
  Json rows = Json::array();
  for (const std::string& method :
       options.methods.empty() ? distribution_methods() : options.methods) {
    Json row = {{"set", set.name}, {"method", method}, {"seed", set.seed}};
    try {
      const std::vector<double> sorted =
          sorted_scores(build_score(set, method, regression).calibration_scores());
      row["radius"] = json_number(conformal_quantile_sorted(sorted, options.level));
      for (size_t i = 0; i < kQuantiles; ++i) {
        row["share"] = (static_cast<double>(i) + 0.5) / kQuantiles;
        row["score"] = json_number(sorted[(2 * i + 1) * sorted.size() / (2 * kQuantiles)]);
        rows.push_back(row);
      }
    } catch (const Error& error) {
      row["failed"] = error.what();
      rows.push_back(row);
    }
  }
  return rows;
}

// Where the scores lie closest together: the narrowest of the slices that hold equally many.
std::string densest_slice(const std::vector<double>& scores) {
  const size_t step = scores.size() / kSlices;
  size_t densest = 0;
  for (size_t i = 0; i + 1 < kSlices; ++i) {
    const auto width = [&](size_t slice) {
      return scores[(slice + 1) * step] - scores[slice * step];
    };
    if (width(i) < width(densest)) densest = i;
  }
  return concat(100 * densest / kSlices, "–", 100 * (densest + 1) / kSlices, " %");
}

void present_distribution(const Json& rows, const ExperimentOptions&, ResultSection& section) {
  section.setup =
      "Scores of the calibration fold of the first seed, shown by 200 of their quantiles. The peak "
      "is the twentieth of the scores that lie closest together, by rank.";
  ResultTable table{
      "Scores in units of the radius", {"set", "score", "median", "99 %", "peak at"}, {}};
  for (const RowGroup& group : group_rows(rows, {"set", "method"})) {
    if (group.rows.empty()) continue;
    const std::vector<double> scores = group.numbers("score");
    const double radius = number_of(*group.rows[0], "radius");
    table.rows.push_back(
        {group.key[0], group.key[1], fixed_text(scores[scores.size() / 2] / radius, 2),
         fixed_text(scores[scores.size() * 99 / 100] / radius, 2), densest_slice(scores)});
    section.figures.push_back({.caption = concat(group.key[0], ", ", group.key[1]),
                               .chart = score_chart(scores, radius)});
  }
  section.tables = {table};
}

}  // namespace

Experiment score_distribution() {
  Experiment experiment;
  experiment.name = "scores";
  experiment.title = "Distribution of the scores";
  experiment.claim =
      "the surrogate's scores are spread smoothly, with a single peak, so the score is a proper "
      "one (shown there for segmentation).";
  experiment.sets = {"community", "facebook1", "synthetic"};
  experiment.quick_sets = {"demo"};
  experiment.methods = distribution_methods();
  experiment.shape = CellShape::kSet;
  experiment.run = run_distribution;
  experiment.present = present_distribution;
  experiment.readings = {
      "The scores have a single peak and one tail on facebook1 and the synthetic set; on "
      "community's 797 rows they are densest at zero, up to the ripples of so few. The "
      "surrogate's are no different in kind from those of `residual` and `nested`. It shows "
      "that a score is tame, not that its intervals cover: on the synthetic set the "
      "surrogate's do not.",
      "On facebook1 the tail is heavy: the highest hundredth of the scores begins at 5 "
      "(`nested`), 7 (`residual`) and 9 radii (surrogate)."};
  return experiment;
}

}  // namespace fcp
