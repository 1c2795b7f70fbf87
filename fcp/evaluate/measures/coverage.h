// Coverage: how often the truth lies in the region, overall, by group and by size.
//
// Marginal coverage is what conformal prediction guarantees. Coverage by group, by thirds of the
// response (as the paper does) and by strata of region size show what it hides: a method may cover
// 90 % of all rows and 60 % of the rows with a large response.
//
// Every coverage carries its Clopper and Pearson interval at confidence 1 − δ: with c of n rows
// covered, and B the Beta quantile,
//
//   [ B(δ/2; c, n − c + 1),  B(1 − δ/2; c + 1, n − c) ]
//
// which contains the true rate with at least this confidence, for every n.
//
// Reference: Clopper, Pearson, The Use of Confidence or Fiducial Limits, Biometrika 1934.
// Tested by tests/evaluate/measures/coverage_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fcp/level.h"

namespace fcp {

struct Coverage {
  size_t covered = 0;
  size_t rows = 0;
  double rate = 0;   // covered / rows
  double lower = 0;  // the confidence interval of the rate
  double upper = 1;
};

// Throws fcp::Error where rows = 0: there is no coverage of nothing.
Coverage coverage_of(size_t covered, size_t rows, double confidence = 0.95);

// The coverage of the rows of one group.
struct GroupCoverage {
  std::string name;
  Coverage coverage;
};

// The coverage of the rows whose value (a length, a set size) lies in [low, high].
struct Stratum {
  double low = 0;
  double high = 0;
  Coverage coverage;
};

// Counts by group id: all that group coverage needs of a stream of rows.
struct GroupCounts {
  struct Count {
    size_t covered = 0;
    size_t rows = 0;
  };
  std::map<int64_t, Count> groups;

  void add(int64_t group, bool is_covered);
};

// One entry for each id seen, in ascending order of ids. Group id is called names[id] where there
// is such a name, otherwise by its number.
std::vector<GroupCoverage> group_coverage(const GroupCounts& counts,
                                          std::span<const std::string> names = {},
                                          double confidence = 0.95);

// The group of least coverage, the first of several. At least one group is required.
GroupCoverage worst_group(std::span<const GroupCoverage> groups);

// Coverage by thirds of the response: "lower third", "middle third", "upper third", the empty ones
// left out. covered[i] is nonzero where row i is covered.
std::vector<GroupCoverage> coverage_by_thirds(std::span<const double> response,
                                              std::span<const uint8_t> covered,
                                              double confidence = 0.95);
std::vector<GroupCoverage> coverage_by_thirds(std::span<const float> response,
                                              std::span<const uint8_t> covered,
                                              double confidence = 0.95);

// Coverage in quantile groups of a size, in ascending order, the empty groups left out: row i is in
// group ⌊strata · #{j : size_j < size_i} / rows⌋.
std::vector<Stratum> coverage_by_size(std::span<const double> sizes,
                                      std::span<const uint8_t> covered, uint32_t strata,
                                      double confidence = 0.95);

// Coverage for each of several levels: the curve of empirical against nominal coverage.
struct CurvePoint {
  Level level;
  std::optional<double> radius;  // none where it differs from row to row
  Coverage coverage;
};

// The curve of rows that come in batches, whose counts are added up: nothing is kept of a row.
// Scores within each radius (a NaN is an Error that names its place), or p-values above each level;
// then the curve, `radii` being those of the levels or empty where rows have their own.
std::vector<uint64_t> count_scores(std::span<const double> scores, std::span<const double> radii);
std::vector<uint64_t> count_p_values(std::span<const double> p_values,
                                     std::span<const Level> levels);
std::vector<CurvePoint> curve_of_counts(std::span<const Level> levels,
                                        std::span<const double> radii,
                                        std::span<const uint64_t> counts, size_t rows,
                                        double confidence = 0.95);
// Of scores in ascending order.
std::vector<double> curve_radii(std::span<const double> calibration, std::span<const Level> levels);

}  // namespace fcp
