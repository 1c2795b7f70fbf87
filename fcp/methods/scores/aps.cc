#include "fcp/methods/scores/aps.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "fcp/base/hash.h"
#include "fcp/base/random.h"
#include "fcp/methods/method.h"
#include "fcp/methods/scores/labels.h"

namespace fcp {
namespace {

// Probabilities in units of 2^-62, so that their sums are exact and the same in any order: the
// score of one label needs no sort, and is the one that the sorted row gives, to the last bit.
constexpr double kUnits = 0x1p62;

int64_t units_of(double share) { return static_cast<int64_t>(share * kUnits); }
double share_of(int64_t units) { return static_cast<double>(units) / kUnits; }

class Aps : public ShareScore {
 public:
  Aps(const ApsOptions& options, const SharedOptions& shared,
      const std::shared_ptr<const Network>& head, const RankTerm& term)
      : ShareScore(head, shared.output, options.temperature, options.allow_empty),
        randomized_(options.randomized),
        seed_(shared.seed),
        term_(term) {}

 protected:
  torch::Tensor randoms(const torch::Tensor& features) const override {
    return randomized_ ? random_shares(features, seed_) : torch::Tensor();
  }

  double score_of(const Row& row, int64_t label) const override {
    const auto own = static_cast<size_t>(label);
    const float logit = row.logits[own];
    int64_t above = 0, rank = 1;
    const auto count = [&](size_t k, bool before) {
      above += before ? units_of(row.shares[k]) : 0;
      rank += before;
    };
    for (size_t k = 0; k < own; ++k) count(k, row.logits[k] >= logit);
    for (size_t k = own + 1; k < row.logits.size(); ++k) count(k, row.logits[k] > logit);
    return score_at(row, own, above, total_of(row), rank);
  }

  void scores_of(const Row& row, double* scores) const override {
    begin_ranks(row.logits, row.room);
    std::sort(row.room.begin(), row.room.end());
    const int64_t total = total_of(row);
    int64_t above = 0, rank = 1;
    for (const uint64_t key : row.room) {
      const size_t label = ranked_label(key);
      scores[label] = score_at(row, label, above, total, rank++);
      above += units_of(row.shares[label]);
    }
  }

  // Scores ascend with the rank (score_at), so that members are the first labels. As many are
  // ranked as are needed: a few more than the last row had, then four times as many.
  void find_members(const Row& row, double radius, bool* members) const override {
    begin_ranks(row.logits, row.room);
    const auto at = [&](size_t place) { return row.room.begin() + static_cast<ptrdiff_t>(place); };
    const size_t classes = row.room.size();
    const int64_t total = total_of(row);
    int64_t above = 0;
    const size_t at_first = 16 + row.expected + row.expected / 4;
    row.expected = classes;
    for (size_t place = 0, ranked = 0; place < classes; ++place) {
      if (place == ranked) {
        ranked = std::min(classes, ranked == 0 ? at_first : 4 * ranked);
        if (ranked < classes) std::nth_element(at(place), at(ranked), row.room.end());
        std::sort(at(place), at(ranked));
      }
      const size_t label = ranked_label(row.room[place]);
      const auto rank = static_cast<int64_t>(place + 1);
      if (!(score_at(row, label, above, total, rank) <= radius)) {
        row.expected = place;
        return;
      }
      members[label] = true;
      above += units_of(row.shares[label]);
    }
  }

 private:
  int64_t total_of(const Row& row) const {
    int64_t total = 0;
    if (randomized_) return total;  // not looked at
    for (const double share : row.shares) total += units_of(share);
    return total;
  }

  // above: of the labels before this one. Rounded once before the rank term, hence ascending where
  // `above` is: all but what comes after, so that the last label has 1 exactly; or with a share of
  // its own probability, which is no more than all of it.
  double score_at(const Row& row, size_t label, int64_t above, int64_t total, int64_t rank) const {
    const int64_t own = units_of(row.shares[label]);
    const double plain = randomized_ ? share_of(above + drawn_part(row.random, own))
                                     : 1 - share_of(total - above - own);
    return plain + term_.of(rank);
  }

  static int64_t drawn_part(double random, int64_t own) {
    return std::min(own, static_cast<int64_t>(random * static_cast<double>(own)));
  }

  bool randomized_;
  uint64_t seed_;
  RankTerm term_;
};

}  // namespace

torch::Tensor random_shares(const torch::Tensor& features, uint64_t seed) {
  const int64_t rows = features.size(0);
  const torch::Tensor plain =
      features.to(torch::kCPU, torch::kFloat).reshape({rows, -1}).contiguous();
  const auto width = static_cast<size_t>(plain.size(1));
  std::vector<uint64_t> hashes(static_cast<size_t>(rows));
  row_hashes(plain.data_ptr<float>(), hashes.size(), width, seed, hashes.data());
  torch::Tensor shares = torch::empty({rows, 1}, torch::kDouble);
  for (int64_t row = 0; row < rows; ++row) {
    shares.data_ptr<double>()[row] = Random(hashes[static_cast<size_t>(row)]).uniform();
  }
  return shares;
}

std::vector<Option> ApsOptions::rows() {
  return {score_option(
      field::randomized,
      {.name = "randomized",
       .help = "Do not randomise labels at the edge of a set: sets are larger and cover "
               "more",
       .after = "double_log"})};
}

std::unique_ptr<Score> make_score(const ApsOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head) {
  return std::make_unique<Aps>(options, shared, head, RankTerm{});
}

std::unique_ptr<Score> make_score(const RapsOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head) {
  const RankTerm term = rank_term(options.rank_weight, options.rank_free, RapsOptions::kName);
  return std::make_unique<Aps>(ApsOptions{.temperature = options.temperature,
                                          .randomized = options.randomized,
                                          .allow_empty = options.allow_empty},
                               shared, head, term);
}

}  // namespace fcp
