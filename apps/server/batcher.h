// Micro-batching: requests that wait for the same model are answered together, because a network
// runs a hundred rows in little more time than one. Nobody waits for others to come: the thread
// takes whatever is there when it is free.
//
// Bounded: with too many rows in the queue a request is refused.
// Tested by tests/server/batcher_test.cc.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "apps/server/served_model.h"

namespace fcp {

// Ours or libtorch's.
bool ran_out_of_memory(const std::exception& problem);

class Batcher {
 public:
  // What is wrong where memory has run out; nothing is wrong with the rows.
  static constexpr const char* kOutOfMemory = "out of memory";

  // What becomes of a job: an answer, or else what is wrong.
  using Done = std::function<void(const internal::AnswerData*, const std::string& error)>;

  struct Options {
    size_t batch_rows = 4'096;    // run together at most
    size_t queued_rows = 65'536;  // refused beyond
    // Hears of every run: the model and its rows.
    std::function<void(const ServedModel& model, size_t rows)> ran{};
  };

  Batcher(std::shared_ptr<const ServedModel> model, const Options& options);
  // Answers what is queued, then ends.
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  // False where the queue is full; `done` is then not called. Otherwise it is called once, from the
  // batcher's thread.
  bool put(internal::BatchData rows, std::vector<Level> levels, Done done);

  const std::shared_ptr<const ServedModel>& model() const { return model_; }
  size_t batches() const { return batches_; }  // run so far
  size_t queued() const;                       // rows
  bool is_full() const { return queued() >= options_.queued_rows; }

 private:
  struct Job {
    internal::BatchData rows;
    std::vector<Level> levels;
    Done done;
  };

  void work();
  std::vector<Job> take_jobs();
  void run(const std::vector<Job>& jobs);

  std::shared_ptr<const ServedModel> model_;
  Options options_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> queue_;
  size_t queued_ = 0;  // rows
  std::atomic<size_t> batches_ = 0;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace fcp
