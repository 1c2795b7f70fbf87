#include "fcp/conformal/venn_abers.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/base/special_numbers.h"

namespace fcp {
namespace {

// A point of the cumulative sums: rows so far, and those of the class among them.
struct RowSum {
  int64_t rows = 0, hits = 0;

  RowSum operator+(const RowSum& other) const { return {rows + other.rows, hits + other.hits}; }
  RowSum operator-(const RowSum& other) const { return {rows - other.rows, hits - other.hits}; }
};

// Positive where `second` turns left of `first`.
__int128 turn(const RowSum& first, const RowSum& second) {
  return static_cast<__int128>(first.rows) * second.hits -
         static_cast<__int128>(first.hits) * second.rows;
}

// Takes corners off the end until the way over the last one to `next` turns left, and adds `next`.
void add_corner(std::vector<RowSum>& corners, const RowSum& next, int direction) {
  while (corners.size() > 1) {
    const RowSum &last = corners.back(), &before = corners[corners.size() - 2];
    if (direction * turn(last - before, next - last) > 0) break;
    corners.pop_back();
  }
  corners.push_back(next);
}

// What isotonic regression says of one more row of the class below, or level with, each of the
// distinct scores in turn, and of one above them all; as fractions hits / rows.
//
// The row stands before all others at first, as a step from (−1, −1) to the origin. The greatest
// convex minorant of the sums then has the edge that it is on at the end of the corners. Moving the
// row behind the next score exchanges two steps of the sums, whose corner only sinks.
std::vector<RowSum> fits_with_hit(const std::vector<RowSum>& scores) {
  std::vector<RowSum> sums = {{-1, -1}, {0, 0}};
  for (const RowSum& one : scores) sums.push_back(sums.back() + one);
  std::vector<RowSum> corners = {sums[0]};
  for (size_t i = 1; i < sums.size(); ++i) add_corner(corners, sums[i], 1);
  std::reverse(corners.begin(), corners.end());
  std::vector<RowSum> fits;
  RowSum before = sums[0];
  for (size_t i = 0; i < scores.size(); ++i) {
    const RowSum last = corners.back(), next = corners[corners.size() - 2];
    fits.push_back(next - last);
    before = before + scores[i];  // the row now comes behind this score
    if (turn(next - last, before - last) >= 0) continue;
    corners.pop_back();
    add_corner(corners, before, -1);
  }
  fits.push_back({1, 1});
  return fits;
}

double share_of(const RowSum& fit) {
  return static_cast<double>(fit.hits) / static_cast<double>(fit.rows);
}

}  // namespace

VennAbers::VennAbers(std::span<const double> scores, const std::vector<bool>& of_class) {
  if (scores.empty() || scores.size() != of_class.size()) {
    fail("found ", scores.size(), " scores and ", of_class.size(), " labels, expected one each");
  }
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (const size_t row : order) {
    if (std::isnan(scores[row])) fail("score of row ", row, " is NaN; expected a number");
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] < scores[b]; });
  std::vector<double> distinct;
  std::vector<RowSum> hits;
  for (const size_t row : order) {
    if (distinct.empty() || distinct.back() < scores[row]) {
      distinct.push_back(scores[row]);
      hits.emplace_back();
    }
    hits.back() = hits.back() + RowSum{1, of_class[row] ? 1 : 0};
  }
  const std::vector<RowSum> with_hit = fits_with_hit(hits);
  // A row that is not of the class: the same from the other end, with the labels exchanged.
  std::reverse(hits.begin(), hits.end());
  for (RowSum& one : hits) one.hits = one.rows - one.hits;
  const std::vector<RowSum> with_miss = fits_with_hit(hits);
  const size_t count = distinct.size();
  for (size_t i = 0; i <= count; ++i) {
    const RowSum miss = with_miss[count - i];
    const Step step{i == 0 ? -kInfinity : distinct[i - 1],
                    share_of({miss.rows, miss.rows - miss.hits}), share_of(with_hit[i])};
    const bool same = !steps_.empty() && steps_.back().p0 == step.p0 && steps_.back().p1 == step.p1;
    if (!same) steps_.push_back(step);
  }
}

VennAbers::VennAbers(std::vector<Step> steps) : steps_(std::move(steps)) {
  bool good = !steps_.empty() && steps_[0].from == -kInfinity;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    good = good && step.p0 >= 0 && step.p0 <= step.p1 && step.p1 <= 1;
    if (i == 0) continue;
    const Step& last = steps_[i - 1];
    good = good && last.from < step.from && last.p0 <= step.p0 && last.p1 <= step.p1;
  }
  if (!good) fail("the steps of its probabilities are not in order");
}

VennAbersPair VennAbers::at(double score) const {
  const auto from = [](const Step& step) { return step.from; };
  const auto second = std::next(steps_.begin());  // the first is there whatever the score
  const auto behind = std::ranges::upper_bound(second, steps_.end(), score, {}, from);
  const auto reached = std::ranges::lower_bound(second, steps_.end(), score, {}, from);
  return {std::prev(behind)->p0, std::prev(reached)->p1};
}

}  // namespace fcp
