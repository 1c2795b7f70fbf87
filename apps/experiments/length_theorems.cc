// The paper's theorem on the variance of the length, checked on heads whose smoothness is known.
//
//   L_o(v)  = max over ‖u − v‖ ≤ Q of |g(u) − g(v)|
//   E[L_o − E L_o]² / Q²  ≥  E[‖∇g(v)‖ − E‖∇g(v)‖]² − M Q E‖∇g(v)‖          ‖∇²g‖ ≤ M
//
// Features are normal in the plane, so that L_o can be had by walking over the disc; expectations
// are means over the same features on both sides. Heads: linear (M = 0, both sides zero), quadratic
// ½ vᵀAv (M = ‖A‖), and a layer of tanh (M from its weights, |tanh″| ≤ 4 / (3√3)).
// Tested by tests/experiments/small_experiments_test.cc.

#include <cmath>
#include <memory>
#include <numbers>

#include <nlohmann/json.hpp>

#include "fcp/base/random.h"
#include "fcp/conformal/quantile.h"
#include "fcp/evaluate/measures/coverage_law.h"

#include "apps/experiments/experiment.h"
#include "apps/experiments/result_rows.h"
#include "apps/report/charts.h"
#include "apps/report/results.h"

namespace fcp {
namespace {

constexpr size_t kPlaneFeatures = 1000;
constexpr int kAngles = 72;
constexpr int kRadii = 5;
constexpr int kUnits = 16;
constexpr double kRadiiOfBand[] = {0.001, 0.003, 0.01, 0.03, 0.1, 0.3};

struct Plane {
  double x = 0, y = 0;
};

struct SmoothHead {
  std::function<double(Plane)> value;
  std::function<Plane(Plane)> gradient;
  double smoothness = 0;  // M
};

SmoothHead linear_in_plane(Random& random) {
  const Plane w{random.normal(), random.normal()};
  return {[w](Plane v) { return w.x * v.x + w.y * v.y; }, [w](Plane) { return w; }, 0};
}

SmoothHead quadratic_in_plane(Random& random) {
  const double a = random.normal(), b = random.normal(), c = random.normal();
  const double middle = (a + c) / 2, spread = std::hypot((a - c) / 2, b);
  return {[=](Plane v) { return 0.5 * (a * v.x * v.x + 2 * b * v.x * v.y + c * v.y * v.y); },
          [=](Plane v) {
            return Plane{a * v.x + b * v.y, b * v.x + c * v.y};
          },
          std::abs(middle) + spread};
}

SmoothHead tanh_in_plane(Random& random) {
  struct Unit {
    double out, x, y, bias;
  };
  auto units = std::make_shared<std::vector<Unit>>();
  double smoothness = 0;
  for (int i = 0; i < kUnits; ++i) {
    const Unit unit{random.normal() / kUnits, random.normal(), random.normal(), random.normal()};
    units->push_back(unit);
    smoothness += std::abs(unit.out) * (unit.x * unit.x + unit.y * unit.y);
  }
  const auto value = [units](Plane v) {
    double sum = 0;
    for (const Unit& u : *units) sum += u.out * std::tanh(u.x * v.x + u.y * v.y + u.bias);
    return sum;
  };
  const auto gradient = [units](Plane v) {
    Plane sum;
    for (const Unit& u : *units) {
      const double t = std::tanh(u.x * v.x + u.y * v.y + u.bias);
      sum.x += u.out * (1 - t * t) * u.x;
      sum.y += u.out * (1 - t * t) * u.y;
    }
    return sum;
  };
  return {value, gradient, smoothness * 4 / (3 * std::sqrt(3.0))};
}

double band_length(const SmoothHead& head, Plane v, double radius) {
  const double here = head.value(v);
  double longest = 0;
  for (int i = 0; i < kAngles; ++i) {
    const double angle = 2 * std::numbers::pi * i / kAngles;
    for (int j = 1; j <= kRadii; ++j) {
      const double r = radius * j / kRadii;
      const double there = head.value({v.x + r * std::cos(angle), v.y + r * std::sin(angle)});
      longest = std::max(longest, std::abs(there - here));
    }
  }
  return longest;
}

// Of the population: the theorem's expectations are over these features.
double variance_of(const std::vector<double>& values) {
  const Spread spread = spread_of(values);
  const auto n = static_cast<double>(values.size());
  return spread.deviation * spread.deviation * (n - 1) / n;
}

Json run_variance(const CellKey& key, const ExperimentOptions&) {
  Random random(key.seed);
  const SmoothHead head = key.set == "linear"      ? linear_in_plane(random)
                          : key.set == "quadratic" ? quadratic_in_plane(random)
                                                   : tanh_in_plane(random);
  std::vector<Plane> features;
  std::vector<double> slopes;
  for (size_t i = 0; i < kPlaneFeatures; ++i) {
    features.push_back({random.normal(), random.normal()});
    const Plane gradient = head.gradient(features.back());
    slopes.push_back(std::hypot(gradient.x, gradient.y));
  }
  Json rows = Json::array();
  for (const double radius : kRadiiOfBand) {
    std::vector<double> lengths;
    for (const Plane& v : features) lengths.push_back(band_length(head, v, radius));
    const double bound = variance_of(slopes) - head.smoothness * radius * spread_of(slopes).mean;
    rows.push_back({{"head", key.set},
                    {"seed", key.seed},
                    {"radius", radius},
                    {"smoothness", head.smoothness},
                    {"variance", variance_of(lengths) / (radius * radius)},
                    {"bound", bound}});
  }
  return rows;
}

void present_variance(const Json& rows, const ExperimentOptions&, ResultSection& section) {
  section.setup =
      "Random heads over 1,000 normal features in the plane; the length is found by walking over "
      "the disc. A bound below zero says nothing.";
  ResultTable table{"Variance of the length divided by Q², and its lower bound",
                    {"head", "Q", "variance / Q²", "bound", "holds", "says something"},
                    {}};
  for (const RowGroup& group : group_rows(rows, {"head", "radius"})) {
    size_t holds = 0, speaks = 0;
    for (const Json* row : group.rows) {
      const double bound = number_of(*row, "bound");
      holds += number_of(*row, "variance") >= bound - 1e-9;
      speaks += bound > 1e-9;
    }
    const size_t n = group.rows.size();
    table.rows.push_back({group.key[0], group.key[1], spread_text(group.spread("variance"), 4),
                          spread_text(group.spread("bound"), 4), concat(holds, " of ", n),
                          concat(speaks, " of ", n)});
  }
  section.tables = {table};
  CurveChart chart{
      "Variance of the length over the radius, tanh head", "Q", "variance / Q²", {}, true};
  for (const char* field : {"variance", "bound"}) {
    CurveLine line{field, {}, true};
    for (const RowGroup& group : group_rows(rows, {"head", "radius"})) {
      if (group.key[0] != "tanh") continue;
      line.points.push_back({std::stod(group.key[1]), group.spread(field).mean});
    }
    chart.lines.push_back(line);
  }
  section.figures = {{.caption = chart.title, .chart = curve_chart(chart)}};
}

}  // namespace

Experiment length_variance() {
  Experiment experiment;
  experiment.name = "variance";
  experiment.title = "The length differs from row to row";
  experiment.claim =
      "with a smooth head that is not linear the variance of the length has a positive lower "
      "bound, for small radii.";
  experiment.sets = {"linear", "quadratic", "tanh"};
  experiment.quick_sets = experiment.sets;
  experiment.run = run_variance;
  experiment.present = present_variance;
  experiment.readings = {
      "The bound holds in every case, and is nearly tight for small radii; over a linear "
      "head both sides are zero. With a tanh layer it says nothing from Q = 0.1 on, where "
      "the variance itself has hardly changed: the term M Q grows, the variance does not "
      "fall."};
  return experiment;
}

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
