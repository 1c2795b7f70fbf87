// One queue of a Batcher, with its thread.
// Tested by tests/server/batcher_test.cc.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "apps/server/batcher.h"

namespace fcp {

class BatchQueue {
 public:
  BatchQueue(const ServedModel& model, const Batcher::Options& options);
  ~BatchQueue();
  BatchQueue(const BatchQueue&) = delete;
  BatchQueue& operator=(const BatchQueue&) = delete;

  bool put(internal::BatchData rows, std::vector<Level> levels, std::shared_ptr<Deadline> deadline,
           Batcher::Done done);
  size_t batches() const { return batches_; }
  size_t queued() const;

 private:
  struct Job {
    internal::BatchData rows;
    std::vector<Level> levels;
    std::shared_ptr<Deadline> deadline;
    Batcher::Done done;
    size_t taken = 0;                              // rows that are run, or are being run
    std::vector<internal::AnswerData> answered{};  // of those before

    size_t left() const { return rows.rows() - taken; }
    bool is_over() const { return deadline != nullptr && deadline->is_over(); }
  };
  using JobPointer = std::shared_ptr<Job>;
  struct Slice {
    JobPointer job;
    size_t first, count;
  };

  void work();
  std::vector<Slice> take_slices(std::vector<JobPointer>& over);
  void drop_over(std::vector<JobPointer>& over);
  void run(const std::vector<Slice>& slices);
  void answer(const Slice& slice, internal::AnswerData part);
  void give_up(const JobPointer& job, const std::string& error);
  size_t slice_rows(size_t levels) const;
  void note_time(size_t rows, size_t levels, double seconds);

  const ServedModel& model_;
  Batcher::Options options_;
  std::map<size_t, double> row_seconds_;  // by the number of levels; of the thread alone
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<JobPointer> queue_;  // that have rows left
  size_t queued_ = 0;             // rows
  std::atomic<size_t> batches_ = 0;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace fcp
