#include "fcp/methods/scores/saps.h"

#include <algorithm>
#include <cstddef>

#include "fcp/methods/scores/aps.h"
#include "fcp/methods/scores/labels.h"

namespace fcp {
namespace {

class Saps : public ShareScore {
 public:
  Saps(const SapsOptions& options, const SharedOptions& shared,
       const std::shared_ptr<const Network>& head)
      : ShareScore(head, shared.output, options.temperature, options.allow_empty),
        randomized_(options.randomized),
        seed_(shared.seed),
        weight_(rank_term(options.rank_weight, 1, SapsOptions::kName).weight) {}

 protected:
  torch::Tensor randoms(const torch::Tensor& features) const override {
    return randomized_ ? random_shares(features, seed_) : torch::Tensor();
  }

  double score_of(const Row& row, int64_t label) const override {
    return score_at(row, largest_share(row), rank_of(row.logits, static_cast<size_t>(label)));
  }

  void scores_of(const Row& row, double* scores) const override {
    begin_ranks(row.logits, row.room);
    std::sort(row.room.begin(), row.room.end());
    const double largest = largest_share(row);
    int64_t rank = 1;
    for (const uint64_t key : row.room) scores[ranked_label(key)] = score_at(row, largest, rank++);
  }

  // Scores ascend with the rank: the last rank within the radius is found by halving.
  void find_members(const Row& row, double radius, bool* members) const override {
    const double largest = largest_share(row);
    size_t in = 0, out = row.logits.size() + 1;  // the first ranks that are in and not in
    while (out - in > 1) {
      const size_t middle = in + (out - in) / 2;
      (score_at(row, largest, static_cast<int64_t>(middle)) <= radius ? in : out) = middle;
    }
    if (in == 0) return;
    begin_ranks(row.logits, row.room);
    const auto last = row.room.begin() + static_cast<std::ptrdiff_t>(in - 1);
    std::nth_element(row.room.begin(), last, row.room.end());
    for (auto key = row.room.begin(); key <= last; ++key) members[ranked_label(*key)] = true;
  }

 private:
  static double largest_share(const Row& row) {
    return row.shares[static_cast<size_t>(first_largest(row.logits))];
  }

  double score_at(const Row& row, double largest, int64_t rank) const {
    const double u = randomized_ ? row.random : 1;
    if (rank == 1) return u * largest;
    return largest + weight_ * (static_cast<double>(rank - 2) + u);
  }

  bool randomized_;
  uint64_t seed_;
  double weight_;
};

}  // namespace

std::unique_ptr<Score> make_score(const SapsOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head) {
  return std::make_unique<Saps>(options, shared, head);
}

}  // namespace fcp
