// What every score of labels shares.
//
// The truth of a row is its label, 0 … C − 1, or infinite where it is none of the C classes: such a
// truth has the score ∞ and is in no set, not even in that of all labels. The network answers C
// logits. A score of labels is one function, the scores of all labels of a row: `score` picks the
// one of the truth, and the region is all labels whose score is at most the radius, so that the law
// holds by construction.
//
// Logits are what stands before a Softmax or LogSoftmax at the end of the network, where there is
// one, or the logarithms of probabilities (fcp/nn/graph/output_kind.h). Labels are ranked by their
// logits, the largest first and, of equal logits, the lower label first; the network's own answer
// is the label of rank 1.
//
// Tested by tests/methods/scores/labels_test.cc and label_law_test.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "fcp/methods/scores/score.h"
#include "fcp/methods/scores/softmax_row.h"
#include "fcp/nn/runtime/network.h"

namespace fcp {

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
  LabelScore(const std::shared_ptr<const Network>& head, const std::string& output)
      : head_(logit_head(head, output)) {}

  explicit LabelScore(LogitHead head) : head_(std::move(head)) {}

  int64_t classes() const override { return head_.classes; }
  const LogitHead& head() const { return head_; }

  // features [N, …] and their logits [N, C] → the score of every label, [N, C] doubles on the CPU.
  virtual torch::Tensor label_scores(const torch::Tensor& features,
                                     const torch::Tensor& logits) const = 0;
  torch::Tensor label_scores(const torch::Tensor& features) const {
    return label_scores(features, logits_of(head_, features));
  }

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override;
  using Score::region;
  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override;

 private:
  LogitHead head_;
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
             double temperature)
      : LabelScore(head, output), temperature_(temperature) {}

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override;
  using Score::region;
  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override;
  using LabelScore::label_scores;
  torch::Tensor label_scores(const torch::Tensor& features,
                             const torch::Tensor& logits) const override;

 protected:
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

}  // namespace fcp
