#include "fcp/export/quantile_nodes.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fcp/base/error.h"
#include "fcp/base/special_numbers.h"
#include "fcp/methods/scores/density.h"

namespace fcp {
namespace {

constexpr int64_t kGridType = 11;

torch::Tensor doubles(std::vector<double> values) { return torch::tensor(values, torch::kDouble); }

// Arithmetic on tensors of the graph and constants.
class NodeMath {
 public:
  explicit NodeMath(GraphBuilder& builder) : builder_(builder) {}

  std::string of(double value) { return builder_.constant(doubles({value})); }
  std::string of(const torch::Tensor& value) { return builder_.constant(value); }
  std::string add(const std::string& a, const std::string& b) { return two("Add", a, b); }
  std::string sub(const std::string& a, const std::string& b) { return two("Sub", a, b); }
  std::string mul(const std::string& a, const std::string& b) { return two("Mul", a, b); }
  std::string div(const std::string& a, const std::string& b) { return two("Div", a, b); }
  std::string max(const std::string& a, const std::string& b) { return two("Max", a, b); }
  std::string min(const std::string& a, const std::string& b) { return two("Min", a, b); }
  std::string matmul(const std::string& a, const torch::Tensor& b) {
    return two("MatMul", a, of(b));
  }
  std::string as_double(const std::string& x) {
    return builder_.add("Cast", {x}, {{"to", kGridType}});
  }
  // 1 where a < b, 0 elsewhere.
  std::string less(const std::string& a, const std::string& b) {
    return as_double(two("Less", a, b));
  }
  std::string reshape(const std::string& x, const std::vector<int64_t>& shape) {
    return builder_.add("Reshape", {x, of(torch::tensor(shape, torch::kLong))});
  }
  std::string reduce(const char* op, const std::string& x, int64_t axis, bool keep) {
    return builder_.reduce(op, x, axis, keep);
  }
  std::string sort(const std::string& x, int64_t count) { return builder_.sort(x, count); }
  std::string where(const std::string& condition, const std::string& yes, const std::string& no) {
    return builder_.add("Where", {condition, yes, no});
  }
  std::string join(const std::vector<std::string>& parts) {
    return builder_.add("Concat", parts, {{"axis", int64_t{2}}});
  }
  std::string two(const char* op, const std::string& a, const std::string& b) {
    return builder_.add(op, {a, b});
  }

