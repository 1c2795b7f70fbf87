#include "fcp/serving/feedback_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

#include "tests/support/files.h"

namespace fcp {
namespace {

using ::testing::ElementsAre;

WaitingPrediction waiting(const std::string& id, int64_t row = 0) {
  return {"m", id, row, "sha", 12.5, -1, {1, 2, 3}};
}

StoredTruth truth_of(const WaitingPrediction& asked, double p_value) {
  return {asked, 13.5, {4.5f}, {0.25, 0.5}, p_value, true, 2.5};
}

TEST(FeedbackStore, KeepsWhatItWasGiven) {
  const Folder folder;
  const std::string state = folder.path("state");
  {
    const auto store = open_feedback_store(state, {});
    store->begin();
    EXPECT_TRUE(store->add_waiting(waiting("a")));
    EXPECT_TRUE(store->add_waiting(waiting("a", 1)));
    EXPECT_FALSE(store->add_waiting(waiting("a")));
    store->add_truth(truth_of(waiting("a"), 0.75));
    EXPECT_FALSE(store->add_waiting(waiting("a")));
    store->commit();
    store->begin();
    EXPECT_TRUE(store->add_waiting(waiting("undone")));
    store->undo();
    EXPECT_THROW(open_feedback_store(state, {}), Error);
  }
  const auto store = open_feedback_store(state, {});
  EXPECT_EQ(store->waiting(), 1u);
  EXPECT_EQ(store->truths(), 1u);
  EXPECT_FALSE(store->find_waiting("m", "a", 0));
  EXPECT_FALSE(store->find_waiting("m", "undone", 0));
  EXPECT_TRUE(store->has_truth("m", "a", 0));
  EXPECT_FALSE(store->has_truth("other", "a", 0));
  const auto found = store->find_waiting("m", "a", 1);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->sha256, "sha");
  EXPECT_EQ(found->group, -1);
  EXPECT_THAT(found->x, ElementsAre(1, 2, 3));
  size_t seen = 0;
  store->each_truth("m", "sha", [&](const StoredTruth& one) {
    ++seen;
    EXPECT_EQ(one.prediction.id, "a");
    EXPECT_EQ(one.p_value, 0.75);
    EXPECT_THAT(one.scores, ElementsAre(0.25, 0.5));
    EXPECT_THAT(one.truth, ElementsAre(4.5f));
    EXPECT_TRUE(one.covered);
  });
  EXPECT_EQ(seen, 1u);
}

TEST(FeedbackStore, ForgetsTheOldest) {
  const Folder folder;
  const auto store = open_feedback_store(folder.path("state"), {.waiting = 3, .truths = 2});
  store->begin();
  for (const char* id : {"a", "b", "c", "d", "e"}) EXPECT_TRUE(store->add_waiting(waiting(id)));
  store->commit();
  EXPECT_EQ(store->waiting(), 3u);
  EXPECT_FALSE(store->find_waiting("m", "b", 0));
  EXPECT_TRUE(store->find_waiting("m", "c", 0));
  store->begin();
  for (const char* id : {"c", "d", "e"}) store->add_truth(truth_of(waiting(id), 0.5));
  store->commit();
  EXPECT_EQ(store->truths(), 2u);
  EXPECT_FALSE(store->has_truth("m", "c", 0));
}

}  // namespace
}  // namespace fcp
