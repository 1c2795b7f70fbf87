#include "fcp/scores/lac.h"

#include <utility>

#include "fcp/scores/pixel_sets.h"
#include "fcp/scores/share_score.h"

namespace fcp {
namespace {

class Lac : public ShareScore {
 public:
  using ShareScore::ShareScore;

 protected:
  double score_of(const Row& row, int64_t label) const override {
    return 1 - row.shares[static_cast<size_t>(label)];
  }

  void scores_of(const Row& row, double* scores) const override {
    for (size_t k = 0; k < row.shares.size(); ++k) scores[k] = 1 - row.shares[k];
  }

  void find_members(const Row& row, double radius, bool* members) const override {
    for (size_t k = 0; k < row.shares.size(); ++k) members[k] = 1 - row.shares[k] <= radius;
  }
};

}  // namespace

std::unique_ptr<Score> make_lac(const ScoreOptions& options, std::shared_ptr<const Network> head) {
  if (options.pixels != 0) return make_pixel_sets(options, std::move(head));
  return std::make_unique<Lac>(options, head);
}

}  // namespace fcp
