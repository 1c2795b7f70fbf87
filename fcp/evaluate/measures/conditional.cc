#include "fcp/evaluate/measures/conditional.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/base/random.h"

namespace fcp {
namespace {

constexpr size_t kLeastForRisk = 50;  // rows

void check_table(std::span<const double> x, size_t columns, std::span<const uint8_t> covered) {
  if (columns == 0 || x.size() != columns * covered.size()) {
    fail("conditional coverage: ", x.size(), " numbers are not ", covered.size(), " rows of ",
         columns, " columns");
  }
}

struct Slab {
  double coverage = 2;
  double from = 0, to = 0;
  std::vector<double> direction;
};

std::vector<double> random_direction(size_t columns, Random& random) {
  std::vector<double> direction(columns);
  double squares = 0;
  for (double& one : direction) {
    one = random.normal();
    squares += one * one;
  }
  for (double& one : direction) one /= std::sqrt(squares);
  return direction;
}

double projection(const std::vector<double>& x, size_t row, const std::vector<double>& direction) {
  const double* values = x.data() + row * direction.size();
  return std::inner_product(direction.begin(), direction.end(), values, 0.0);
}

Slab find_slab(const std::vector<double>& x, size_t columns, std::span<const uint8_t> covered,
               const std::vector<size_t>& rows, const WorstSlabOptions& options, Random& random) {
  const auto least =
      static_cast<size_t>(std::ceil(options.share * static_cast<double>(rows.size())));
  Slab worst;
  std::vector<std::pair<double, uint8_t>> sorted(rows.size());
  std::vector<uint8_t> hits(rows.size());
  for (size_t trial = 0; trial < options.directions; ++trial) {
    const std::vector<double> direction = random_direction(columns, random);
    for (size_t i = 0; i < rows.size(); ++i) {
      sorted[i] = {projection(x, rows[i], direction), covered[rows[i]] != 0 ? 1 : 0};
    }
    std::sort(sorted.begin(), sorted.end());
    std::transform(sorted.begin(), sorted.end(), hits.begin(),
                   [](const auto& pair) { return pair.second; });
    const Stretch stretch = least_mean_stretch(hits, least);
    if (stretch.mean >= worst.coverage) continue;
    worst = {stretch.mean, sorted[stretch.begin].first, sorted[stretch.end - 1].first, direction};
  }
  return worst;
}

constexpr int kTreeDepth = 3;
constexpr double kPriorRows = 20;

struct TreeSplit {
  int column = -1;
  double threshold = 0;
  double gain = 1e-12;
};

// The best threshold of one column: that for which Σ² / n of both sides is largest.
void improve_split(std::vector<std::pair<double, double>>& sorted, size_t least, int column,
                   TreeSplit& best) {
  std::sort(sorted.begin(), sorted.end());
  double total = 0;
  for (const auto& [value, z] : sorted) total += z;
  const auto count = static_cast<double>(sorted.size());
  double left = 0;
  for (size_t i = 0; i + 1 < sorted.size(); ++i) {
    left += sorted[i].second;
    if (i + 1 < least || sorted.size() - i - 1 < least) continue;
    if (sorted[i].first == sorted[i + 1].first) continue;
    const auto rows = static_cast<double>(i + 1);
    const double right = total - left;
    const double gain = left * left / rows + right * right / (count - rows) - total * total / count;
    if (gain <= best.gain) continue;
    best = {column, sorted[i].first, gain};
  }
}

}  // namespace

std::vector<double> standardised_columns(std::span<const double> x, size_t columns,
                                         std::span<const uint8_t> covered) {
  check_table(x, columns, covered);
  std::vector<double> result(x.size(), 0);
  for (size_t d = 0; d < columns; ++d) {
    double sum = 0, squares = 0, count = 0;
    for (size_t i = d; i < x.size(); i += columns) {
      if (!std::isfinite(x[i])) continue;
      sum += x[i];
      ++count;
    }
    const double mean = count > 0 ? sum / count : 0;
    for (size_t i = d; i < x.size(); i += columns) {
      if (std::isfinite(x[i])) squares += (x[i] - mean) * (x[i] - mean);
    }
    const double deviation = count > 0 ? std::sqrt(squares / count) : 0;
    if (!(deviation > 0)) continue;
    for (size_t i = d; i < x.size(); i += columns) {
      if (std::isfinite(x[i])) result[i] = (x[i] - mean) / deviation;
    }
  }
  return result;
}

// By Dinkelbach's method: each time the stretch of least Σ (z − λ) for the mean λ so far.
Stretch least_mean_stretch(std::span<const uint8_t> z, size_t least) {
  const double total = std::accumulate(z.begin(), z.end(), 0.0);
  Stretch best{0, z.size(), total / static_cast<double>(z.size())};
  for (int round = 0; round < 100; ++round) {
    double sum = 0, largest_before = 0, before = 0, lowest = -1e-9;
    size_t start = 0;
    Stretch found = best;
    bool better = false;
    for (size_t end = 1; end <= z.size(); ++end) {
      sum += z[end - 1] - best.mean;
      if (end < least) continue;
      if (end > least) {  // the prefix that ends just far enough before
        before += z[end - least - 1] - best.mean;
        if (before > largest_before) {
          largest_before = before;
          start = end - least;
        }
      }
      if (sum - largest_before < lowest) {
        lowest = sum - largest_before;
        found.begin = start;
        found.end = end;
        better = true;
      }
    }
    if (!better) break;
    const auto ones = std::accumulate(z.begin() + static_cast<std::ptrdiff_t>(found.begin),
                                      z.begin() + static_cast<std::ptrdiff_t>(found.end), 0.0);
    found.mean = ones / static_cast<double>(found.end - found.begin);
    best = found;
  }
  return best;
}

std::optional<Coverage> worst_slab(std::span<const double> x, size_t columns,
                                   std::span<const uint8_t> covered,
                                   const WorstSlabOptions& options) {
  const std::vector<double> table = standardised_columns(x, columns, covered);
  const size_t count = covered.size();
  if (!(options.share > 0 && options.share <= 1)) {
    fail("worst slab: a share of ", options.share, " of the rows, expected above 0 and at most 1");
  }
  if (static_cast<double>(count) * options.share < 2) return std::nullopt;
  Random random(options.seed);
  const std::vector<size_t> order = random.permutation(count);
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(count / 2);
  const std::vector<size_t> halves[] = {{order.begin(), middle}, {middle, order.end()}};
  size_t inside = 0, hit = 0;
  for (const size_t side : {0, 1}) {
    const Slab slab = find_slab(table, columns, covered, halves[side], options, random);
    for (const size_t row : halves[1 - side]) {
      const double place = projection(table, row, slab.direction);
      if (place < slab.from || place > slab.to) continue;
      ++inside;
      hit += covered[row] != 0 ? 1 : 0;
    }
  }
  if (inside == 0) return std::nullopt;
  return coverage_of(hit, inside, options.confidence);
}

std::optional<ExcessRisk> excess_risk(std::span<const double> x, size_t columns,
                                      std::span<const uint8_t> covered, const Level& level,
                                      uint64_t seed) {
  check_table(x, columns, covered);
  const size_t count = covered.size();
  if (count < kLeastForRisk) return std::nullopt;
  constexpr size_t kFolds = 5;
  const std::vector<size_t> order = Random(seed).permutation(count);
  const double nominal = 1 - level.value();
  std::vector<double> gains(count);
  for (size_t fold = 0; fold < kFolds; ++fold) {
    std::vector<size_t> fitted;
    for (size_t i = 0; i < count; ++i) {
      if (i % kFolds != fold) fitted.push_back(order[i]);
    }
    const CoverageTree tree(x, columns, covered, fitted, nominal);
    for (size_t i = fold; i < count; i += kFolds) {
      const size_t row = order[i];
      const double z = covered[row] != 0 ? 1 : 0,
                   p = tree.predict(x.subspan(row * columns, columns));
      gains[row] = (z - nominal) * (z - nominal) - (z - p) * (z - p);
    }
  }
  ExcessRisk risk;
  const auto rows = static_cast<double>(count);
  risk.value = std::accumulate(gains.begin(), gains.end(), 0.0) / rows;
  double squares = 0;
  for (const double gain : gains) squares += (gain - risk.value) * (gain - risk.value);
  risk.standard_error = std::sqrt(squares / (rows - 1) / rows);
  return risk;
}

double length_miss_correlation(std::span<const double> lengths, std::span<const uint8_t> covered) {
  if (lengths.size() != covered.size()) {
    fail("correlation: ", lengths.size(), " lengths and ", covered.size(), " rows");
  }
  double n = 0, sum_l = 0, sum_m = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (!std::isfinite(lengths[i])) continue;
    ++n;
    sum_l += lengths[i];
    sum_m += covered[i] != 0 ? 0 : 1;
  }
  if (n == 0) return 0;
  double product = 0, square_l = 0, square_m = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (!std::isfinite(lengths[i])) continue;
    const double l = lengths[i] - sum_l / n, m = (covered[i] != 0 ? 0 : 1) - sum_m / n;
    product += l * m;
    square_l += l * l;
    square_m += m * m;
  }
  const double scale = std::sqrt(square_l * square_m);
  return scale > 0 ? product / scale : 0;
}

