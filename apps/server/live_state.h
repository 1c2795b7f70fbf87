// The memory of a server: predictions and truths in a FeedbackStore, and a monitor per model that
// hears of every truth. One thread reads and writes; what waits when it is free becomes one
// transaction, and callers hear of it when it is on the disk. Transactions are short: many truths
// of one caller come in pieces, which are looked up, judged by a thread of its own, and written,
// so that what others want to remember or tell comes between them.
//
// After a restart the monitors are as they were, however many truths the store has forgotten: their
// state is kept from time to time, before truths that it does not know of are forgotten, and the
// truths since then are replayed. A new version of a model starts a new monitor, because its
// calibration is another; so does another level or rate of false alarms.
//
// Where levels are adapted, the level at which requests are answered follows the truths in the
// order in which the store numbers them, and is kept in the same transaction. Servers that share a
// store hear of each other's truths in that order too, so that their monitors and levels are the
// same.
// Tested by tests/server/live_state_test.cc and tests/cli/test_serve_state.py.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fcp/level.h"
#include "fcp/monitoring/adaptive_level.h"
#include "fcp/monitoring/monitor.h"

#include "apps/server/feedback_store.h"
#include "apps/server/json_messages.h"
#include "apps/server/model_store.h"
#include "apps/server/workers.h"

namespace fcp {

struct LiveOptions {
  MonitorOptions monitor{};
  std::optional<AdaptOptions> adapt{};  // none: levels stay
  bool optional = false;  // begins without a store that cannot be opened, and tries on
};

// A request that was answered.
struct AnsweredRequest {
  std::shared_ptr<const ServedModel> model;
  std::string id;
  internal::BatchData rows;
  std::vector<std::string> answers{};  // row by row, as a StoredAnswer; empty: they are not kept
  std::optional<Level> adapted{};      // the level it was answered at, where that is adapted
};

// Truths of a minute, which began `minute` minutes after 1970 did.
struct MinuteOfTruths {
  int64_t minute = 0;
  RateCount covered{};
  SizeCount size{};
};

struct LiveReport {
  MonitorReport monitor;
  std::vector<MinuteOfTruths> minutes;  // the last two hours, the oldest first
  std::vector<StoredTruth> recent;      // the last few truths, the newest first
};

// Since 1970.
double now_seconds();
// "2026-11-16T05:07", in UTC, of the minute that began so many minutes after 1970 did.
std::string minute_text(int64_t minute);

class LiveState {
 public:
  static constexpr const char* kWorksAgain = "state: works again";  // as it is heard

  using OpenStore = std::function<std::unique_ptr<FeedbackStore>()>;

  // `heard`: of alarms and of trouble with the store, in one line each, from the state's thread.
  LiveState(OpenStore open, const ModelStore& models, const LiveOptions& options,
            std::function<void(const std::string&)> heard);
  ~LiveState();

  // The level of an answer to a request that names none; none where levels stay.
  std::optional<Level> adapted_level(const ServedModel& model) const;

  // done: "" when all rows are on the disk, or what is wrong; `kept`: what is kept under the id
  // already, and then none of the rows is added. False where too much waits; done is then not
  // called.
  using Kept = std::vector<WaitingPrediction>;
  bool remember(AnsweredRequest request,
                std::function<void(const std::string& error, const Kept& kept)> done);

  // Truths of a model's predictions. Those of a version that is served no longer are judged by the
  // answer that was given, and by its scores once it is served again. done: one result for each, or
  // what is wrong with the disk; those of earlier pieces are then kept. Where the deadline (null:
  // none) is over between two pieces, the rest is not taken.
  using Learned = std::function<void(const std::vector<TruthResult>&, const std::string& error)>;
  bool learn(std::string model, std::vector<TruthReport> truths, std::shared_ptr<Deadline> deadline,
             Learned done);

  // What the monitor of the newest version has found; none before the model is known. At most half
  // a second older than what callers were told.
  std::optional<MonitorReport> report(const std::string& model) const;
  std::optional<LiveReport> live_report(const std::string& model) const;
  size_t waiting() const { return waiting_; }
  size_t truths() const { return truths_; }

