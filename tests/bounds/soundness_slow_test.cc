// Millions of points on thousands of random heads.
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "fcp/nn/runtime/device_waits.h"

#include "tests/bounds/operators.h"
#include "tests/bounds/soundness.h"
#include "tests/nn/transformer.h"

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

// A million for each operator that has planes, in balls from small to large.
TEST(SoundnessSlow, MillionPointsForEachSmoothOperator) {
  torch::manual_seed(19);
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const NamedGraph& named : smooth_cases()) {
    int64_t points = 0;
    for (const double radius : {0.01, 0.3, 3.0}) {
      points += check_soundness(named, 64, {.samples = 8, .radius = radius, .copies = 256});
    }
    EXPECT_GT(points, 1000000) << named.name;
    least = std::min(least, points);
    if (testing::Test::HasFailure()) break;
  }
  RecordProperty("points_for_each", static_cast<int>(least));
}

// What a walk does on a device (device_waits.h), for every operator.
TEST(SoundnessSlow, WalksThatAskForNoNumber) {
  torch::manual_seed(21);
  const NoReadingBack as_on_a_device;
  const SoundnessEffort effort = {.samples = 20, .searches = 3, .radius = 0.8};
  std::vector<NamedGraph> heads = activated_heads({5, 8, 7, 3});
  for (NamedGraph& each : smooth_cases()) heads.push_back(std::move(each));
  heads.push_back({"residual", make_residual_network()});
  heads.push_back({"mixed", make_mixed_head()});
  for (const NamedGraph& named : heads) check_soundness(named, 16, effort);
}

TEST(SoundnessSlow, BlocksOfTransformers) {
  torch::manual_seed(20);
  for (int round = 0; round < 6; ++round) {
    TransformerShape shape;
    shape.norm_first = round % 2 == 0;
    shape.masked = round % 3 == 0 ? -1e4 : 0;
    shape.one_operator = round % 2 == 1;
    const SoundnessEffort effort = {60, 4, round < 3 ? 0.05 : 1.0};
    check_soundness({concat("transformer ", round), make_transformer(shape)}, 24, effort);
  }
}

}  // namespace
}  // namespace fcp
