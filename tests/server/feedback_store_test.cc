#include "apps/server/feedback_store.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

#include "apps/server/sql_database.h"
#include "tests/support/files.h"

namespace fcp {
namespace {

using ::testing::ElementsAre;

WaitingPrediction waiting(const std::string& id, int64_t row = 0) {
  return {"m", id, row, "sha", 12.5, -1, {1, 2, 3}, 0.0625, 7, std::string("an\0swer", 7)};
}

StoredTruth truth_of(const WaitingPrediction& asked, double p_value) {
  return {asked, 13.5, {4.5f}, {0.25, 0.5}, p_value, true, 2.5, 3.5, 0.125};
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
  EXPECT_EQ(found->answer, waiting("a").answer);
  const auto request = store->find_request("m", "a");  // one has its truth, one waits
  ASSERT_EQ(request.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(request[i].row, static_cast<int64_t>(i));
    EXPECT_EQ(request[i].sha256, "sha");
    EXPECT_EQ(request[i].place, 7);
    EXPECT_THAT(request[i].x, ElementsAre(1, 2, 3));
    EXPECT_EQ(request[i].answer, waiting("a").answer);
  }
  EXPECT_TRUE(store->find_request("m", "undone").empty());
  EXPECT_TRUE(store->find_request("other", "a").empty());
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
    EXPECT_EQ(one.alpha, 0.125);
    EXPECT_EQ(one.prediction.level, 0.0625);
    EXPECT_EQ(one.prediction.answer, waiting("a").answer);
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

TEST_P(FeedbackStoreTest, ListsTheFilesWithTruths) {
  const auto store = open_feedback_store(state_, {});
  store->begin();
  store->touch();
  for (const char* sha : {"b", "a", "b"}) {
    for (const char* model : {"m", "n"}) {
      WaitingPrediction asked = waiting(concat(sha, model, store->truths()));
      asked.sha256 = sha;
      asked.model = model;
      store->add_truth(truth_of(asked, 0.5));
    }
  }
  store->commit();
  using Files = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(read_feedback_store(state_)->files(),
            (Files{{"m", "a"}, {"m", "b"}, {"n", "a"}, {"n", "b"}}));
  EXPECT_THAT(store->models_of("b"), ElementsAre("m", "n"));
  EXPECT_TRUE(store->models_of("c").empty());
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

TEST_P(FeedbackStoreTest, KeepsTheNewestMonitors) {
  const std::string sha = concat("sha of ", GetParam());
  const std::string state("a\0b", 3);
  const auto store = open_feedback_store(state_, {});
  store->begin();
  for (int64_t i = 1; i <= 5; ++i) store->put_monitor({"m", sha, std::to_string(i)}, {i, state});
  store->put_monitor({"other", sha, "1"}, {1, "x"});
  store->put_monitor({"m", sha, "5"}, {7, "new"});
  store->put_monitor({"m", sha, "5"}, {6, "late"});
  store->commit();
  EXPECT_FALSE(store->find_monitor({"m", sha, "1"}));
  EXPECT_FALSE(store->find_monitor({"m", "another", "5"}));
  ASSERT_TRUE(store->find_monitor({"m", sha, "2"}));
  EXPECT_EQ(store->find_monitor({"m", sha, "2"})->state, state);
  EXPECT_EQ(store->find_monitor({"m", sha, "5"})->number, 7);
  EXPECT_EQ(store->find_monitor({"m", sha, "5"})->state, "new");
  EXPECT_TRUE(store->find_monitor({"other", sha, "1"}));
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

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// The tables that the version before had, with a truth and a level in them.
void make_first_version(SqlDatabase& database) {
  const std::string key =
      "seq INTEGER PRIMARY KEY AUTOINCREMENT, model TEXT NOT NULL, id TEXT NOT NULL, line BIGINT "
      "NOT NULL, sha256 TEXT NOT NULL, asked DOUBLE PRECISION NOT NULL, part BIGINT NOT NULL, x "
      "BLOB NOT NULL, level DOUBLE PRECISION NOT NULL, ";
  database.execute("CREATE TABLE fcp_waiting (" + key + "UNIQUE (model, id, line))");
  database.execute(
      "CREATE TABLE fcp_truths (" + key +
      "time DOUBLE PRECISION NOT NULL, truth BLOB NOT NULL, scores BLOB NOT NULL, p_value DOUBLE "
      "PRECISION NOT NULL, covered BIGINT NOT NULL, size DOUBLE PRECISION NOT NULL, adapted_size "
      "DOUBLE PRECISION NOT NULL, UNIQUE (model, id, line))");
  database.execute(
      "CREATE TABLE fcp_levels (model TEXT NOT NULL, sha256 TEXT NOT NULL, method TEXT NOT NULL, "
      "target DOUBLE PRECISION NOT NULL, level DOUBLE PRECISION NOT NULL, seq BIGINT NOT NULL, "
      "state BLOB NOT NULL, PRIMARY KEY (model, sha256, method, target))");
  database.execute(
      "INSERT INTO fcp_truths VALUES (7, 'm', 'a', 0, 'sha', 1, 0, x'', 0, 2, x'', x'', 0.5, 1, 3, "
      "0)");
  database.execute("INSERT INTO fcp_waiting VALUES (8, 'm', 'b', 3, 'sha', 1, 0, x'', 0)");
  database.execute("INSERT INTO fcp_levels VALUES ('m', 'sha', 'dtaci', 0.1, 0.07, 7, x'')");
}

TEST(FeedbackStore, BringsOlderTablesUpToDate) {
  const Folder folder;
  const std::string state = folder.path("state");
  make_first_version(*open_sqlite(state, /*exclusive=*/true));
  EXPECT_EQ(error_of([&] { read_feedback_store(state); }),
            state +
                "/feedback.db: an older fcp has made its tables; fcp serve brings them up to "
                "date");
  for (int time = 0; time < 2; ++time) {
    const auto store = open_feedback_store(state, {});
    EXPECT_TRUE(store->has_truth("m", "a", 0));
    EXPECT_EQ(store->find_waiting("m", "b", 3)->place, 3);  // it drew by its row
    EXPECT_EQ(store->find_waiting("m", "b", 3)->answer, "");
    EXPECT_EQ(store->find_level({"m", "sha", "dtaci", 0.1})->level, 0.07);
    store->each_truth("m", "sha", 0, [](const StoredTruth& one) {
      EXPECT_EQ(one.number, 7);
      EXPECT_EQ(one.alpha, 0);
    });
    store->begin();
    store->put_monitor({"m", "sha", "o"}, {7, "x"});
    store->commit();
  }
  EXPECT_EQ(read_feedback_store(state)->truths(), 1u);
}

TEST(FeedbackStore, RefusesTablesItDoesNotKnow) {
  const Folder folder;
  const std::string advice =
      ", this one reads version 4; give another folder or database as the state, or use the fcp "
      "that made it";
  const std::string oldest = folder.path("oldest"), newer = folder.path("newer");
  open_sqlite(oldest, /*exclusive=*/true)
      ->execute("CREATE TABLE waiting (seq INTEGER); CREATE TABLE truths (seq INTEGER)");
  EXPECT_EQ(error_of([&] { open_feedback_store(oldest, {}); }),
            oldest + "/feedback.db: an older fcp has made its tables" + advice);
  EXPECT_EQ(error_of([&] { read_feedback_store(oldest); }),
            oldest + "/feedback.db: found no tables of a server" + advice);
  open_sqlite(newer, /*exclusive=*/true)
      ->execute("CREATE TABLE fcp_schema (version BIGINT); INSERT INTO fcp_schema VALUES (5)");
  for (const auto& open : {+[](const std::string& where) { open_feedback_store(where, {}); },
                           +[](const std::string& where) { read_feedback_store(where); }}) {
    EXPECT_EQ(error_of([&] { open(newer); }),
              newer + "/feedback.db: a newer fcp has made its tables, version 5" + advice);
  }
}

TEST(FeedbackStore, SaysWhatIsNotThere) {
  const Folder folder;
  EXPECT_THROW(read_feedback_store(folder.path("state")), Error);
  EXPECT_THROW(open_feedback_store("postgresql:///x?host=" + folder.path(""), {}), Error);
}

// The state holds inputs and truths: whatever the umask and the folder were.
TEST(FeedbackStore, ItsFilesAreTheirOwnersAlone) {
  const Folder folder;
  const auto mode = [](const std::string& path) {
    return static_cast<unsigned>(std::filesystem::status(path).permissions());
  };
  const std::string made = folder.path("made"), shared = folder.path("shared");
  for (const std::string& state : {made, shared}) {
    std::filesystem::create_directory(state);
    std::filesystem::permissions(state, std::filesystem::perms(0755));
  }
  std::ofstream(shared + "/notes.txt") << "of another program";
  std::ofstream(shared + "/feedback.db").flush();  // of an earlier version
  std::filesystem::permissions(shared + "/feedback.db", std::filesystem::perms(0644));
  for (const std::string& state : {made, shared}) {
    const auto database = open_sqlite(state, /*exclusive=*/true);
    database->execute("CREATE TABLE t (a INTEGER)");
    for (const char* name : {"/feedback.db", "/feedback.db-wal", "/feedback.db-shm", "/lock"}) {
      EXPECT_EQ(mode(state + name), 0600U) << state << name;
    }
  }
  EXPECT_EQ(mode(made), 0700U);
  EXPECT_EQ(mode(shared), 0755U) << "holds a file of others";
}

}  // namespace
}  // namespace fcp
