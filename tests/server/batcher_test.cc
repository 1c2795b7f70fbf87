#include "apps/server/batcher.h"

#include <future>

#include <gtest/gtest.h>

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
  std::vector<std::promise<internal::AnswerData>> promises(kRequests);
  for (int i = 0; i < kRequests; ++i) {
    const Level level = Level::fraction(1, static_cast<uint64_t>(2 + i % 2));
    ASSERT_TRUE(
        batcher.put(line_row(static_cast<float>(i), 1), {level},
                    [&promises, i](const internal::AnswerData* answer, const std::string& error) {
                      EXPECT_EQ(error, "");
                      promises[static_cast<size_t>(i)].set_value(*answer);
                    }));
  }
  for (int i = 0; i < kRequests; ++i) {
    const internal::AnswerData found = promises[static_cast<size_t>(i)].get_future().get();
    const Level level = Level::fraction(1, static_cast<uint64_t>(2 + i % 2));
    const internal::AnswerData alone = model->answer(line_row(static_cast<float>(i), 1), {level});
    EXPECT_EQ(found.points.size(0), 1);
    EXPECT_TRUE(found.points.equal(alone.points));
    EXPECT_TRUE(found.host.at(0).lower.equal(alone.host.at(0).lower));
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
    const auto done = [&](const internal::AnswerData*, const std::string&) {
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

}  // namespace
}  // namespace fcp
