// What lac, aps and raps share: a score of labels that looks at the probabilities of one row at a
// time, which is then done with: nothing of the size [N, C] is made but the sets themselves.
//
//   p = softmax(logits / temperature), in double precision, by one sequence of operations per row
//
// Cost: C exponentials per row, and what the score adds. Tested by tests/scores/labels_test.cc and
// label_law_test.cc.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fcp/scores/labels.h"
#include "fcp/scores/softmax_row.h"

namespace fcp {

// An Error where the temperature is not positive.
void check_temperature(double temperature);

class ShareScore : public LabelScore {
 public:
  ShareScore(const ScoreOptions& options, const std::shared_ptr<const Network>& head)
      : LabelScore(options, head), temperature_(options.temperature) {}

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
