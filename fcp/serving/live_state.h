// The memory of a server: predictions and truths in a FeedbackStore, and a monitor per model that
// hears of every truth. One thread does it all; whatever waits when it is free becomes one
// transaction, and callers hear of it when it is on the disk.
//
// After a restart the monitors are as they were: they are replayed from the truths that are kept.
// A new version of a model starts a new monitor, because its calibration is another.
// Tested by tests/serving/live_state_test.cc and tests/cli/test_serve_state.py.
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
#include <string>
#include <thread>
#include <vector>

#include "fcp/monitoring/monitor.h"
#include "fcp/serving/feedback_store.h"
#include "fcp/serving/model_store.h"
#include "fcp/serving/truth.h"

namespace fcp {

class LiveState {
 public:
  // `heard`: of alarms, in one line each, from the state's thread.
  LiveState(std::unique_ptr<FeedbackStore> store, const ModelStore& models,
            const MonitorOptions& options, std::function<void(const std::string&)> heard);
  ~LiveState();

  // Rows of an answered request. done: "" when they are on the disk, or what is wrong; `taken`:
  // the id is in use already. False where too much waits; done is then not called.
  bool remember(std::shared_ptr<const ServedModel> model, std::string id, ServedRows rows,
                std::function<void(const std::string& error, bool taken)> done);

  // Truths of a model's predictions. done: one result for each, or what is wrong with the disk.
  bool learn(std::string model, std::vector<TruthReport> truths,
             std::function<void(const std::vector<TruthResult>&, const std::string& error)> done);

  // What the monitor of the newest version has found; none before the model is known. At most half
  // a second older than what callers were told.
  std::optional<MonitorReport> report(const std::string& model) const;
  size_t waiting() const { return waiting_; }
  size_t truths() const { return truths_; }

 private:
  struct Watched {
    std::shared_ptr<const ServedModel> model;
    std::unique_ptr<Monitor> monitor;
    size_t alarms = 0;
  };
  struct Task {
    std::function<void()> work;                          // an Error undoes the transaction
    std::function<void(const std::string& error)> tell;  // "" when it is on the disk
  };

  bool put(Task task);
  void work();
  void run(const std::vector<Task>& tasks);
  void hear_fresh();
  std::vector<Task> wait_for_tasks();
  void publish_if_due();
  void publish();
  Watched& watched(const std::shared_ptr<const ServedModel>& model);
  TruthResult take_truth(const std::string& model, const TruthReport& truth);
  void watch_truth(Watched& watched, const StoredTruth& truth);

  std::unique_ptr<FeedbackStore> store_;
  const ModelStore& models_;
  MonitorOptions options_;
  std::function<void(const std::string&)> heard_;
  std::map<std::string, Watched> by_model_;
  std::vector<StoredTruth> fresh_;  // of the transaction; the monitors hear of them after it
  mutable std::mutex reports_mutex_;
  std::map<std::string, MonitorReport> reports_;
  std::chrono::steady_clock::time_point published_{};
  bool owed_ = false;  // a report: something has happened since the last
  std::atomic<size_t> waiting_ = 0, truths_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> queue_;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

}  // namespace fcp