namespace {

double length_between(double lower, double upper) { return lower < upper ? upper - lower : 0; }

double shared_part(double lower_a, double upper_a, double lower_b, double upper_b) {
  if (lower_a == lower_b && upper_a == upper_b) return 1;
  const double a = length_between(lower_a, upper_a), b = length_between(lower_b, upper_b);
  const double both = length_between(std::max(lower_a, lower_b), std::min(upper_a, upper_b));
  if (std::isinf(both)) return 1;
  const double either = a + b - both;
  return std::isinf(either) ? 0 : either > 0 ? both / either : 1;
}

}  // namespace

double interval_stability(std::span<const RefitIntervals> refits) {
  if (refits.size() < 2) fail("stability needs at least two refits, found ", refits.size());
  const size_t count = refits[0].lower.size();
  double sum = 0;
  size_t pairs = 0;
  for (size_t a = 0; a < refits.size(); ++a) {
    if (refits[a].lower.size() != count || refits[a].upper.size() != count || count == 0) {
      fail("stability needs as many intervals of each refit, and at least one");
    }
    for (size_t b = 0; b < a; ++b) {
      for (size_t i = 0; i < count; ++i) {
        sum += shared_part(refits[a].lower[i], refits[a].upper[i], refits[b].lower[i],
                           refits[b].upper[i]);
      }
      pairs += count;
    }
  }
  return sum / static_cast<double>(pairs);
}

