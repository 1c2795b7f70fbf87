#include "apps/server/batcher.h"

#include <chrono>
#include <future>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <thread>

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

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
        batcher.put(line_row(static_cast<float>(i), 1), {level}, nullptr,
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
    for (int i = 0; i < 50; ++i)
      taken += batcher.put(line_row(1, 1), {Level(0.1)}, nullptr, done) ? 1 : 0;
    EXPECT_GE(taken, 5);
    EXPECT_LE(taken, 7);  // one or two were in work
    go.set_value();
    while (answered < 1) std::this_thread::yield();
  }
  EXPECT_GE(answered, 5);  // the end answers all that were taken
}

internal::BatchData line_rows_up_to(int64_t rows) {
  const torch::Tensor numbers = torch::arange(rows, torch::kFloat);
  return {.x = torch::stack({numbers, numbers.remainder(7)}, 1), .placed = true};
}

// A batcher whose queue for many rows is held up by a job, until release() or the end.
class HeldBatcher {
 public:
  HeldBatcher() : model_(served_line(folder_.path("line.onnx"))) {
    std::promise<void> held;
    batcher_.emplace(model_, Batcher::Options{.batch_rows = 10, .few_rows = 2});
    batcher_->put(line_rows_up_to(3), {Level(0.1)}, nullptr,
                  [&held, this](const internal::AnswerData*, const std::string&) {
                    held.set_value();
                    released_.get_future().wait();
                  });
    held.get_future().wait();
  }
  ~HeldBatcher() { end(); }

  void put(const std::string& name, int64_t rows, std::shared_ptr<Deadline> deadline = nullptr) {
    batcher_->put(line_rows_up_to(rows), {Level(0.1), Level(0.5)}, std::move(deadline),
                  [this, name](const internal::AnswerData* answer, const std::string& error) {
                    const std::lock_guard lock(mutex_);
                    order_.push_back(name);
                    errors_[name] = error;
                    if (answer != nullptr) answers_[name] = *answer;
                  });
  }
  void end() {
    if (!batcher_) return;
    released_.set_value();
    batcher_.reset();
  }

  const ServedModel& model() const { return *model_; }
  std::vector<std::string> order() {
    const std::lock_guard lock(mutex_);
    return order_;
  }
  std::map<std::string, std::string> errors_;
  std::map<std::string, internal::AnswerData> answers_;

 private:
  Folder folder_;
  std::shared_ptr<const ServedModel> model_;
  std::promise<void> released_;
  std::mutex mutex_;
  std::vector<std::string> order_;
  std::optional<Batcher> batcher_;
};

// Slices change no bit.
TEST(Batcher, AnswersManyRowsInSlices) {
  HeldBatcher held;
  held.put("all", 1'003);
  held.end();
  EXPECT_EQ(held.errors_.at("all"), "");
  const internal::AnswerData& found = held.answers_.at("all");
  const internal::AnswerData whole =
      held.model().answer(line_rows_up_to(1'003), {Level(0.1), Level(0.5)});
  ASSERT_EQ(found.host.size(), 2u);
  EXPECT_TRUE(found.points.equal(whole.points));
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(found.host[i].prediction.equal(whole.host[i].prediction));
    EXPECT_TRUE(found.host[i].lower.equal(whole.host[i].lower));
    EXPECT_TRUE(found.host[i].upper.equal(whole.host[i].upper));
  }
}

// After a slice it is the next one's turn: whoever has fewer rows is answered first.
TEST(Batcher, TakesTurns) {
  HeldBatcher held;
  held.put("large", 2'000);
  held.put("middle", 500);
  held.put("small", 30);
  held.end();
  EXPECT_EQ(held.order(), (std::vector<std::string>{"small", "middle", "large"}));
}

TEST(Batcher, AnswersFewRowsBesideMany) {
  HeldBatcher held;  // whose other queue stands still
  held.put("few", 2);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (held.order().empty() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(held.order(), std::vector<std::string>{"few"});
}

TEST(Batcher, DropsWhatNobodyWaitsFor) {
  HeldBatcher held;
  const auto gone = std::make_shared<Deadline>(std::chrono::seconds(1'000));
  const auto late = std::make_shared<Deadline>(std::chrono::seconds(1'000));
  held.put("gone", 500, gone);
  held.put("late", 500, late);
  held.put("other", 500, std::make_shared<Deadline>(std::chrono::seconds(1'000)));
  gone->cancel();
  late->shorten(std::chrono::seconds(0));
  held.end();
  EXPECT_EQ(held.order(), (std::vector<std::string>{"gone", "late", "other"}));
  EXPECT_EQ(held.errors_["gone"], Batcher::kTimeIsOver);
  EXPECT_EQ(held.errors_["late"], Batcher::kTimeIsOver);
  EXPECT_EQ(held.errors_["other"], "");
  EXPECT_FALSE(held.answers_.contains("gone"));
}

// What clients are told as 503, because nothing is wrong with their rows.
TEST(Batcher, TellsOutOfMemoryFromOtherErrors) {
  EXPECT_TRUE(ran_out_of_memory(std::bad_alloc()));
  EXPECT_FALSE(ran_out_of_memory(Error("input 'x': is missing")));
  const auto of_libtorch = [](const char* text) {
    try {
      TORCH_CHECK(false, text);
    } catch (const std::exception& error) {
      return ran_out_of_memory(error);
    }
    return false;
  };
  EXPECT_TRUE(of_libtorch("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8"));
  EXPECT_FALSE(of_libtorch("expected a matrix"));
}

}  // namespace
}  // namespace fcp
