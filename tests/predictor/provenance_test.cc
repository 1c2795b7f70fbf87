#include "fcp/predictor/provenance.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "fcp/base/error.h"

namespace fcp {
namespace {

ScoreTried tried(const std::string& name, double length) {
  ScoreTried one;
  one.name = name;
  one.cut = "h1";
  one.length = length;
  one.interval_score = length + 1 / 3.0;
  one.standard_error = 1e-17;
  one.coverage = 0.9;
  return one;
}

ScoresTried some_scores() {
  ScoresTried scores;
  scores.candidates = {tried("residual", 12345.678912345), tried("linearized", 0),
                       tried("nested", std::numeric_limits<double>::infinity()),
                       tried("spread", 13.361), tried("density", 1.5e-7)};
  scores.candidates[1].skipped = "no bounds";
  scores.chosen = 3;
  return scores;
}

TEST(ScoresTried, AreReadToTheLastBitAsTheyWereWritten) {
  ScoresTried scores = some_scores();
  for (const ChosenBy by :
       {ChosenBy::kIntervalScore, ChosenBy::kLength, ChosenBy::kSize, ChosenBy::kSetScore}) {
    scores.by = by;
    const ScoresTried read = read_scores_json(scores_json(scores));
    EXPECT_EQ(read.by, by);
    EXPECT_EQ(read.chosen, 3u);
    ASSERT_EQ(read.candidates.size(), scores.candidates.size());
    for (size_t i = 0; i < read.candidates.size(); ++i) {
      const ScoreTried &one = read.candidates[i], &other = scores.candidates[i];
      EXPECT_EQ(one.name, other.name);
      EXPECT_EQ(one.skipped, other.skipped);
      if (!other.skipped.empty()) continue;
      EXPECT_EQ(one.cut, other.cut);
      EXPECT_EQ(one.length, other.length);
      EXPECT_EQ(one.interval_score, other.interval_score);
      EXPECT_EQ(one.standard_error, other.standard_error);
      EXPECT_EQ(one.coverage, other.coverage);
    }
  }
}

TEST(ScoresTried, OtherTextIsRefused) {
  const std::string text = scores_json(some_scores());
  EXPECT_THROW(read_scores_json("residual 18.49 (chosen)"), nlohmann::json::exception);
  EXPECT_THROW(read_scores_json("{}"), nlohmann::json::exception);
  std::string other = text;
  other.replace(other.find("interval-score"), 14, "nothing");
  EXPECT_THROW(read_scores_json(other), Error);
  other = text;
  other.replace(other.find("\"chosen\":3"), 10, "\"chosen\":5");
  EXPECT_THROW(read_scores_json(other), Error);
}

TEST(ScoresTried, PeopleReadThemInOneLine) {
  ScoresTried scores = some_scores();
  scores.by = ChosenBy::kLength;
  EXPECT_EQ(scores_text(scores),
            "residual 12,346, nested ∞, spread 13.36 (chosen), density 1.500e−7");
  scores.by = ChosenBy::kIntervalScore;
  EXPECT_THAT(scores_text(scores), ::testing::HasSubstr("spread 13.69 (chosen)"));
}

}  // namespace
}  // namespace fcp
