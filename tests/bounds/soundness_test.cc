#include "tests/bounds/soundness.h"

namespace fcp {
namespace {

TEST(Soundness, EveryActivation) {
  torch::manual_seed(13);
  const SoundnessEffort effort = {.samples = 8, .searches = 2};
  for (const NamedGraph& named : activated_heads({5, 8, 7, 3})) check_soundness(named, 12, effort);
}

TEST(Soundness, ShallowAndDeepPerceptrons) {
  torch::manual_seed(14);
  for (int64_t depth = 1; depth <= 5; ++depth) {
    std::vector<int64_t> widths(static_cast<size_t>(depth), 10);
    widths.insert(widths.begin(), 6);
    widths.push_back(2);
    check_soundness({concat("depth ", depth), make_mlp(widths)}, 16, {});
  }
}

TEST(Soundness, ConvolutionalAndResidualHeads) {
  torch::manual_seed(15);
  for (int i = 0; i < 2; ++i) {
    check_soundness({"residual", make_residual_network()}, 4, {});
    check_soundness({"mixed", make_mixed_head()}, 4, {});
  }
}

}  // namespace
}  // namespace fcp
