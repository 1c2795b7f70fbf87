#include "fcp/data/folds.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "fcp/base/error.h"
#include "fcp/base/random.h"

namespace fcp {

Folds paper_folds(size_t rows, uint64_t seed) {
  const std::vector<size_t> order = Random(seed).permutation(rows);
  const auto at = [&](size_t i) { return order.begin() + static_cast<std::ptrdiff_t>(i); };
  const size_t test = rows / 5 + (rows % 5 > 0 ? 1 : 0);
  const size_t half = (rows - test) / 2;
  return {.training = {at(test), at(test + half)},
          .calibration = {at(test + half), at(test + 2 * half)},
          .test = {at(0), at(test)}};
}

std::vector<std::vector<size_t>> random_folds(size_t rows, std::span<const double> fractions,
                                              uint64_t seed) {
  const double sum = std::accumulate(fractions.begin(), fractions.end(), 0.0);
  const bool valid =
      std::all_of(fractions.begin(), fractions.end(), [](double f) { return f >= 0; });
  if (!valid || !(sum <= 1 + 1e-9)) {
    fail("fold fractions must be at least 0 and sum to at most 1, found a sum of ", sum);
  }
  const std::vector<size_t> order = Random(seed).permutation(rows);
  std::vector<std::vector<size_t>> folds;
  double cumulative = 0;
  size_t begin = 0;
  for (const double fraction : fractions) {
    cumulative += fraction;
    const double boundary = std::round(cumulative * static_cast<double>(rows));
    const size_t end = std::min(rows, static_cast<size_t>(boundary));
    folds.emplace_back(order.begin() + static_cast<std::ptrdiff_t>(begin),
                       order.begin() + static_cast<std::ptrdiff_t>(end));
    begin = end;
  }
  return folds;
}

GroupedOrder grouped_order(std::span<const int64_t> groups, uint64_t seed) {
  std::map<int64_t, std::vector<size_t>> members;
  for (size_t row = 0; row < groups.size(); ++row) members[groups[row]].push_back(row);
  std::vector<const std::vector<size_t>*> lists;
  for (const auto& [group, rows] : members) lists.push_back(&rows);
  GroupedOrder order;
  for (const size_t at : Random(seed).permutation(lists.size())) {
    order.first.insert(order.first.end(), lists[at]->size(), order.rows.size());
    order.rows.insert(order.rows.end(), lists[at]->begin(), lists[at]->end());
  }
  return order;
}

}  // namespace fcp
