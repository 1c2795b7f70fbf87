#include "fcp/data/folds.h"

#include <map>

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
