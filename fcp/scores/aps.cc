#include "fcp/scores/aps.h"

#include <tuple>

#include "fcp/base/random.h"
#include "fcp/base/row_hash.h"
#include "fcp/scores/labels.h"
#include "fcp/scores/lac.h"

namespace fcp {
namespace {

class Aps : public LabelScore {
 public:
  Aps(const ScoreOptions& options, const std::shared_ptr<const Network>& head, const RankTerm& term)
      : LabelScore(options, head),
        temperature_(options.temperature),
        randomized_(options.randomized),
        seed_(options.seed),
        term_(term) {}

  using LabelScore::label_scores;
  torch::Tensor label_scores(const torch::Tensor& features,
                             const torch::Tensor& logits) const override {
    const torch::Tensor order = std::get<1>(torch::sort(logits, /*stable=*/true, 1, true));
    const torch::Tensor sorted = probabilities(logits, temperature_).gather(1, order);
    const int64_t last = classes() - 1;
    const torch::Tensor none = torch::zeros({logits.size(0), 1}, sorted.options());
    torch::Tensor scores;
    if (randomized_) {
      const torch::Tensor above = torch::cat({none, sorted.narrow(1, 0, last).cumsum(1)}, 1);
      scores = above + random_shares(features, seed_) * sorted;
    } else {
      // All but what comes after, so that the last label has 1 exactly, whatever was rounded.
      const torch::Tensor after = sorted.narrow(1, 1, last).flip(1).cumsum(1).flip(1);
      scores = 1 - torch::cat({after, none}, 1);
    }
    const torch::Tensor ranks = torch::arange(1, classes() + 1, torch::kLong);
    scores = scores + rank_terms(ranks, term_);
    return torch::empty_like(scores).scatter_(1, order, scores);
  }

 private:
  double temperature_;
  bool randomized_;
  uint64_t seed_;
  RankTerm term_;
};

}  // namespace

torch::Tensor random_shares(const torch::Tensor& features, uint64_t seed) {
  const int64_t rows = features.size(0);
  const torch::Tensor plain =
      features.to(torch::kCPU, torch::kFloat).reshape({rows, -1}).contiguous();
  const float* numbers = plain.data_ptr<float>();
  torch::Tensor shares = torch::empty({rows, 1}, torch::kDouble);
  for (int64_t row = 0; row < rows; ++row) {
    const uint64_t hash =
        row_hash(numbers + row * plain.size(1), static_cast<size_t>(plain.size(1)), seed);
    shares.data_ptr<double>()[row] = Random(hash).uniform();
  }
  return shares;
}

std::unique_ptr<Score> make_aps(const ScoreOptions& options, std::shared_ptr<const Network> head) {
  return std::make_unique<Aps>(options, head, RankTerm{});
}

std::unique_ptr<Score> make_raps(const ScoreOptions& options, std::shared_ptr<const Network> head) {
  return std::make_unique<Aps>(options, head, rank_term(options));
}

}  // namespace fcp
