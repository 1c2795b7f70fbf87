#include "fcp/methods/calibrations/kept_levels.h"

#include <algorithm>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/predictor/artifact.h"

#include "tests/nn/graphs.h"
#include "tests/support/files.h"

namespace fcp {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr double kNoEnd = std::numeric_limits<double>::infinity();

// Numbers with ties and both infinities, each side ascending.
CalibrationScores all_scores(Random& random, size_t rows, int64_t sides) {
  CalibrationScores made;
  made.sides = sides;
  made.scores.resize(rows * static_cast<size_t>(sides));
  for (int64_t side = 0; side < sides; ++side) {
    std::vector<double> scores(rows);
    for (double& score : scores) {
      const uint64_t kind = random.below(12);
      score = kind == 0   ? kNoEnd
              : kind == 1 ? -kNoEnd
              : kind < 6  ? static_cast<double>(random.below(4))
                          : random.normal();
    }
    std::sort(scores.begin(), scores.end());
    for (size_t i = 0; i < rows; ++i) {
      made.scores[i * static_cast<size_t>(sides) + static_cast<size_t>(side)] = scores[i];
    }
  }
  return made;
}

// Of all scores, those of the ranks that the levels need.
CalibrationScores thinned(const CalibrationScores& all, const std::vector<Level>& levels,
                          bool paper) {
  CalibrationScores some;
  some.sides = all.sides;
  some.levels = levels;
  some.total = all.count();
  for (const uint64_t k : SideRanks{all.count(), all.sides, paper}.ranks(levels)) {
    const auto first = all.scores.begin() + static_cast<std::ptrdiff_t>(k - 1) * all.sides;
    some.scores.insert(some.scores.end(), first, first + all.sides);
  }
  return some;
}

std::vector<Level> some_levels(Random& random) {
  std::vector<Level> levels;
  for (uint64_t thousandths = 1 + random.below(300); thousandths < 1000;
       thousandths += 1 + random.below(300)) {
    levels.emplace_back(static_cast<double>(thousandths) / 1000);
  }
  return levels;
}

// The radii are those of all scores, whatever these are and however many.
TEST(KeptLevels, RadiiAreThoseOfAllScores) {
  Random random(5);
  size_t infinite = 0;
  for (int repeat = 0; repeat < 400; ++repeat) {
    CalibrationArtifact all;
    all.method.calibration.paper = random.below(3) == 0;
    all.rows = all_scores(random, 1 + random.below(60), 1 + static_cast<int64_t>(random.below(2)));
    CalibrationArtifact some = all;
    some.rows = thinned(all.rows, some_levels(random), all.method.calibration.paper);
    ASSERT_EQ(some.rows.count(), all.rows.count());
    const TestInputs rows{torch::zeros({3, 1}), {}, {}};
    for (const Level& level : some.rows.levels) {
      ASSERT_EQ(some.radius(level), all.radius(level)) << level.text();
      const auto radii = [&](const CalibrationArtifact& one) {
        return make_calibration(one.method.calibration, one.rows)->radii(rows, level);
      };
      ASSERT_TRUE(torch::equal(radii(some), radii(all))) << level.text();
      infinite += some.radius(level)[0] == kNoEnd ? 1 : 0;
    }
  }
  EXPECT_GT(infinite, 50u);
}

// ⌈0.9 · 20⌉ = 18, ⌈0.95 · 20⌉ = 19, ⌈0.8 · 20⌉ = 16; of two sides at half of alpha.
TEST(KeptLevels, RanksByHand) {
  const std::vector<Level> levels = {Level(0.01), Level(0.05), Level(0.1), Level(0.2)};
  EXPECT_THAT(SideRanks{.rows = 19}.ranks(levels), ElementsAre(16, 18, 19));
  EXPECT_THAT((SideRanks{.rows = 19, .sides = 2}.ranks(levels)), ElementsAre(18, 19));
  // Of the paper: alpha for each side, and the largest score instead of an infinite radius.
  EXPECT_THAT((SideRanks{19, 2, true}.ranks(levels)), ElementsAre(16, 18, 19));
  EXPECT_EQ((SideRanks{19, 2, true}.rank(Level(0.01))), 19u);
  EXPECT_EQ((SideRanks{.rows = 19}.rank(Level(0.01))), 20u);
  EXPECT_THAT(SideRanks{.rows = 3}.ranks(levels), testing::IsEmpty());
}

CalibrationArtifact example() {
  Random random(6);
  CalibrationArtifact artifact;
  artifact.network = make_mlp({3, 4, 2});
  artifact.method.cut = "h1";
  artifact.rows = thinned(all_scores(random, 19, 1), {Level(0.05), Level::parse("0.10")}, false);
  artifact.baseline = {0.5, 0.75};
  return artifact;
}

TEST(KeptLevels, OtherLevelsAndPValuesAreRefused) {
  const CalibrationArtifact artifact = example();
  EXPECT_EQ(artifact.radius(Level(0.1)).size(), 1u);
  EXPECT_THAT([&] { artifact.radius(Level(0.2)); },
              ThrowsMessage<Error>("the calibration keeps the radii for levels 0.05, 0.10 alone "
                                   "(calibrate --levels); found alpha 0.2"));
  const auto split = make_calibration(artifact.method.calibration, artifact.rows);
  const TestInputs rows{torch::zeros({1, 1}), {}, {}};
  EXPECT_THAT([&] { split->radii(rows, Level(0.2)); },
              ThrowsMessage<Error>(HasSubstr("alone (calibrate --levels); found alpha 0.2")));
  EXPECT_THAT([&] { split->p_values(rows, std::vector<double>{1}); },
              ThrowsMessage<Error>(HasSubstr("a p-value needs all scores")));
  CalibrationOptions grouped("grouped");
  EXPECT_THAT([&] { make_calibration(grouped, artifact.rows); },
              ThrowsMessage<Error>("levels are kept by split calibration alone"));
  EXPECT_EQ(missing_level({}, Level(0.2)), std::nullopt);
}

TEST(KeptLevels, ComeBackFromTheirFile) {
  const Folder folder;
  const CalibrationArtifact before = example();
  write_artifact(before, folder.path("c.onnx"));
  const CalibrationArtifact after = read_artifact(folder.path("c.onnx"));
  EXPECT_EQ(after.rows.count(), 19u);
  EXPECT_EQ(after.rows.scores, before.rows.scores);
  EXPECT_EQ(after.rows.levels, before.rows.levels);
  EXPECT_EQ(after.baseline, before.baseline);
  EXPECT_EQ(after.radius(Level(0.05)), before.radius(Level(0.05)));
  EXPECT_EQ(serialize_onnx(artifact_graph(after)), read_file(folder.path("c.onnx")));
  // Nothing of it looks like the older format, in which these few would be all scores.
  EXPECT_THAT(artifact_graph(before).metadata.at("fcp.calibration"), HasSubstr("\"format\":3"));

  CalibrationArtifact none = before;  // so few rows that no level has a finite radius
  none.rows.total = 3;
  none.rows.scores.clear();
  none.baseline.clear();
  write_artifact(none, folder.path("none.onnx"));
  EXPECT_THAT(read_artifact(folder.path("none.onnx")).radius(Level(0.05)), ElementsAre(kNoEnd));
}

TEST(KeptLevels, SaysWhatIsDamaged) {
  const Folder folder;
  const auto complaint = [&](const std::string& from, const std::string& to,
                             const torch::Tensor& baseline = {}) {
    Graph graph = artifact_graph(example());
    std::string& settings = graph.metadata["fcp.calibration"];
    const size_t at = settings.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    settings.replace(at, from.size(), to);
    if (baseline.defined()) graph.initializers["fcp.baseline"] = baseline;
    write_onnx(graph, folder.path("c.onnx"));
    return message_of(folder, [&] { read_artifact(folder.path("c.onnx")); });
  };
  EXPECT_EQ(complaint("\"format\":3", "\"format\":3"), "");
  EXPECT_EQ(complaint("\"format\":3", "\"format\":4"),
            "c.onnx: its calibration has format 4, this fcp reads formats 2 and 3");
  EXPECT_EQ(complaint("\"rows\":19", "\"rows\":18", torch::ones({1}, torch::kDouble)),
            "c.onnx: split calibration found 2 scores, its levels need 1");
  EXPECT_EQ(complaint("\"rows\":19", "\"rows\":-1"), "c.onnx: its number of rows is not one");
  EXPECT_EQ(complaint("\"rows\":19", "\"rows\":18446744073709551615"),
            "c.onnx: its number of rows is not one");
  EXPECT_EQ(complaint("[\"0.05\",\"0.10\"]", "[]"), "c.onnx: its calibration keeps no level");
  EXPECT_EQ(complaint("[\"0.05\",\"0.10\"]", "[0.05]"),
            "c.onnx: its calibration settings are damaged");
  EXPECT_EQ(complaint("[\"0.05\",\"0.10\"]", "[\"0.10\",\"0.05\"]"),
            "c.onnx: its levels are not in order");
  EXPECT_EQ(complaint("\"name\":\"split\"", "\"name\":\"grouped\""),
            "c.onnx: levels are kept by split calibration alone");
  EXPECT_EQ(complaint("{", "{", torch::ones({3}, torch::kDouble)),
            "c.onnx: its baseline has 3 scores, its levels need 2");
}

}  // namespace
}  // namespace fcp
