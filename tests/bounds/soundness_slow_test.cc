// Millions of points on thousands of random heads.
#include "tests/bounds/soundness.h"

namespace fcp {
namespace {

TEST(SoundnessSlow, MillionsOfPoints) {
  torch::manual_seed(16);
  const SoundnessEffort effort = {60, 5, 1.0};
  int64_t points = 0;
  for (int round = 0; points < 3000000; ++round) {
    const int64_t width = 3 + round % 9;
    std::vector<int64_t> widths = {4, width, width + 2, 2};
    if (round % 3 == 0) widths.insert(widths.begin() + 1, width + 1);
    for (const NamedGraph& named : activated_heads(widths)) {
      points += check_soundness(named, 256, effort);
    }
    points += check_soundness({"residual", make_residual_network()}, 16, effort);
    points += check_soundness({"mixed", make_mixed_head()}, 16, effort);
    if (testing::Test::HasFailure()) break;
  }
  RecordProperty("points", static_cast<int>(points));
}

}  // namespace
}  // namespace fcp
