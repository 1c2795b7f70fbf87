#include "fcp/evaluate/measures/coverage_gap.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "fcp/base/random.h"
#include "fcp/evaluate/measures/conditional.h"

namespace fcp {
namespace {

constexpr size_t kRowsOfAPart = 50, kMostParts = 50;
constexpr int kMostRounds = 20;

double squared_distance(const double* a, const double* b, size_t columns) {
  double sum = 0;
  for (size_t d = 0; d < columns; ++d) sum += (a[d] - b[d]) * (a[d] - b[d]);
  return sum;
}

std::vector<double> first_centres(std::span<const double> x, size_t columns, size_t parts,
                                  uint64_t seed) {
  const size_t rows = x.size() / columns;
  Random random(seed);
  std::vector<double> centres, nearest(rows, std::numeric_limits<double>::infinity());
  size_t row = random.below(rows);
  for (size_t part = 0; part < parts; ++part) {
    const auto first = x.begin() + static_cast<std::ptrdiff_t>(row * columns);
    centres.insert(centres.end(), first, first + static_cast<std::ptrdiff_t>(columns));
    double total = 0;
    for (size_t i = 0; i < rows; ++i) {
      const double* last = centres.data() + part * columns;
      nearest[i] = std::min(nearest[i], squared_distance(&x[i * columns], last, columns));
      total += nearest[i];
    }
    double drawn = random.uniform() * total;
    for (row = 0; row + 1 < rows && drawn >= nearest[row]; ++row) drawn -= nearest[row];
  }
  return centres;
}

// Each row to its nearest centre; whether any row changed its part.
bool assign_parts(std::span<const double> x, size_t columns, const std::vector<double>& centres,
                  std::vector<size_t>& part_of) {
  bool changed = false;
  for (size_t i = 0; i < part_of.size(); ++i) {
    double least = std::numeric_limits<double>::infinity();
    size_t best = 0;
    for (size_t part = 0; part * columns < centres.size(); ++part) {
      const double distance = squared_distance(&x[i * columns], &centres[part * columns], columns);
      if (distance >= least) continue;
      least = distance;
      best = part;
    }
    changed = changed || part_of[i] != best;
    part_of[i] = best;
  }
  return changed;
}

// The mean of each part; a part without rows keeps its centre.
void move_centres(std::span<const double> x, size_t columns, const std::vector<size_t>& part_of,
                  std::vector<double>& centres) {
  std::vector<double> sums(centres.size(), 0);
  std::vector<double> rows(centres.size() / columns, 0);
  for (size_t i = 0; i < part_of.size(); ++i) {
    rows[part_of[i]] += 1;
    for (size_t d = 0; d < columns; ++d) sums[part_of[i] * columns + d] += x[i * columns + d];
  }
  for (size_t j = 0; j < centres.size(); ++j) {
    if (rows[j / columns] > 0) centres[j] = sums[j] / rows[j / columns];
  }
}

}  // namespace

std::vector<size_t> k_means(std::span<const double> x, size_t columns, size_t parts,
                            uint64_t seed) {
  std::vector<double> centres = first_centres(x, columns, parts, seed);
  std::vector<size_t> part_of(x.size() / columns, parts);
  for (int round = 0; round < kMostRounds; ++round) {
    if (!assign_parts(x, columns, centres, part_of)) break;
    move_centres(x, columns, part_of, centres);
  }
  return part_of;
}

CoverageGap gap_of_parts(std::vector<CoveragePart> parts, const Level& level) {
  std::erase_if(parts, [](const CoveragePart& part) { return part.rows == 0; });
  CoverageGap found;
  double rows = 0;
  for (const CoveragePart& part : parts) rows += static_cast<double>(part.rows);
  for (const CoveragePart& part : parts) {
    const auto count = static_cast<double>(part.rows);
    const double off = static_cast<double>(part.covered) / count - (1 - level.value());
    found.squared_error += count / rows * off * off;
    found.gap += count / rows * std::abs(off);
  }
  found.by_chance = level.value() * (1 - level.value()) * static_cast<double>(parts.size()) / rows;
  found.parts = std::move(parts);
  return found;
}

std::optional<CoverageGap> coverage_gap(std::span<const double> x, size_t columns,
                                        std::span<const uint8_t> covered, const Level& level,
                                        uint64_t seed) {
  const std::vector<double> table = standardised_columns(x, columns, covered);
  const size_t parts = std::min(kMostParts, covered.size() / kRowsOfAPart);
  if (parts < 2) return std::nullopt;
  const std::vector<size_t> part_of = k_means(table, columns, parts, seed);
  std::vector<CoveragePart> counts(parts);
  for (size_t i = 0; i < covered.size(); ++i) {
    ++counts[part_of[i]].rows;
    counts[part_of[i]].covered += covered[i] != 0 ? 1 : 0;
  }
  return gap_of_parts(std::move(counts), level);
}

}  // namespace fcp
