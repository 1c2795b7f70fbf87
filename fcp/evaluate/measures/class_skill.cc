#include "fcp/evaluate/measures/class_skill.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fcp {
namespace {

constexpr size_t kMostProbabilities = size_t{1} << 24;
constexpr double kLeastProbability = 1e-15;

}  // namespace

void ClassSkill::add(std::span<const float> log_probabilities, size_t label) {
  loss_ -= std::max(static_cast<double>(log_probabilities[label]), std::log(kLeastProbability));
  ++rows_;
  if (rows_ * classes_ > kMostProbabilities) {
    numbers_.clear();
    labels_.clear();
    return;
  }
  for (size_t c = 0; c < classes_; ++c) numbers_[c].push_back(log_probabilities[c]);
  labels_.push_back(static_cast<uint32_t>(label));
}

std::optional<double> ClassSkill::log_loss() const {
  if (rows_ == 0) return std::nullopt;
  return loss_ / static_cast<double>(rows_);
}

// By the sum of the ranks of the rows of the class, those of equal numbers shared.
std::optional<double> ClassSkill::auc(size_t label) const {
  const double own =
      static_cast<double>(std::count(labels_.begin(), labels_.end(), static_cast<uint32_t>(label)));
  const double others = static_cast<double>(labels_.size()) - own;
  if (own == 0 || others == 0) return std::nullopt;
  const std::vector<float>& numbers = numbers_[label];
  std::vector<size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return numbers[a] < numbers[b]; });
  double ranks = 0;
  for (size_t first = 0, last = 0; first < order.size(); first = last) {
    size_t hits = 0;
    for (; last < order.size() && numbers[order[last]] == numbers[order[first]]; ++last) {
      hits += labels_[order[last]] == label;
    }
    const double middle = static_cast<double>(first + last + 1) / 2;
    ranks += middle * static_cast<double>(hits);
  }
  return (ranks - own * (own + 1) / 2) / (own * others);
}

}  // namespace fcp
