// Adaptive prediction sets: labels from the most probable one on, until enough is together; and
// their regularised form, RAPS, which makes far labels dear.
//
//   p            = softmax(logits / temperature), in double precision; o_k: rank of label k
//   score(v, k)  = Σ_{j: o_j < o_k} p_j + u p_k + λ max(0, o_k − k_reg)      (aps: λ = 0)
//                  and 0 for the network's answer (labels.h), unless sets may be empty
//   region(v, r) = all labels with score at most r: those up to some rank
//
// u = 1, or a number in [0, 1) for each row where the score is randomised. It is then a hash of the
// bytes of the feature and of the seed, hence a fixed function of v: rows stay exchangeable, the
// law holds exactly, and the same row has the same set every time. As u is uniform, p_k true
// probabilities make the score of the truth uniform (of aps whose sets may be empty).
// Equal logits: the lower label comes first (labels.h).
//
// The score of one label is a sum over the labels before it and needs no sort; a set ranks the
// labels only as far as it goes.
//
// Cost: one forward, C exponentials per row. Reference: Romano, Sesia, Candès, Classification with
// Valid and Adaptive Coverage, 2020; Angelopoulos, Bates, Malik, Jordan, Uncertainty Sets for Image
// Classifiers using Conformal Prediction, 2021. Tested by tests/methods/scores/labels_test.cc and
// label_law_test.cc.
#pragma once

#include <memory>

#include "fcp/methods/scores/score.h"

namespace fcp {

struct ApsOptions {
  static constexpr char kName[] = "aps";

  double temperature = 1;  // of the softmax
  bool randomized = true;
  bool allow_empty = false;

  static std::vector<Option> rows();
  bool operator==(const ApsOptions&) const = default;
};

struct RapsOptions {
  static constexpr char kName[] = "raps";

  double temperature = 1;  // of the softmax
  bool randomized = true;
  double rank_weight = 0;  // λ
  int64_t rank_free = 0;   // k_reg
  bool allow_empty = false;
  bool operator==(const RapsOptions&) const = default;
};

std::unique_ptr<Score> make_score(const ApsOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head);
std::unique_ptr<Score> make_score(const RapsOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head);

// u of each row of features [N, …]: [N, 1] doubles.
torch::Tensor random_shares(const torch::Tensor& features, uint64_t seed);

}  // namespace fcp
