#include "fcp/serving/feedback_store.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

#include "tests/support/files.h"

namespace fcp {
namespace {

using ::testing::ElementsAre;

WaitingPrediction waiting(const std::string& id, int64_t row = 0) {
  return {"m", id, row, "sha", 12.5, -1, {1, 2, 3}, 0.0625};
}

StoredTruth truth_of(const WaitingPrediction& asked, double p_value) {
  return {asked, 13.5, {4.5f}, {0.25, 0.5}, p_value, true, 2.5, 3.5};
}

// In a folder, and where FCP_POSTGRESQL says; tests/cli/postgresql.py sets it.
std::vector<std::string> places() {
  if (std::getenv("FCP_POSTGRESQL") == nullptr) return {"folder"};
  return {"folder", "postgresql"};
}

class FeedbackStoreTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    state_ = folder_.path("state");
    if (GetParam() == "folder") return;
    state_ = std::getenv("FCP_POSTGRESQL");
    forget_all();
  }

  // As if the database were new: a limit of nothing.
  void forget_all() const {
    const auto store = open_feedback_store(state_, {.waiting = 0, .truths = 0});
    store->begin();
    store->commit();
  }

  Folder folder_;
  std::string state_;
};

INSTANTIATE_TEST_SUITE_P(In, FeedbackStoreTest, ::testing::ValuesIn(places()),
                         [](const auto& test) { return test.param; });

TEST_P(FeedbackStoreTest, KeepsWhatItWasGiven) {
  {
    const auto store = open_feedback_store(state_, {});
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
    if (store->is_shared()) {
      EXPECT_EQ(open_feedback_store(state_, {})->truths(), 1u);
    } else {
      EXPECT_THROW(open_feedback_store(state_, {}), Error);
    }
  }
  const auto store = open_feedback_store(state_, {});
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
  EXPECT_EQ(found->time, 12.5);
  EXPECT_EQ(found->level, 0.0625);
  size_t seen = 0;
  int64_t last = 0;
  store->each_truth("m", "sha", 0, [&](const StoredTruth& one) {
    ++seen;
    last = one.number;
    EXPECT_EQ(one.prediction.id, "a");
    EXPECT_EQ(one.p_value, 0.75);
    EXPECT_THAT(one.scores, ElementsAre(0.25, 0.5));
    EXPECT_THAT(one.truth, ElementsAre(4.5f));
    EXPECT_TRUE(one.covered);
    EXPECT_EQ(one.size, 2.5);
    EXPECT_EQ(one.adapted_size, 3.5);
    EXPECT_EQ(one.prediction.level, 0.0625);
  });
  EXPECT_EQ(seen, 1u);
  store->each_truth("m", "sha", last, [&](const StoredTruth&) { ++seen; });
  store->each_truth("m", "other", 0, [&](const StoredTruth&) { ++seen; });
  EXPECT_EQ(seen, 1u);
}

TEST_P(FeedbackStoreTest, ForgetsTheOldest) {
  const auto store = open_feedback_store(state_, {.waiting = 3, .truths = 2});
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

TEST_P(FeedbackStoreTest, KeepsLevels) {
  const LevelKey key{"m", concat("sha of ", GetParam()), "dtaci", 0.1};
  LevelKey other = key;
  other.target = 0.05;
  const auto store = open_feedback_store(state_, {});
  store->begin();
  store->put_level(key, {0.07, 3, {1, 2}});
  store->put_level(other, {0.02, 4, {}});
  store->put_level(key, {0.08, 5, {3, 4, 5}});
  store->commit();
  const auto found = read_feedback_store(state_)->find_level(key);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->level, 0.08);
  EXPECT_EQ(found->number, 5);
  EXPECT_THAT(found->state, ElementsAre(3, 4, 5));
  const auto levels = store->levels_of(key.sha256);
  ASSERT_EQ(levels.size(), 2u);
  EXPECT_EQ(levels[0].second.level, 0.08);
  EXPECT_EQ(levels[1].first.target, 0.05);
  EXPECT_TRUE(store->levels_of("nobody's").empty());
}

TEST_P(FeedbackStoreTest, TakesAnyTextAsAnId) {
  const auto store = open_feedback_store(state_, {});
  for (const std::string id : {"'; DROP TABLE fcp_truths; --", "ä€𝄞", "", "$1", "\\x00"}) {
    store->begin();
    EXPECT_TRUE(store->add_waiting(waiting(id))) << id;
    store->commit();
    EXPECT_TRUE(store->find_waiting("m", id, 0)) << id;
    EXPECT_FALSE(store->find_waiting("m", id + " ", 0)) << id;
  }
}

TEST(FeedbackStore, SaysWhatIsNotThere) {
  const Folder folder;
  EXPECT_THROW(read_feedback_store(folder.path("state")), Error);
  EXPECT_THROW(open_feedback_store("postgresql:///x?host=" + folder.path(""), {}), Error);
}

}  // namespace
}  // namespace fcp
