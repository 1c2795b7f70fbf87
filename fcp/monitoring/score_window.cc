#include "fcp/monitoring/score_window.h"

#include <algorithm>
#include <limits>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/conformal/rank.h"
#include "fcp/level.h"

namespace fcp {

ScoreWindow::ScoreWindow(std::vector<double> calibration, size_t rows, uint64_t seed)
    : rows_(rows) {
  if (rows == 0) fail("a window of scores needs rows");
  std::vector<double> chosen;
  for (const size_t i : Random(seed).permutation(calibration.size())) {
    if (chosen.size() == rows) break;
    chosen.push_back(calibration[i]);
  }
  order_.assign(chosen.begin(), chosen.end());
  ranked_ = RankedScores(std::move(chosen));
}

double ScoreWindow::p_value(double score) const {
  const size_t at_least = ranked_.size() - ranked_.count_below(score);
  return static_cast<double>(1 + at_least) / static_cast<double>(1 + ranked_.size());
}

double ScoreWindow::radius(double level) const {
  constexpr double kEverything = std::numeric_limits<double>::infinity();
  if (level <= 0) return kEverything;
  if (level >= 1) return -kEverything;
  const size_t rank = conformal_rank(Level(level), ranked_.size());
  return rank > ranked_.size() ? kEverything : ranked_.kth(rank - 1);
}

void ScoreWindow::add(double score) {
  ranked_.insert(score);
  order_.push_back(score);
  if (order_.size() <= rows_) return;
  ranked_.erase(order_.front());
  order_.pop_front();
}

}  // namespace fcp
