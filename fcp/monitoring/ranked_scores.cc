#include "fcp/monitoring/ranked_scores.h"

#include <algorithm>
#include <cmath>

#include "fcp/base/error.h"

namespace fcp {
namespace {

constexpr size_t kLargestBlock = 1024;

}  // namespace

RankedScores::RankedScores(std::vector<double> scores) : size_(scores.size()) {
  for (size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) fail("score ", i, " (from 0) is NaN, expected a number");
  }
  std::sort(scores.begin(), scores.end());
  constexpr size_t kFirst = kLargestBlock / 2;  // leaves room for what comes
  for (size_t at = 0; at < scores.size(); at += kFirst) {
    const auto first = scores.begin() + static_cast<std::ptrdiff_t>(at);
    const auto count = static_cast<std::ptrdiff_t>(std::min(kFirst, scores.size() - at));
    blocks_.emplace_back(first, first + count);
  }
}

size_t RankedScores::block_of(double score) const {
  const auto found =
      std::lower_bound(blocks_.begin(), blocks_.end(), score,
                       [](const auto& block, double value) { return block.back() < value; });
  return static_cast<size_t>(found - blocks_.begin());
}

void RankedScores::insert(double score) {
  if (std::isnan(score)) fail("a score is NaN, expected a number");
  ++size_;
  if (blocks_.empty()) {
    blocks_.push_back({score});
    return;
  }
  size_t at = std::min(block_of(score), blocks_.size() - 1);
  if (blocks_[at].size() == kLargestBlock) {
    split(at);
    if (blocks_[at].back() < score) ++at;
  }
  std::vector<double>& block = blocks_[at];
  block.insert(std::lower_bound(block.begin(), block.end(), score), score);
}

void RankedScores::split(size_t at) {
  std::vector<double>& block = blocks_[at];
  const auto middle = block.begin() + kLargestBlock / 2;
  std::vector<double> upper(middle, block.end());
  block.erase(middle, block.end());
  blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(at) + 1, std::move(upper));
}

void RankedScores::join_with_next(size_t at) {
  if (at + 1 >= blocks_.size()) return;
  std::vector<double>& block = blocks_[at];
  const std::vector<double>& next = blocks_[at + 1];
  if (block.size() + next.size() > kLargestBlock / 2) return;
  block.insert(block.end(), next.begin(), next.end());
  blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(at) + 1);
}

void RankedScores::erase(double score) {
  const size_t at = block_of(score);
  if (at == blocks_.size()) fail("the score ", score, " is not there to be taken away");
  std::vector<double>& block = blocks_[at];
  const auto found = std::lower_bound(block.begin(), block.end(), score);
  if (*found != score) fail("the score ", score, " is not there to be taken away");
  block.erase(found);
  --size_;
  if (block.empty()) {
    blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(at));
    return;
  }
  join_with_next(at);
  if (at > 0) join_with_next(at - 1);
}

size_t RankedScores::count_below(double score) const {
  const size_t at = block_of(score);
  size_t count = 0;
  for (size_t i = 0; i < at; ++i) count += blocks_[i].size();
  if (at == blocks_.size()) return count;
  const std::vector<double>& block = blocks_[at];
  return count +
         static_cast<size_t>(std::lower_bound(block.begin(), block.end(), score) - block.begin());
}

size_t RankedScores::count_at_most(double score) const {
  size_t count = 0;
  for (const std::vector<double>& block : blocks_) {
    if (block.back() <= score) {
      count += block.size();
      continue;
    }
    return count +
           static_cast<size_t>(std::upper_bound(block.begin(), block.end(), score) - block.begin());
  }
  return count;
}

std::vector<double> RankedScores::sorted() const {
  std::vector<double> all;
  all.reserve(size_);
  for (const std::vector<double>& block : blocks_)
    all.insert(all.end(), block.begin(), block.end());
  return all;
}

double RankedScores::kth(size_t k) const {
  for (const std::vector<double>& block : blocks_) {
    if (k < block.size()) return block[k];
    k -= block.size();
  }
  fail("there are ", size_, " scores, too few for the one asked for");
}

}  // namespace fcp