  // Whether the last transaction was kept, none takes too long, and more can wait. While there is
  // trouble the store is tried twice a second.
  bool is_healthy() const;
  size_t errors() const { return errors_; }  // transactions that failed

 private:
  struct Watched {
    std::shared_ptr<const ServedModel> model;
    std::unique_ptr<Monitor> monitor;
    std::optional<AdaptiveLevel> level;
    size_t alarms = 0;
    int64_t last = 0;     // number of the last truth that was heard of
    size_t not_kept = 0;  // truths since the monitor was kept
    std::deque<StoredTruth> recent;
    std::deque<MinuteOfTruths> minutes;
  };
  // Truths that a model's monitor has not heard of yet, and the level after them.
  struct Fresh {
    Watched* watched;
    std::vector<StoredTruth> truths;
    std::optional<AdaptiveLevel> level;
  };
  struct Task {
    std::function<void()> work;                          // an Error undoes the transaction
    std::function<void(const std::string& error)> tell;  // "" when it is on the disk
    size_t rows = 1;                                     // that it reads or writes
  };
  struct Lesson;
  using LessonPointer = std::shared_ptr<Lesson>;

  static constexpr size_t kRowsAtOnce = 200;  // in one transaction

  void open();
  bool put(Task task);
  bool looks_by_itself() const;
  void work();
  void run(const std::vector<Task>& tasks);
  void note_trouble(const std::string& error);
  std::vector<Fresh> read_fresh();
  void hear(const std::vector<Fresh>& fresh);
  void tell_alarms();
  void keep_monitors();
  std::vector<Task> wait_for_tasks();
  void publish_if_due();
  void publish();
  void watch_newest();
  void watch(const std::shared_ptr<const ServedModel>& model);
  std::unique_ptr<Monitor> new_monitor(const ServedModel& model) const;
  void replay_monitor(Watched& watched);
  AdaptiveLevel replayed_level(const ServedModel& model);
  LevelKey level_key(const ServedModel& model) const;
  MonitorKey monitor_key(const ServedModel& model) const;
  std::shared_ptr<const ServedModel> served(const std::string& model,
                                            const std::string& sha256) const;
  void each_judged(const ServedModel& model, int64_t after,
                   const std::function<void(const StoredTruth&)>& take);
  void judge(const ServedModel& model, std::span<StoredTruth* const> truths) const;
  bool is_at_its_end();
  void go_on(Task task);
  void go_on(const LessonPointer& lesson);
  void end(const LessonPointer& lesson, const std::string& error);
  Task look_up(const LessonPointer& lesson);
  void judge_piece(Lesson& lesson) const;
  void judge_together(Lesson& lesson, const std::vector<size_t>& which) const;
  Task write(const LessonPointer& lesson);
  void watch_truth(Watched& watched, const StoredTruth& truth) const;
  static void see_truth(const StoredTruth& truth, AdaptiveLevel& level);
  bool is_watched(const StoredTruth& truth) const;
  void show_truth(Watched& watched, const StoredTruth& truth) const;

  OpenStore open_;
  std::unique_ptr<FeedbackStore> store_;  // null: it could not be opened yet
  const ModelStore& models_;
  LiveOptions options_;
  std::function<void(const std::string&)> heard_;
  std::map<std::string, Watched> by_model_;
  mutable std::mutex reports_mutex_;
  std::map<std::string, LiveReport> reports_;
  std::map<std::string, std::pair<std::string, double>>
      levels_;           // by model: hash of its file, level
  std::string trouble_;  // with the store, the last; "": none
  std::chrono::steady_clock::time_point published_{}, looked_{};
  bool owed_ = false;  // a report: something has happened since the last
  std::atomic<size_t> waiting_ = 0, truths_ = 0, errors_ = 0;
  std::atomic<bool> troubled_ = false;
  std::atomic<std::chrono::steady_clock::time_point> began_{};  // the transaction; none: 0
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> queue_;
  std::atomic<bool> ending_ = false;
  size_t lessons_ = 0;  // on their way; with mutex_
  std::thread thread_;
  Workers judges_{1};
};

}  // namespace fcp
