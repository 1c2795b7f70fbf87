// What every score of labels shares.
//
// The truth of a row is its label, 0 … C − 1, or infinite where it is none of the C classes: such a
// truth has the score ∞ and is in no set, not even in that of all labels. The network answers C
// logits. A score of labels is one function, the scores of all labels of a row: `score` picks the
// one of the truth, and the region is all labels whose score is at most the radius, so that the law
// holds by construction.
//
// The network's own answer has the score 0, which is the least there is: it is in every set, no set
// is empty, and a set of one label is the answer. Calibration rows are scored alike, so that
// coverage stays exact: where the answer is right less often than asked for, sets are no larger
// than they need be; where it is right more often, the radius is 0, every set is the answer, and
// coverage is its accuracy. With `allow_empty` the answer is scored as any other label, and sets
// that are empty bring coverage down to what was asked for.
//
// Logits are what stands before a Softmax or LogSoftmax at the end of the network, where there is
// one, or the logarithms of probabilities (fcp/nn/graph/output_kind.h). Labels are ranked by their
// logits, the largest first and, of equal logits, the lower label first; the network's own answer
// is the label of rank 1.
//
// Tested by tests/methods/scores/labels_test.cc and label_law_test.cc.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "fcp/methods/scores/score.h"
#include "fcp/nn/runtime/network.h"

namespace fcp {

// The softmax of one row of logits in double precision:
//
//   p_k = exp(z_k / T − m) / Σ_j exp(z_j / T − m),  m = max_j z_j / T
//
// Three passes over the row, in vectors: the largest logit, the exponentials with their sum, the
// quotients. A number goes through the same operations wherever it stands; the sum is taken in an
// order that the number of logits and the processor's instructions decide. Shares below 1e-307 of
// the largest are 0. Cost: about 1.5 ns per logit. Tested by
// tests/methods/scores/labels_test.cc.

// The shares of softmax(logits / temperature). False where a logit is NaN, or infinite so that
// there is no softmax: the shares are then of no use.
bool softmax_row(std::span<const float> logits, double temperature, double* shares);

// The place of the largest logit, the first of equal ones; NaN is none, unless all are.
int64_t first_largest(std::span<const float> logits);

// The part of a head that makes its logits: one output of [N, C] numbers.
struct LogitHead {
  std::shared_ptr<const Network> network;
  int64_t classes = 0;
};

// An Error where the output does not have at least two classes or does not say how many.
LogitHead logit_head(const std::shared_ptr<const Network>& head, const std::string& output);

// features [N, …] → [N, C] float32 on the CPU.
torch::Tensor logits_of(const LogitHead& head, const torch::Tensor& features);

// In the place of a label: the truth is none of the classes.
inline constexpr int64_t kForeignLabel = -2;

// truth [N, 1] → [N] int64 on the CPU, −1 where the truth is NaN and kForeignLabel where it is
// infinite. An Error names the row of what is not a label.
torch::Tensor labels_of(const torch::Tensor& truth, int64_t rows, int64_t classes);

// radius [N, 1] or [N, C] as doubles on the CPU; an Error where it has another shape.
torch::Tensor label_radii(const torch::Tensor& radius, int64_t rows, int64_t classes);

// scores [N] as plain numbers, NaN where the label is −1 or the row's logits [N, C] have a NaN, ∞
// where it is foreign.
std::vector<double> label_plain_scores(const torch::Tensor& scores, const torch::Tensor& labels,
                                       const torch::Tensor& logits);

// The label the network answers, [N, 1]: that of the largest logit; −1 where a logit is NaN.
torch::Tensor answers_of(const torch::Tensor& logits);

// The rank of every label, [N, C] int64 from 1.
torch::Tensor label_ranks(const torch::Tensor& logits);

// weight · max(0, rank − free), which RAPS adds to a score.
struct RankTerm {
  double weight = 0;
  int64_t free = 0;

  double of(int64_t rank) const {
    return rank > free ? weight * static_cast<double>(rank - free) : 0.0;
  }
};
// The term of a score's options; an Error names `score` where a number is negative.
RankTerm rank_term(double weight, int64_t free, const char* score);
torch::Tensor rank_terms(const torch::Tensor& ranks, const RankTerm& term);  // [N, C] doubles

class LabelScore : public Score {
 public:
  // `output` holds the logits; empty: the only one.
  LabelScore(const std::shared_ptr<const Network>& head, const std::string& output,
             bool allow_empty)
      : LabelScore(logit_head(head, output), allow_empty) {}

  LabelScore(LogitHead head, bool allow_empty)
      : head_(std::move(head)), allow_empty_(allow_empty) {}

