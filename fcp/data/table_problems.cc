#include "fcp/data/table_problems.h"

namespace fcp {

void TableProblems::add(const CellProblem& problem) {
  const std::pair key(problem.cell(), problem.kind());
  Found& found = found_[key];
  if (found.count++ > 0) return;
  found.first = problem.where();
  order_.push_back(key);
}

std::string TableProblems::text(const std::string& file) const {
  constexpr size_t kShown = 12;
  std::string text = file + ": ";
  if (order_.size() > 1) text += concat(order_.size(), " problems in ", rows, " rows: ");
  for (size_t i = 0; i < order_.size() && i < kShown; ++i) {
    const Found& found = found_.at(order_[i]);
    if (i > 0) text += "; ";
    text += found.first;
    if (found.count > 1) text += concat(" (and ", found.count - 1, " more such rows)");
  }
  if (order_.size() > kShown) text += concat("; and ", order_.size() - kShown, " more");
  return text;
}

std::vector<size_t> TableProblems::cells(CellProblem::Kind kind) const {
  std::vector<size_t> cells;
  for (const auto& [key, found] : found_) {
    if (key.second == kind) cells.push_back(key.first);
  }
  return cells;
}

}  // namespace fcp
