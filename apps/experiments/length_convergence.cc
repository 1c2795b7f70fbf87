// The paper's theorem on convergence: the length approaches that of the exact quantile as 1/n.
//
// For scores whose quantile function F⁻¹ is known, the radius from n calibration rows is F⁻¹(U)
// with U ~ Beta(k, n + 1 − k), k = ⌈(1 − α)(n + 1)⌉; over a linear head of slope 1 the length is
// twice the radius. So both
//
//   bias        |E length_n − length_∞|
//   deviation   E |length_n − length_∞|
//
// are integrals over the Beta law, here by the midpoints of 4,000 of its quantiles; nothing is
// drawn. Tested by tests/experiments/small_experiments_test.cc.
#include <cmath>
#include <numbers>

#include <nlohmann/json.hpp>

#include "fcp/conformal/rank.h"
#include "fcp/evaluate/measures/beta.h"

#include "apps/experiments/registry.h"
#include "apps/experiments/result_rows.h"
#include "apps/report/charts.h"

namespace fcp {
namespace {

constexpr int kMidpoints = 4000;
constexpr size_t kFirstRows = 19, kLastRows = 2559;  // n + 1 doubles: 20, 40, …, 2560

double exponential_quantile(double u) { return -std::log1p(-u); }

// Of |N(0, 1)|, by bisection.
double half_normal_quantile(double u) {
  double low = 0, high = 40;
  for (int i = 0; i < 80; ++i) {
    const double middle = (low + high) / 2;
    (std::erf(middle / std::numbers::sqrt2) < u ? low : high) = middle;
  }
  return (low + high) / 2;
}

Json run_convergence(const CellKey& key, const ExperimentOptions& options) {
  const auto length_at = [&](double u) {
    return 2 * (key.set == "exponential" ? exponential_quantile(u) : half_normal_quantile(u));
  };
  const double exact = length_at(1 - options.level.value());
  Json rows = Json::array();
  for (size_t n = kFirstRows; n <= kLastRows; n = 2 * n + 1) {
    const size_t rank = conformal_rank(options.level, n);
    if (rank > n) continue;  // too few rows for this level: the length is infinite
    double mean = 0, deviation = 0;
    for (int i = 0; i < kMidpoints; ++i) {
      const double u = beta_quantile((i + 0.5) / kMidpoints, static_cast<double>(rank),
                                     static_cast<double>(n + 1 - rank));
      mean += length_at(u) / kMidpoints;
      deviation += std::abs(length_at(u) - exact) / kMidpoints;
    }
    rows.push_back({{"scores", key.set},
                    {"rows", n},
                    {"exact_length", exact},
                    {"mean_length", mean},
                    {"bias", std::abs(mean - exact)},
                    {"deviation", deviation}});
  }
  return rows;
}

// Of log y over log x, by least squares.
double log_slope(const std::vector<double>& x, const std::vector<double>& y) {
  std::vector<double> a, b;
  for (size_t i = 0; i < x.size(); ++i) {
    a.push_back(std::log(x[i]));
    b.push_back(std::log(y[i]));
  }
  const double mean_a = spread_of(a).mean, mean_b = spread_of(b).mean;
  double above = 0, below = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    above += (a[i] - mean_a) * (b[i] - mean_b);
    below += (a[i] - mean_a) * (a[i] - mean_a);
  }
  return above / below;
}

void present_convergence(const Json& rows, const ExperimentOptions&, ResultSection& section) {
  section.setup =
      "Scores of a known law over a linear head: the length of n calibration rows is an integral "
      "over the Beta law of conformal coverage, nothing is drawn.";
  ResultTable table{"Length by number of calibration rows",
                    {"scores", "n", "exact", "mean", "|mean − exact|", "mean |length − exact|"},
                    {}};
  for (const Json& row : rows) {
    table.rows.push_back({text_of(row, "scores"), text_of(row, "rows"),
                          fixed_text(number_of(row, "exact_length"), 4),
                          fixed_text(number_of(row, "mean_length"), 4),
                          fixed_text(number_of(row, "bias"), 5),
                          fixed_text(number_of(row, "deviation"), 5)});
  }
  ResultTable slopes{"Exponents of n, by least squares on logarithms",
                     {"scores", "|mean − exact|", "mean |length − exact|"},
                     {}};
  CurveChart chart{"Distance from the exact length", "calibration rows", "length", {}, true};
  for (const RowGroup& group : group_rows(rows, {"scores"})) {
    const std::vector<double> n = group.numbers("rows");
    std::vector<std::string> line = {group.key[0]};
    for (const char* field : {"bias", "deviation"}) {
      const std::vector<double> values = group.numbers(field);
      line.push_back(fixed_text(log_slope(n, values), 2));
      CurveLine curve{concat(group.key[0], ", ", field), {}, true};
      for (size_t i = 0; i < n.size(); ++i) curve.points.push_back({n[i], values[i]});
      chart.lines.push_back(curve);
    }
    slopes.rows.push_back(line);
  }
  section.tables = {slopes, table};
  section.figures = {{.caption = chart.title, .chart = curve_chart(chart)}};
}

}  // namespace

Experiment length_convergence() {
  Experiment experiment;
  experiment.name = "convergence";
  experiment.title = "Convergence of the length";
  experiment.claim =
      "the length from n calibration rows differs from that of the exact quantile by c / n at "
      "most.";
  experiment.sets = {"half-normal", "exponential"};
  experiment.quick_sets = experiment.sets;
  experiment.shape = CellShape::kSet;
  experiment.run = run_convergence;
  experiment.present = present_convergence;
  experiment.readings = {
      "The mean length converges as 1/n, as the theorem says. A single calibration does "
      "not: its length lies about 1/√n off, and at n = 2,559 that is thirty times the bias. "
      "The theorem bounds the coverage of the exact quantile, not the luck of one "
      "calibration fold."};
  return experiment;
}

}  // namespace fcp
