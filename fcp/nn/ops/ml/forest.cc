#include "fcp/nn/ops/ml/forest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <ATen/Parallel.h>

#include "fcp/base/error.h"
#include "fcp/base/special_numbers.h"

namespace fcp {
namespace {

constexpr int64_t kTogether = 8;     // rows that walk through a tree side by side
constexpr int64_t kBlock = 512;      // rows that meet all trees before the next ones do
constexpr int64_t kLeastShare = 64;  // rows that are worth a thread

// x < t for doubles x: x ≤ the number before t. Nothing is below −∞, and no x is ≤ NaN.
double before(double t) { return t == -kInfinity ? std::nan("") : std::nextafter(t, -kInfinity); }

// For floats x: x ≤ t as x ≤ the largest float that is not above t.
float rounded_down(double t) {
  const auto near = static_cast<float>(t);
  const bool above = static_cast<double>(near) > t;
  return above ? std::nextafter(near, -std::numeric_limits<float>::infinity()) : near;
}

}  // namespace

Forest::Forest(const PlainForest& plain, int64_t targets, Aggregate aggregate, const Node& node)
    : targets_(targets),
      aggregate_(aggregate),
      one_vote_(targets == 1 && aggregate != Aggregate::kMin && aggregate != Aggregate::kMax) {
  compile(plain, node);
  for (const Step<double>& step : steps_) {
    float_steps_.push_back(
        {rounded_down(step.threshold), step.feature, {step.child[0], step.child[1]}});
  }
}

int32_t Forest::add_step(int64_t feature, double threshold, bool missing, int32_t if_false,
                         int32_t if_true) {
  const auto place = static_cast<int32_t>(feature) | (missing ? kMissing : 0);
  steps_.push_back({threshold, place, {if_false, if_true}});
  features_ = std::max(features_, feature + 1);
  missing_ = missing_ || missing;
  return static_cast<int32_t>(steps_.size()) - 1;
}

void Forest::add_leaf(int32_t at, const std::vector<LeafWeight>& weights, int64_t targets,
                      const Node& node) {
  const double vote = weights.size() == 1 ? weights[0].weight : 0;
  one_vote_ =
      one_vote_ && weights.size() == 1 && static_cast<double>(static_cast<float>(vote)) == vote;
  steps_.push_back({vote, 0, {at, at}});
  first_weight_.resize(static_cast<size_t>(at) + 1, static_cast<int32_t>(weights_.size()));
  for (const LeafWeight& weight : weights) {
    if (weight.target < 0 || weight.target >= targets) {
      fail(describe(node), ": a leaf votes for target ", weight.target, " of ", targets);
    }
    weights_.push_back(weight);
  }
}

// Children stand before their parents, so that no place has to be mended afterwards. A tree is
// walked with a stack of its own: trees of files can be deep.
void Forest::compile(const PlainForest& plain, const Node& node) {
  constexpr int32_t kOpen = -1, kInside = -2;
  std::vector<int32_t> place(plain.nodes.size(), kOpen);
  const auto check = [&](size_t index) {
    if (index >= plain.nodes.size()) fail(describe(node), ": a tree has a child that is not there");
    if (place[index] == kInside) fail(describe(node), ": a tree leads back to its own node");
  };
  const auto branch = [&](const PlainTreeNode& from, int32_t no, int32_t yes) {
    const double t = from.threshold;
    switch (from.branch) {
      case Branch::kLess:
        return add_step(from.feature, before(t), from.missing_is_true, no, yes);
      case Branch::kGreaterEqual:
        return add_step(from.feature, before(t), !from.missing_is_true, yes, no);
      case Branch::kGreater:
        return add_step(from.feature, t, !from.missing_is_true, yes, no);
      case Branch::kEqual: {
        const int32_t not_below = add_step(from.feature, before(t), false, yes, no);
        return add_step(from.feature, t, from.missing_is_true, no, not_below);
      }
      case Branch::kNotEqual: {
        const int32_t not_below = add_step(from.feature, before(t), false, no, yes);
        return add_step(from.feature, t, false, yes, not_below);  // NaN is unequal to all numbers
      }
      default:
        return add_step(from.feature, t, from.missing_is_true, no, yes);
    }
  };
  for (const size_t root : plain.roots) {
    std::vector<size_t> open = {root};
    while (!open.empty()) {
      const size_t index = open.back();
      if (index >= plain.nodes.size()) check(index);
      const PlainTreeNode& from = plain.nodes[index];
      if (place[index] >= 0) {
        open.pop_back();
      } else if (from.branch == Branch::kLeaf) {
        place[index] = static_cast<int32_t>(steps_.size());
        add_leaf(place[index], plain.leaves[index], targets_, node);
        open.pop_back();
      } else if (place[index] == kOpen) {
        if (from.feature < 0 || from.feature > std::numeric_limits<int32_t>::max()) {
          fail(describe(node), ": a tree looks at feature ", from.feature);
        }
        place[index] = kInside;
        for (const size_t child : {from.if_false, from.if_true}) {
          check(child);
          if (place[child] == kOpen) open.push_back(child);
        }
      } else {
        place[index] = branch(from, place[from.if_false], place[from.if_true]);
        open.pop_back();
      }
    }
    roots_.push_back(place[root]);
  }
  first_weight_.resize(steps_.size() + 1, static_cast<int32_t>(weights_.size()));
}

void Forest::add(int32_t leaf, double* out) const {
  const auto at = static_cast<size_t>(leaf);
  for (int32_t i = first_weight_[at]; i < first_weight_[at + 1]; ++i) {
    const LeafWeight& weight = weights_[static_cast<size_t>(i)];
    double& total = out[weight.target];
    if (aggregate_ == Aggregate::kMin) {
      total = std::min(total, weight.weight);
    } else if (aggregate_ == Aggregate::kMax) {
      total = std::max(total, weight.weight);
    } else {
      total += weight.weight;
    }
  }
}

template <typename Number, bool kWithMissing>
void Forest::run_rows(const std::vector<Step<Number>>& steps, const Number* x, int64_t width,
                      double* out, int64_t first, int64_t last) const {
  const Step<Number>* table = steps.data();
  for (const int32_t root : roots_) {
    for (int64_t row = first; row < last; row += kTogether) {
      const int64_t count = std::min(kTogether, last - row);
      const Number* rows[kTogether];
      int32_t at[kTogether];
      for (int64_t i = 0; i < kTogether; ++i) {
        rows[i] = x + (row + std::min(i, count - 1)) * width;
        at[i] = root;
      }
      for (int32_t moved = 1; moved != 0;) {
        moved = 0;
        for (int64_t i = 0; i < kTogether; ++i) {
          const Step<Number>& step = table[at[i]];
          const Number value = rows[i][kWithMissing ? step.feature & ~kMissing : step.feature];
          auto side = static_cast<unsigned>(value <= step.threshold);
          if constexpr (kWithMissing) {  // without a branch, as the rest
            side |= static_cast<unsigned>(step.feature < 0) & static_cast<unsigned>(value != value);
          }
          const int32_t next = step.child[side];
          moved |= next ^ at[i];
          at[i] = next;
        }
      }
      for (int64_t i = 0; i < count; ++i) {
        if (one_vote_) {
          out[row + i] += static_cast<double>(table[at[i]].threshold);
        } else {
          add(at[i], out + (row + i) * targets_);
        }
      }
    }
  }
}

template <typename Number>
void Forest::run_block(const std::vector<Step<Number>>& steps, const Number* x, int64_t width,
                       double* out, int64_t first, int64_t last) const {
  if (missing_) {
    run_rows<Number, true>(steps, x, width, out, first, last);
  } else {
    run_rows<Number, false>(steps, x, width, out, first, last);
  }
}

torch::Tensor Forest::run(const torch::Tensor& x) const {
  const double start = aggregate_ == Aggregate::kMin   ? kInfinity
                       : aggregate_ == Aggregate::kMax ? -kInfinity
                                                       : 0;
  torch::Tensor out = torch::full({x.size(0), targets_}, start, torch::kDouble);
  double* to = out.data_ptr<double>();
  const bool single = x.scalar_type() == torch::kFloat;
  at::parallel_for(0, x.size(0), kLeastShare, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; row += kBlock) {
      const int64_t end = std::min(row + kBlock, last);
      if (single) {
        run_block(float_steps_, x.data_ptr<float>(), x.size(1), to, row, end);
      } else {
        run_block(steps_, x.data_ptr<double>(), x.size(1), to, row, end);
      }
    }
  });
  if (start != 0) out = out.masked_fill(out == start, 0);  // nobody voted
  if (aggregate_ == Aggregate::kAverage && !roots_.empty()) {
    out = out / static_cast<double>(roots_.size());
  }
  return out;
}

}  // namespace fcp
