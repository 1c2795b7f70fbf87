#include "fcp/evaluate/measures/coverage.h"

#include <algorithm>
#include <cmath>

#include "fcp/base/error.h"
#include "fcp/conformal/quantile.h"
#include "fcp/evaluate/measures/coverage_law.h"

namespace fcp {
namespace {

void check_sizes(size_t values, size_t covered) {
  if (values != covered) fail("found ", covered, " coverage marks for ", values, " rows");
}

// A value is in the group whose number is that of the borders below it. ⌊G · below / N⌋ ≥ g says
// that at least ⌈gN/G⌉ values are below, and so is the one of that rank: border g.
template <typename Number>
std::vector<Number> quantile_borders(std::span<const Number> values, uint32_t groups) {
  if (groups == 0) fail("rows cannot be divided into 0 groups");
  for (size_t row = 0; row < values.size(); ++row) {
    if (std::isnan(values[row])) fail("value of row ", row, " is NaN; expected a number");
  }
  std::vector<Number> copy(values.begin(), values.end());
  std::vector<Number> borders;
  auto from = copy.begin();
  for (uint64_t g = 1; g < groups && !copy.empty(); ++g) {
    const uint64_t rank = (g * copy.size() + groups - 1) / groups;
    const auto border = copy.begin() + static_cast<std::ptrdiff_t>(rank - 1);
    std::nth_element(from, border, copy.end());
    borders.push_back(*border);
    from = border;
  }
  return borders;
}

template <typename Number>
uint32_t group_among(const std::vector<Number>& borders, Number value) {
  const auto above = std::lower_bound(borders.begin(), borders.end(), value);
  return static_cast<uint32_t>(above - borders.begin());
}

template <typename Number>
std::vector<GroupCoverage> by_thirds(std::span<const Number> response,
                                     std::span<const uint8_t> covered, double confidence) {
  check_sizes(response.size(), covered.size());
  static const std::string kNames[] = {"lower third", "middle third", "upper third"};
  const std::vector<Number> borders = quantile_borders(response, 3);
  GroupCounts counts;
  for (size_t i = 0; i < response.size(); ++i) {
    counts.add(group_among(borders, response[i]), covered[i] != 0);
  }
  return group_coverage(counts, kNames, confidence);
}

}  // namespace

Coverage coverage_of(size_t covered, size_t rows, double confidence) {
  if (rows == 0) fail("the coverage of no rows was asked for; expected at least one row");
  if (covered > rows) fail(covered, " of ", rows, " rows cannot be covered");
  if (!(confidence > 0 && confidence < 1)) {
    fail("the confidence is ", confidence, "; expected a number strictly between 0 and 1");
  }
  const double c = static_cast<double>(covered);
  const double n = static_cast<double>(rows);
  const double tail = (1 - confidence) / 2;
  Coverage result{.covered = covered, .rows = rows, .rate = c / n};
  if (covered > 0) result.lower = beta_quantile(tail, c, n - c + 1);
  if (covered < rows) result.upper = beta_quantile(1 - tail, c + 1, n - c);
  return result;
}

void GroupCounts::add(int64_t group, bool is_covered) {
  Count& count = groups[group];
  count.covered += is_covered;
  ++count.rows;
}

std::vector<GroupCoverage> group_coverage(const GroupCounts& counts,
                                          std::span<const std::string> names, double confidence) {
  std::vector<GroupCoverage> result;
  for (const auto& [id, count] : counts.groups) {
    const bool named = id >= 0 && static_cast<uint64_t>(id) < names.size();
    result.push_back({.name = named ? names[static_cast<size_t>(id)] : std::to_string(id),
                      .coverage = coverage_of(count.covered, count.rows, confidence)});
  }
  return result;
}

GroupCoverage worst_group(std::span<const GroupCoverage> groups) {
  if (groups.empty()) fail("the worst of no groups was asked for");
  return *std::min_element(groups.begin(), groups.end(),
                           [](const GroupCoverage& a, const GroupCoverage& b) {
                             return a.coverage.rate < b.coverage.rate;
                           });
}

std::vector<GroupCoverage> coverage_by_thirds(std::span<const double> response,
                                              std::span<const uint8_t> covered, double confidence) {
  return by_thirds(response, covered, confidence);
}

std::vector<GroupCoverage> coverage_by_thirds(std::span<const float> response,
                                              std::span<const uint8_t> covered, double confidence) {
  return by_thirds(response, covered, confidence);
}

std::vector<Stratum> coverage_by_size(std::span<const double> sizes,
                                      std::span<const uint8_t> covered, uint32_t strata,
                                      double confidence) {
  check_sizes(sizes.size(), covered.size());
  const std::vector<double> borders = quantile_borders(sizes, strata);
  struct Bin {
    double low, high;
    size_t covered = 0;
    size_t rows = 0;
  };
  std::map<uint32_t, Bin> bins;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Bin first{.low = sizes[i], .high = sizes[i]};
    Bin& bin = bins.try_emplace(group_among(borders, sizes[i]), first).first->second;
    bin.low = std::min(bin.low, sizes[i]);
    bin.high = std::max(bin.high, sizes[i]);
    bin.covered += covered[i] != 0;
    ++bin.rows;
  }
  std::vector<Stratum> result;
  for (const auto& [id, bin] : bins) {
    result.push_back({bin.low, bin.high, coverage_of(bin.covered, bin.rows, confidence)});
  }
  return result;
}

std::vector<double> curve_radii(std::span<const double> calibration,
                                std::span<const Level> levels) {
  std::vector<double> radii;
  for (const Level& level : levels) radii.push_back(conformal_quantile_sorted(calibration, level));
  return radii;
}

std::vector<uint64_t> count_scores(std::span<const double> scores, std::span<const double> radii) {
  check_scores(scores);
  std::vector<uint64_t> counts;
  for (const double radius : radii) {
    uint64_t within = 0;
    for (const double score : scores) within += score <= radius ? 1 : 0;
    counts.push_back(within);
  }
  return counts;
}

std::vector<uint64_t> count_p_values(std::span<const double> p_values,
                                     std::span<const Level> levels) {
  std::vector<uint64_t> counts;
  for (const Level& level : levels) {
    uint64_t above = 0;
    for (const double p : p_values) above += p > level.value() ? 1 : 0;
    counts.push_back(above);
  }
  return counts;
}

std::vector<CurvePoint> curve_of_counts(std::span<const Level> levels,
                                        std::span<const double> radii,
                                        std::span<const uint64_t> counts, size_t rows,
                                        double confidence) {
  std::vector<CurvePoint> curve;
  for (size_t i = 0; i < levels.size(); ++i) {
    const std::optional<double> radius = radii.empty() ? std::nullopt : std::optional(radii[i]);
    curve.push_back({levels[i], radius, coverage_of(counts[i], rows, confidence)});
  }
  return curve;
}

}  // namespace fcp
