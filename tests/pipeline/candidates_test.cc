#include "fcp/pipeline/candidates.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fcp {
namespace {

ScoreTried tried(const std::string& name, double length) {
  ScoreTried one;
  one.name = name;
  one.length = length;
  return one;
}

TEST(Candidates, AreReadAsTheyWereWritten) {
  ChosenFrom<ScoreTried> scores;
  scores.candidates = {tried("residual", 12345.6), tried("linearized", 0),
                       tried("nested", std::numeric_limits<double>::infinity()),
                       tried("spread", 13.361), tried("density", 1.5e-7)};
  scores.candidates[1].skipped = "no bounds";
  scores.chosen = 3;
  const std::vector<CandidateScore> read = parse_candidates(candidates_text(scores, false));
  ASSERT_EQ(read.size(), 4u);
  EXPECT_EQ(read[0].name, "residual");
  EXPECT_NEAR(read[0].size, 12345.6, 1);
  EXPECT_EQ(read[1].name, "nested");
  EXPECT_EQ(read[1].size, std::numeric_limits<double>::infinity());
  EXPECT_FALSE(read[1].chosen);
  EXPECT_EQ(read[2].name, "spread");
  EXPECT_NEAR(read[2].size, 13.361, 0.01);
  EXPECT_TRUE(read[2].chosen);
  EXPECT_NEAR(read[3].size, 1.5e-7, 1e-10);
  scores.candidates[3].interval_score = 20.5;
  EXPECT_NEAR(parse_candidates(candidates_text(scores, true))[2].size, 20.5, 0.01);
}

TEST(Candidates, OtherTextIsPassedOver) {
  EXPECT_TRUE(parse_candidates("").empty());
  EXPECT_TRUE(parse_candidates("nothing, of the kind, (chosen)").empty());
  CalibrationArtifact artifact;
  EXPECT_TRUE(candidates_of(artifact).empty());
  artifact.provenance["candidates"] = "lac 1.5 (chosen), odd, aps 2.0";
  ASSERT_EQ(candidates_of(artifact).size(), 2u);
  EXPECT_EQ(candidates_of(artifact)[1].name, "aps");
}

}  // namespace
}  // namespace fcp
