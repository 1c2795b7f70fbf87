#include "fcp/evaluation/coverage_tree.h"

#include <algorithm>
#include <limits>

namespace fcp {
namespace {

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

}  // namespace fcp
