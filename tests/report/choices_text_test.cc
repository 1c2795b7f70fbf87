#include "apps/report/choices_text.h"

#include <gmock/gmock.h>

namespace fcp {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ChoicesText, SaysNothingWhereNothingWasChosen) {
  EXPECT_THAT(choices_text({}), IsEmpty());
  EXPECT_THAT(findings_text({}), IsEmpty());
}

TEST(ChoicesText, ShowsEveryCandidate) {
  Choices choices{.score = "nested", .rows = 40};
  choices.cut.emplace().candidates = {{"x", 0, 2.5, 0.9, ""}, {"h1", 0.25, 0, 0, "too large"}};
  choices.bandwidth.emplace().candidates = {{0.5, 3, 0.9, 12}};
  choices.shifted_rows = 7;
  EXPECT_THAT(
      choices_text(choices),
      ElementsAre(AllOf(HasSubstr("Cuts and floors on 40 selection rows"),
                        HasSubstr("2.500    90.0 %  chosen"), HasSubstr("skipped: too large")),
                  AllOf(HasSubstr("Bandwidths on 40"), HasSubstr("chosen")),
                  "likelihood ratio: 40 selection rows, which are left out of calibration, against "
                  "7 shifted rows"));
}

// An operator without bounds stands behind every cut before it.
TEST(ChoicesText, SaysAReasonOnce) {
  Choices choices{.score = "nested", .rows = 40};
  choices.cut.emplace().candidates = {{"x", 0, 0, 0, "no bounds"},
                                      {"h1", 0, 0, 0, "no bounds"},
                                      {"h2", 0, 0, 0, "too slow"},
                                      {"h3", 0, 2.5, 0.9, ""}};
  choices.cut->chosen = 3;
  const std::string text = choices_text(choices).at(0);
  EXPECT_EQ(text.find("no bounds"), text.rfind("no bounds"));
  EXPECT_THAT(text, AllOf(HasSubstr("skipped: no bounds"), HasSubstr("skipped as well"),
                          HasSubstr("skipped: too slow")));
}

TEST(ChoicesText, SaysWhetherTheSliceIsLeftOut) {
  Choices choices{.score = "surrogate", .rows = 40, .steps = ChosenSteps{12, 0.925}};
  EXPECT_THAT(choices_text(choices),
              ElementsAre("surrogate: 12 steps, bands cover 92.5 % of 40 validation rows, which "
                          "are left out of calibration"));
  choices.left_out = false;
  EXPECT_THAT(choices_text(choices), ElementsAre(HasSubstr("they are calibrated on as well")));
}

TEST(ChoicesText, PutsTheOptionsOfLabelsInOneLine) {
  const Choices choices{.score = "raps",
                        .rows = 30,
                        .temperature = 1.5,
                        .rank_term = ChosenRankTerm{.weight = 0.1, .free = 3}};
  EXPECT_THAT(choices_text(choices),
              ElementsAre("raps, temperature 1.500, ranks beyond 3 cost 0.1000: chosen on 30 rows, "
                          "which are left out of calibration"));
}

TEST(FindingsText, SaysWhatWasReached) {
  EXPECT_THAT(findings_text({.seen = 100, .kept = 80, .steps = 9, .reached = 0.5}),
              ElementsAre("surrogate: after 9 steps 50.0 % of the rows predict the truth within 1 "
                          "%"));
  EXPECT_THAT(findings_text({.seen = 100, .kept = 80, .effective_rows = 42}),
              ElementsAre("weights: 80 rows are worth 42.00 unweighted ones"));
}

}  // namespace
}  // namespace fcp