 private:
  GraphBuilder& builder_;
};

// [N, K, Q] doubles, in ascending order.
std::string ascending_grid(NodeMath& math, const QuantileGrid& grid) {
  const std::vector<int64_t> shape = {-1, grid.outputs, grid.quantiles};
  return math.sort(math.reshape(math.as_double(grid.name), shape), grid.quantiles);
}

// r, or what the rectifier makes of it, [1] or [N, 1].
std::string radius_node(NodeMath& math, const NodeRadius& radius) {
  if (radius.rectifier.empty()) return math.of(radius.value);
  return radius.difference ? math.add(radius.rectifier, math.of(radius.value))
                           : math.mul(radius.rectifier, math.of(radius.value));
}

// The place of a level between neighbouring quantiles as a column of weights, as quantile_at says.
torch::Tensor level_weights(int64_t quantiles, double level) {
  const auto last = static_cast<double>(quantiles - 1);
  const double place = std::clamp(level * (last + 2) - 1, 0.0, last);
  const auto below = std::min(static_cast<int64_t>(place), quantiles - 2);
  torch::Tensor weights = torch::zeros({quantiles, 1}, torch::kDouble);
  weights[below][0] = 1 - (place - static_cast<double>(below));
  weights[below + 1][0] = place - static_cast<double>(below);
  return weights;
}

// How many pieces of each tail a radius can reach.
int tail_pieces(int64_t quantiles, const NodeRadius& radius) {
  if (!radius.rectifier.empty()) return kTailPieces;
  const auto gaps = static_cast<double>(quantiles - 1);
  int pieces = 0;
  while (tail_gap(pieces) <= 64 * gaps) ++pieces;
  const double beyond = std::max(0.0, radius.value - gaps);
  return static_cast<int>(std::min<double>(kTailPieces, pieces + 1 + std::ceil(16 * beyond)));
}

// All pieces from the lowest to the highest: the lower tail, the gaps, the upper tail.
struct GrowthPieces {
  std::string length, gap;  // [N, K, P]: what is covered, and the gap of equal density
  torch::Tensor count;      // [P]
  torch::Tensor gap_unit;   // [P]: by how much the gap grows with the gaps it is made of
  torch::Tensor tail_unit;  // [P]: the same of the length, 0 within the quantiles
  std::string gaps;         // [N, K, Q − 1]: those between the quantiles
  std::string first_start, last_start;  // [N, K, 1]: the gaps where growth starts, by number
};

// The number of the shortest gap, of equal ones the most central, of those the lower; or with
// rounding, the lowest and the highest of those that may be the shortest.
void find_starts(NodeMath& math, const std::string& rounding, int64_t count, GrowthPieces& pieces) {
  const std::string shortest = math.reduce("ReduceMin", pieces.gaps, 2, true);
  const torch::Tensor places = torch::arange(0, count, torch::kDouble);
  if (!rounding.empty()) {
    const std::string limit = math.add(shortest, math.mul(rounding, math.of(4)));
    const std::string longer = math.less(limit, pieces.gaps);
    const std::string away = math.mul(longer, math.of(1e6));
    pieces.first_start = math.reduce("ReduceMin", math.add(away, math.of(places)), 2, true);
    pieces.last_start = math.reduce("ReduceMax", math.sub(math.of(places), away), 2, true);
    return;
  }
  torch::Tensor centrality = torch::empty({count}, torch::kDouble);
  for (int64_t i = 0; i < count; ++i) {
    const auto away = static_cast<double>(std::abs(i - count / 2));
    centrality[i] = away + (i > count / 2 ? 0.25 : 0);
  }
  const std::string longer = math.less(shortest, pieces.gaps);  // 1 where it is not the shortest
  const std::string order = math.add(math.mul(longer, math.of(1e6)), math.of(centrality));
  const std::string least = math.reduce("ReduceMin", order, 2, true);
  const std::string first = math.sub(math.of(1.0), math.less(least, order));
  pieces.first_start = pieces.last_start = math.matmul(first, places.unsqueeze(1));
}

GrowthPieces growth_pieces(NodeMath& math, const std::string& quantiles, const QuantileGrid& grid,
                           int tails) {
  const int64_t count = grid.quantiles;
  const int64_t gaps = count - 1;
  torch::Tensor steps = torch::zeros({count, gaps}, torch::kDouble);
  torch::Tensor span = torch::zeros({count, 1}, torch::kDouble);
  for (int64_t i = 0; i < gaps; ++i) {
    steps[i][i] = -1;
    steps[i + 1][i] = 1;
  }
  span[0][0] = -1.0;
  span[gaps][0] = 1.0;
  const std::string gap = math.matmul(quantiles, steps);
  const std::string mean =
      math.div(math.matmul(quantiles, span), math.of(static_cast<double>(gaps)));
  const std::string least = math.div(mean, math.of(64));
  std::vector<double> lengths, as_gaps, counts;
  for (int j = 0; j < tails; ++j) {
    lengths.push_back(tail_length(j));
    as_gaps.push_back(tail_gap(j));
    counts.push_back(tail_count(j));
  }
  const torch::Tensor upwards = doubles(lengths), upward_gaps = doubles(as_gaps);
  const torch::Tensor tail_counts = doubles(counts);
  torch::Tensor lowest = torch::zeros({gaps, 1}, torch::kDouble);
  torch::Tensor highest = torch::zeros({gaps, 1}, torch::kDouble);
  lowest[0][0] = 1;
  highest[gaps - 1][0] = 1;
  const std::string low = math.max(math.matmul(gap, lowest), least);  // s of each side, [N, K, 1]
  const std::string high = math.max(math.matmul(gap, highest), least);
  const auto join = [&](const torch::Tensor& tail) {
    return math.join({math.mul(low, math.of(tail.flip(0))), gap, math.mul(high, math.of(tail))});
  };
  GrowthPieces pieces;
  pieces.length = join(upwards);
  pieces.gap = join(upward_gaps);
  pieces.count =
      torch::cat({tail_counts.flip(0), torch::ones({gaps}, torch::kDouble), tail_counts});
  pieces.gap_unit =
      torch::cat({upward_gaps.flip(0), torch::ones({gaps}, torch::kDouble), upward_gaps});
  pieces.tail_unit = torch::cat({upwards.flip(0), torch::zeros({gaps}, torch::kDouble), upwards});
  pieces.gaps = gap;
  find_starts(math, grid.rounding, gaps, pieces);
  return pieces;
}

}  // namespace

Ends write_quantile_pair(GraphBuilder& builder, const QuantileGrid& grid, double tail,
                         const NodeRadius& radius) {
  NodeMath math(builder);
  const std::string quantiles = ascending_grid(math, grid);
  const auto at = [&](double level) {
    return math.reshape(math.matmul(quantiles, level_weights(grid.quantiles, level)),
                        {-1, grid.outputs});
  };
  const std::string low = at(tail), high = at(1 - tail);
  const std::string factor = radius_node(math, radius);
  std::string reach = math.mul(math.sub(high, low), factor);
  if (!grid.rounding.empty()) {  // δ of each end, and 2δ of their distance
    const std::string more = math.reshape(grid.rounding, {-1, 1});
    const std::string size =
        math.add(math.mul(builder.add("Abs", {factor}), math.of(2)), math.of(1));
    reach = math.add(reach, math.mul(more, size));
  }
  return {math.sub(low, reach), math.add(high, reach)};
}

double grown_limit(int64_t quantiles) {
  auto count = static_cast<double>(quantiles - 1);
  for (int piece = 0; piece < kTailPieces; ++piece) count += 2 * tail_count(piece);
  return count;
}

Ends write_grown_interval(GraphBuilder& builder, const QuantileGrid& grid,
                          const NodeRadius& radius) {
  NodeMath math(builder);
  const std::string quantiles = ascending_grid(math, grid);
  const int tails = tail_pieces(grid.quantiles, radius);
  const GrowthPieces pieces = growth_pieces(math, quantiles, grid, tails);
  const int64_t count = pieces.count.size(0), outputs = grid.outputs;
  const torch::Tensor places = torch::arange(0, count, torch::kDouble);
  const std::string one = math.of(1.0), before_gaps = math.of(static_cast<double>(tails));
  const std::string first_start = math.add(pieces.first_start, before_gaps);
  const std::string last_start = math.add(pieces.last_start, before_gaps);
  const std::string upper = math.less(last_start, math.of(places));  // [N, K, P]: 1 above
  const std::string lower = math.less(math.of(places), first_start);
  const auto row = [&](const std::string& x) { return math.reshape(x, {-1, outputs, 1, count}); };
  const auto column = [&](const std::string& x) {
    return math.reshape(x, {-1, outputs, count, 1});
  };
  // [N, K, P, P]: 1 where j (the last axis) lies between the first gap and k, k included.
  const torch::Tensor all = torch::ones({count, count}, torch::kDouble);
  const std::string between = math.add(math.mul(row(upper), math.of(all.tril())),
                                       math.mul(row(lower), math.of(all.triu())));
  const auto longest_of = [&](const std::string& gap, const std::string& mask) {
    const std::string gaps = math.add(math.mul(mask, row(gap)), math.sub(mask, one));  // others: −1
    return math.reduce("ReduceMax", gaps, 3, false);
  };
  // Of the other side: A_j < A_k; where j is on the lower side also A_j = A_k.
  std::string others, first_counts = math.add(upper, lower);  // of the start, 1
  if (grid.rounding.empty()) {
    const std::string longest = longest_of(pieces.gap, between);
    const std::string earlier = math.less(row(longest), column(longest));
    const std::string not_later = math.sub(one, math.less(column(longest), row(longest)));
    others = math.add(math.mul(math.mul(row(upper), column(lower)), earlier),
                      math.mul(math.mul(row(lower), column(upper)), not_later));
  } else {
    // At most the longest one from the far end of the start on, at least that beyond its near end.
    const std::string off = math.mul(grid.rounding, math.of(2 * pieces.gap_unit));
    const std::string from_start =
        math.add(math.mul(math.mul(column(upper), row(math.sub(one, lower))), math.of(all.tril())),
                 math.mul(math.mul(column(lower), row(math.sub(one, upper))), math.of(all.triu())));
    const std::string most = longest_of(math.add(pieces.gap, off), from_start);
    const std::string least =
        longest_of(math.max(math.sub(pieces.gap, off), math.of(0.0)), between);
    const std::string sides =
        math.add(math.mul(row(upper), column(lower)), math.mul(row(lower), column(upper)));
    others = math.mul(sides, math.less(row(most), column(least)));
    // All of the start is taken before what is longer than each of its gaps.
    const std::string start = math.sub(one, first_counts);
    const std::string start_gaps =
        math.add(math.mul(start, math.add(pieces.gap, off)), math.sub(start, one));
    const std::string before_longer =
        math.less(math.reduce("ReduceMax", start_gaps, 2, true), least);
    const std::string further = math.sub(pieces.last_start, pieces.first_start);
    first_counts = math.mul(first_counts, math.add(math.mul(before_longer, further), one));
  }
  const std::string own = math.mul(between, math.of(all - torch::eye(count, torch::kDouble)));
  const std::string before =
      math.add(math.reshape(math.matmul(math.add(own, others), pieces.count.unsqueeze(1)),
                            {-1, outputs, count}),
               first_counts);
  const std::string reached = radius_node(math, radius);
  const std::string given = radius.rectifier.empty() ? reached : math.reshape(reached, {-1, 1, 1});
  const std::string share = math.max(
      math.min(math.div(math.sub(given, before), math.of(pieces.count)), one), math.of(0.0));
  const std::string taken = math.mul(share, pieces.length);
  const auto sum = [&](const std::string& x) { return math.reduce("ReduceSum", x, 2, false); };
  // The start: from q_i to q_(j+1); of a single gap its middle, and half of its share on both
  // sides.
  const int64_t gaps = grid.quantiles - 1;
  const torch::Tensor numbers = torch::arange(0, gaps, torch::kDouble);
  const auto at = [&](const std::string& values, const std::string& start) {  // [N, K, G] at a gap
    const std::string off = builder.add("Abs", {math.sub(math.of(numbers), start)});
    return sum(math.mul(values, math.max(math.sub(one, off), math.of(0.0))));
  };
  torch::Tensor below = torch::zeros({grid.quantiles, gaps}, torch::kDouble);
  torch::Tensor above = torch::zeros({grid.quantiles, gaps}, torch::kDouble);
  for (int64_t i = 0; i < gaps; ++i) below[i][i] = above[i + 1][i] = 1;
  const std::string several = math.less(pieces.first_start, pieces.last_start);
  const std::string part = math.max(math.max(math.min(given, one), math.of(0.0)),
                                    several);  // of the start that is taken
  const std::string rest =
      math.mul(math.reshape(math.mul(math.sub(one, part), math.of(0.5)), {-1, outputs}),
               at(pieces.gaps, pieces.first_start));
  Ends ends{math.sub(math.add(at(math.matmul(quantiles, below), pieces.first_start), rest),
                     sum(math.mul(taken, lower))),
            math.add(math.sub(at(math.matmul(quantiles, above), pieces.last_start), rest),
                     sum(math.mul(taken, upper)))};
  if (!grid.rounding.empty()) {  // δ of the quantiles, and what tails make of 2δ
    const std::string more = math.reshape(grid.rounding, {-1, 1});
    const auto off = [&](const std::string& side) {
      const std::string reach = sum(math.mul(math.mul(share, side), math.of(2 * pieces.tail_unit)));
      return math.mul(more, math.add(reach, one));
    };
    ends = {math.sub(ends.lower, off(lower)), math.add(ends.upper, off(upper))};
  }
  if (radius.rectifier.empty()) return ends;
  // Everything, where the rectified radius takes all pieces.
  const double most = grown_limit(grid.quantiles);
  const std::string inside = math.two("Less", reached, math.of(most));
  return {math.where(inside, ends.lower, math.of(-kInfinity)),
          math.where(inside, ends.upper, math.of(kInfinity))};
}

}  // namespace fcp