CoverageTree::CoverageTree(std::span<const double> x, size_t columns,
                           std::span<const uint8_t> covered, const std::vector<size_t>& rows,
                           double prior)
    : prior_(prior), least_(std::max<size_t>(1, rows.size() / 20)) {
  grow(x, columns, covered, rows, 0);
}

int CoverageTree::grow(std::span<const double> x, size_t columns, std::span<const uint8_t> covered,
                       std::vector<size_t> rows, int depth) {
  const auto index = static_cast<size_t>(branches_.size());
  double hits = 0;
  for (const size_t row : rows) hits += covered[row] != 0 ? 1 : 0;
  branches_.push_back(
      {-1, 0, (hits + kPriorRows * prior_) / (static_cast<double>(rows.size()) + kPriorRows), 0,
       0});
  if (depth == kTreeDepth || rows.size() < 2 * least_) return static_cast<int>(index);
  TreeSplit best;
  std::vector<std::pair<double, double>> sorted(rows.size());
  for (size_t d = 0; d < columns; ++d) {
    for (size_t i = 0; i < rows.size(); ++i) {
      const double value = x[rows[i] * columns + d];
      sorted[i] = {value == value ? value : std::numeric_limits<double>::infinity(),
                   covered[rows[i]] != 0 ? 1.0 : 0.0};
    }
    improve_split(sorted, least_, static_cast<int>(d), best);
  }
  if (best.column < 0) return static_cast<int>(index);
  const auto goes_left = [&](size_t row) {
    return x[row * columns + static_cast<size_t>(best.column)] <= best.threshold;
  };
  const auto middle = std::partition(rows.begin(), rows.end(), goes_left);
  const int left = grow(x, columns, covered, {rows.begin(), middle}, depth + 1);
  const int right = grow(x, columns, covered, {middle, rows.end()}, depth + 1);
  branches_[index].column = best.column;
  branches_[index].threshold = best.threshold;
  branches_[index].left = left;
  branches_[index].right = right;
  return static_cast<int>(index);
}

double CoverageTree::predict(std::span<const double> row) const {
  size_t at = 0;
  while (branches_[at].column >= 0) {
    const Branch& branch = branches_[at];
    const bool left = row[static_cast<size_t>(branch.column)] <= branch.threshold;
    at = static_cast<size_t>(left ? branch.left : branch.right);
  }
  return branches_[at].value;
}

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
