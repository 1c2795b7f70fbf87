// Scores spread over ranks for tests: many ties, both infinities, both zeros, empty ranks.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "fcp/base/random.h"
#include "fcp/base/special_numbers.h"
#include "fcp/distributed/selection.h"

namespace fcp {

struct SpreadScores {
  std::vector<std::vector<double>> by_rank;
  std::vector<double> all;  // rank after rank
};

inline double strange_score(Random& random) {
  switch (random.below(12)) {
    case 0:
      return kInfinity;
    case 1:
      return -kInfinity;
    case 2:
      return random.below(2) == 0 ? -0.0 : 0.0;
    case 3:
      return std::numeric_limits<double>::denorm_min();
    case 4:
      return (random.below(2) == 0 ? -1 : 1) * std::numeric_limits<double>::max();
    case 5:
    case 6:
      return static_cast<double>(random.below(4));
    default:
      return random.normal();
  }
}

// At least one score in all; of a kind per seed: strange, smooth, constant or nearly equal numbers.
inline SpreadScores spread_scores(Random& random, int ranks, size_t most_per_rank) {
  SpreadScores spread;
  spread.by_rank.resize(static_cast<size_t>(ranks));
  const uint64_t kind = random.below(4);
  const auto draw = [&] {
    return kind == 0   ? strange_score(random)
           : kind == 1 ? random.normal()
           : kind == 2 ? 2.5
                       : 1 + 1e-15 * static_cast<double>(random.below(50));
  };
  for (auto& scores : spread.by_rank) {
    if (random.below(3) != 0) scores.resize(random.below(most_per_rank + 1));
    for (double& score : scores) score = draw();
  }
  auto& one = spread.by_rank[random.below(spread.by_rank.size())];
  if (one.empty()) one.push_back(draw());
  for (const auto& scores : spread.by_rank) {
    spread.all.insert(spread.all.end(), scores.begin(), scores.end());
  }
  return spread;
}

// As calibration keeps scores.
inline std::vector<uint64_t> keys_of(const std::vector<double>& scores) {
  std::vector<uint64_t> keys;
  for (const double score : scores) keys.push_back(ordered_key(score));
  return keys;
}

// By nth_element; k from 1.
inline double kth_smallest(std::vector<double> scores, uint64_t k) {
  const auto kth = scores.begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::nth_element(scores.begin(), kth, scores.end());
  return *kth + 0.0;  // a zero is +0.0
}

}  // namespace fcp
