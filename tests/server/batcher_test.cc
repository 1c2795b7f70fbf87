#include "apps/server/batcher.h"

#include <future>

#include <gtest/gtest.h>

#include "apps/server/model_store.h"
#include "tests/server/served_files.h"

namespace fcp {
namespace {

using testing::line_row;
using testing::served_line;

// Many requests at once, of different levels: each gets its own answer, in fewer runs.
TEST(Batcher, AnswersEachWithItsOwn) {
  const Folder folder;
  const auto model = served_line(folder.path("line.onnx"));
  Batcher batcher(model, {});
  constexpr int kRequests = 300;
  std::vector<std::promise<ServedAnswer>> promises(kRequests);
  for (int i = 0; i < kRequests; ++i) {
    const Level level = Level::fraction(1, static_cast<uint64_t>(2 + i % 2));
    ASSERT_TRUE(batcher.put(line_row(static_cast<float>(i), 1), {level},
                            [&promises, i](const ServedAnswer* answer, const std::string& error) {
                              EXPECT_EQ(error, "");
                              promises[static_cast<size_t>(i)].set_value(*answer);
                            }));
  }
  for (int i = 0; i < kRequests; ++i) {
    const ServedAnswer found = promises[static_cast<size_t>(i)].get_future().get();
    const Level level = Level::fraction(1, static_cast<uint64_t>(2 + i % 2));
    const ServedAnswer alone = model->answer(line_row(static_cast<float>(i), 1), {level});
    EXPECT_EQ(found.rows, 1u);
    EXPECT_EQ(found.prediction, alone.prediction);
    EXPECT_EQ(found.at.at(0).lower, alone.at.at(0).lower);
  }
}

TEST(Batcher, RefusesWhenTooMuchWaits) {
  const Folder folder;
  const auto model = served_line(folder.path("line.onnx"));
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future().share();
  std::atomic<int> answered = 0;
  {
    Batcher batcher(model, {.batch_rows = 1, .queued_rows = 5});
    const auto done = [&](const ServedAnswer*, const std::string&) {
      gone.wait();
      ++answered;
    };
    int taken = 0;
    for (int i = 0; i < 50; ++i) taken += batcher.put(line_row(1, 1), {Level(0.1)}, done) ? 1 : 0;
    EXPECT_GE(taken, 5);
    EXPECT_LE(taken, 7);  // one or two were in work
    go.set_value();
    while (answered < 1) std::this_thread::yield();
  }
  EXPECT_GE(answered, 5);  // the end answers all that were taken
}

TEST(ModelStore, TakesNewVersionsAndKeepsOldOnes) {
  const Folder folder;
  const std::string path = folder.path("line.onnx");
  CalibrationArtifact artifact = testing::line_artifact(testing::line_rows(99, 1));
  write_artifact(artifact, path);
  ModelStore models({path, "other=" + path}, torch::kCPU, {});
  EXPECT_EQ(models.names(), (std::vector<std::string>{"line", "other"}));
  EXPECT_EQ(models.find("line", "2"), nullptr);
  EXPECT_EQ(models.find("nobody"), nullptr);
  EXPECT_EQ(models.find("line", "x"), nullptr);
  std::vector<std::string> heard;
  const auto hear = [&](const std::string& name, const std::string& error) {
    heard.push_back(name + ":" + (error.empty() ? "" : "wrong"));
  };
  models.reload(hear);
  EXPECT_TRUE(heard.empty());
  const auto old = models.find("line");
  artifact.provenance["version"] = "2";
  write_artifact(artifact, path);
  models.reload(hear);  // sees it
  models.reload(hear);  // sees that it stays
  EXPECT_EQ(heard, (std::vector<std::string>{"line:", "other:"}));
  EXPECT_EQ(models.versions("line"), (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(models.find("line")->model()->version(), "2");
  EXPECT_EQ(models.find("line", "1"), old);
  folder.write("line.onnx", "not a network");
  heard.clear();
  models.reload(hear);
  models.reload(hear);
  EXPECT_EQ(heard.at(0), "line:wrong");
  EXPECT_EQ(models.find("line")->model()->version(), "2");
}

}  // namespace
}  // namespace fcp
