// Micro-batching: requests that wait for the same model are answered together, because a network
// runs a hundred rows in little more time than one. Nobody waits for others to come: a thread takes
// whatever is there when it is free.
//
// Fair: requests of few rows have a thread of their own, so that large ones do not delay them.
// Others are run in slices of at most `batch_rows`, fewer where a slice would take longer than
// `batch_seconds`, and after a slice it is the next one's turn. Slices bound memory, too. How rows
// are sliced changes no bit of an answer.
//
// Bounded: with too many rows in a queue a request is refused; one whose deadline is over is
// dropped between two slices.
// Tested by tests/server/batcher_test.cc.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/server/served_model.h"
#include "apps/server/workers.h"

namespace fcp {

// Ours or libtorch's.
bool ran_out_of_memory(const std::exception& problem);

class BatchQueue;

class Batcher {
 public:
  // What is wrong where memory has run out; nothing is wrong with the rows.
  static constexpr const char* kOutOfMemory = "out of memory";
  static constexpr const char* kTimeIsOver =
      "the time for the answer is over, or its client has gone";

  // What becomes of a job: an answer, or else what is wrong.
  using Done = std::function<void(const internal::AnswerData*, const std::string& error)>;

  struct Options {
    size_t batch_rows = 4'096;    // run together at most
    size_t queued_rows = 65'536;  // refused beyond, in each of the two queues
    double batch_seconds = 0.05;  // for rows that are run together, where more than one are
    size_t few_rows = 64;         // of a request that large ones do not delay
    // Hears of every run: the model and its rows. Called by two threads.
    std::function<void(const ServedModel& model, size_t rows)> ran{};
  };

  Batcher(std::shared_ptr<const ServedModel> model, const Options& options);
  // Answers what is queued, then ends.
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  // False where the queue is full; `done` is then not called. Otherwise it is called once, from a
  // thread of the batcher. deadline: null where the request has none.
  bool put(internal::BatchData rows, std::vector<Level> levels, std::shared_ptr<Deadline> deadline,
           Done done);

  const std::shared_ptr<const ServedModel>& model() const { return model_; }
  size_t queued() const;  // rows
  bool is_full() const;   // one of the queues

 private:
  std::shared_ptr<const ServedModel> model_;
  Options options_;
  std::unique_ptr<BatchQueue> few_, many_;
};

}  // namespace fcp