  int64_t classes() const override { return head_.classes; }
  const LogitHead& head() const { return head_; }

  // features [N, …] and their logits [N, C] → the score of every label, [N, C] doubles on the CPU.
  torch::Tensor label_scores(const torch::Tensor& features, const torch::Tensor& logits) const {
    return with_answer(plain_label_scores(features, logits), logits);
  }
  torch::Tensor label_scores(const torch::Tensor& features) const {
    return label_scores(features, logits_of(head_, features));
  }

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override;
  using Score::region;
  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override;

  bool allow_empty() const { return allow_empty_; }

 protected:
  static constexpr double kAnswerScore = 0;

  // The scores as if sets may be empty.
  virtual torch::Tensor plain_label_scores(const torch::Tensor& features,
                                           const torch::Tensor& logits) const = 0;

  // With the score of the network's answer, unless sets may be empty: of all labels [N, C], of one
  // label of each row [N], and as members [N, C] of the sets of radii [N, 1] or [N, C].
  torch::Tensor with_answer(const torch::Tensor& scores, const torch::Tensor& logits) const;
  torch::Tensor with_answer(const torch::Tensor& scores, const torch::Tensor& labels,
                            const torch::Tensor& logits) const;
  torch::Tensor members_with_answer(const torch::Tensor& members, const torch::Tensor& logits,
                                    const torch::Tensor& radii) const;

 private:
  LogitHead head_;
  bool allow_empty_;
};

// What lac, aps and raps share: a score of labels that looks at the probabilities of one row at a
// time, which is then done with: nothing of the size [N, C] is made but the sets themselves.
//
//   p = softmax(logits / temperature), in double precision, by one sequence of operations per row
//
// Cost: C exponentials per row, and what the score adds. Tested by
// tests/methods/scores/labels_test.cc and label_law_test.cc.

// An Error where the temperature is not positive.
void check_temperature(double temperature);

class ShareScore : public LabelScore {
 public:
  ShareScore(const std::shared_ptr<const Network>& head, const std::string& output,
             double temperature, bool allow_empty)
      : LabelScore(head, output, allow_empty), temperature_(temperature) {}

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override;
  using Score::region;
  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override;

 protected:
  torch::Tensor plain_label_scores(const torch::Tensor& features,
                                   const torch::Tensor& logits) const override;

  struct Row {
    std::span<const float> logits;
    std::span<const double> shares;  // p
    double random;                   // of `randoms`; 0 where there are none
    std::span<double> numbers;       // of C: room for scores,
    std::vector<uint64_t>& room;     // and for whatever the score needs;
    size_t& expected;                // how many labels the last set of this thread had
  };

  // A number in [0, 1) for each row, [N, 1] doubles on the CPU; undefined: not wanted.
  virtual torch::Tensor randoms(const torch::Tensor& /*features*/) const { return {}; }

  virtual double score_of(const Row& row, int64_t label) const = 0;
  virtual void scores_of(const Row& row, double* scores) const = 0;
  // Sets the labels with score_of(row, label) ≤ radius; all are false before.
  virtual void find_members(const Row& row, double radius, bool* members) const = 0;

 private:
  template <typename Work>
  void each_row(const torch::Tensor& features, const torch::Tensor& logits, const Work& work) const;

  double temperature_;
};

// Labels by their logits, the largest first and, of equal ones, the lower label first, as keys that
// sort by themselves: a score that needs only the first few ranks sorts no more than those.
// Tested by tests/methods/scores/labels_test.cc and label_law_test.cc.

// Ascending keys are descending logits; no logit is NaN.
inline uint64_t rank_key(float logit, size_t label) {
  constexpr uint32_t kSignBit = uint32_t{1} << 31;
  const auto bits = std::bit_cast<uint32_t>(logit + 0.0f);  // −0 is 0
  const uint32_t ascending = (bits & kSignBit) != 0 ? ~bits : bits | kSignBit;
  return uint64_t{~ascending} << 32 | label;
}

inline size_t ranked_label(uint64_t key) { return key & 0xffffffffu; }

// The keys of all labels, not yet in order.
inline void begin_ranks(std::span<const float> logits, std::vector<uint64_t>& keys) {
  keys.resize(logits.size());
  for (size_t k = 0; k < keys.size(); ++k) keys[k] = rank_key(logits[k], k);
}

// The rank of one label, from 1: no sort is needed.
inline int64_t rank_of(std::span<const float> logits, size_t label) {
  const float own = logits[label];
  int64_t rank = 1;
  for (size_t k = 0; k < logits.size(); ++k) {
    rank += k < label ? logits[k] >= own : logits[k] > own;
  }
  return rank;
}

}  // namespace fcp
