// Sorted adaptive prediction sets: of the probabilities the largest alone counts, and beyond it the
// rank, so that the long tail of small and unreliable probabilities is not looked at.
//
//   p            = softmax(logits / temperature), in double precision; o_k: rank of label k
//   score(v, k)  = u p_k                          where o_k = 1
//                = max p + λ (o_k − 2 + u)        elsewhere
//                  and 0 for the network's answer (labels.h), unless sets may be empty
//   region(v, r) = all labels with score at most r: those up to some rank
//
// u as in aps.h: 1, or a hash of the feature and the seed where the score is randomised.
//
// Cost: one forward, C exponentials per row; a set finds the labels of its last rank without a
// sort. Reference: Huang, Xi, Zhang, Yao, Qiu, Wei, Conformal Prediction for Deep Classifier via
// Label Ranking, ICML 2024. Tested by tests/methods/scores/labels_test.cc and label_law_test.cc.
#pragma once

#include <memory>

#include "fcp/methods/scores/score.h"

namespace fcp {

struct SapsOptions {
  static constexpr char kName[] = "saps";

  double temperature = 1;  // of the softmax
  bool randomized = true;
  double rank_weight = 0;  // λ
  bool allow_empty = false;
  bool operator==(const SapsOptions&) const = default;
};

std::unique_ptr<Score> make_score(const SapsOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head);

}  // namespace fcp
