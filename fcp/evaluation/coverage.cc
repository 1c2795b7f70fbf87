#include "fcp/evaluation/coverage.h"

#include <algorithm>
#include <cmath>

#include "fcp/base/error.h"
#include "fcp/conformal/quantile.h"
#include "fcp/evaluation/beta.h"

namespace fcp {
namespace {

void check_sizes(size_t values, size_t covered) {
  if (values != covered) fail("found ", covered, " coverage marks for ", values, " rows");
}

std::vector<double> checked_copy(std::span<const double> values) {
  for (size_t row = 0; row < values.size(); ++row) {
    if (std::isnan(values[row])) fail("value of row ", row, " is NaN; expected a number");
  }
  return {values.begin(), values.end()};
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

std::vector<uint32_t> quantile_groups(std::span<const double> values, uint32_t groups) {
  if (groups == 0) fail("rows cannot be divided into 0 groups");
  // ⌊G · below / N⌋ ≥ g says that at least ⌈gN/G⌉ values are below, and so is the one of that rank.
  std::vector<double> copy = checked_copy(values);
  std::vector<double> borders;
  auto from = copy.begin();
  for (uint64_t g = 1; g < groups && !copy.empty(); ++g) {
    const uint64_t rank = (g * copy.size() + groups - 1) / groups;
    const auto border = copy.begin() + static_cast<std::ptrdiff_t>(rank - 1);
    std::nth_element(from, border, copy.end());
    borders.push_back(*border);
    from = border;
  }
  std::vector<uint32_t> result(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const auto above = std::lower_bound(borders.begin(), borders.end(), values[i]);
    result[i] = static_cast<uint32_t>(above - borders.begin());
  }
  return result;
}

std::vector<GroupCoverage> coverage_by_thirds(std::span<const double> response,
                                              std::span<const uint8_t> covered, double confidence) {
  check_sizes(response.size(), covered.size());
  static const std::string kNames[] = {"lower third", "middle third", "upper third"};
  const std::vector<uint32_t> third = quantile_groups(response, 3);
  GroupCounts counts;
  for (size_t i = 0; i < third.size(); ++i) counts.add(third[i], covered[i] != 0);
  return group_coverage(counts, kNames, confidence);
}

std::vector<Stratum> coverage_by_size(std::span<const double> sizes,
                                      std::span<const uint8_t> covered, uint32_t strata,
                                      double confidence) {
  check_sizes(sizes.size(), covered.size());
  const std::vector<uint32_t> group = quantile_groups(sizes, strata);
  struct Bin {
    double low, high;
    size_t covered = 0;
    size_t rows = 0;
  };
  std::map<uint32_t, Bin> bins;
  for (size_t i = 0; i < group.size(); ++i) {
    Bin& bin = bins.try_emplace(group[i], Bin{.low = sizes[i], .high = sizes[i]}).first->second;
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

std::vector<CurvePoint> coverage_curve(std::span<const double> calibration,
                                       std::span<const double> test, std::span<const Level> levels,
                                       double confidence) {
  const std::vector<double> sorted_test = sorted_scores(test);
  std::vector<CurvePoint> curve;
  for (const Level& level : levels) {
    const double radius = conformal_quantile_sorted(calibration, level);
    const auto end = std::upper_bound(sorted_test.begin(), sorted_test.end(), radius);
    const size_t covered = static_cast<size_t>(end - sorted_test.begin());
    curve.push_back({level, radius, coverage_of(covered, test.size(), confidence)});
  }
  return curve;
}

std::vector<CurvePoint> coverage_curve(std::span<const double> p_values,
                                       std::span<const Level> levels, double confidence) {
  std::vector<CurvePoint> curve;
  for (const Level& level : levels) {
    const auto covered = std::count_if(p_values.begin(), p_values.end(),
                                       [&](double p) { return p > level.value(); });
    curve.push_back({level, std::nullopt,
                     coverage_of(static_cast<size_t>(covered), p_values.size(), confidence)});
  }
  return curve;
}

}  // namespace fcp
