// Ranks that are threads of this process, with the traffic counted: distributed code runs over any
// number of them without MPI. A rank that throws ends the others, as run_ranks does, and the
// exception comes out of run_threads.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "fcp/distributed/communicator.h"

namespace fcp {

// What a job has sent. A collective operation counts once, with the bytes one rank puts into it.
struct Traffic {
  uint64_t collectives = 0;
  uint64_t collective_bytes = 0;
  uint64_t largest_collective = 0;
  uint64_t messages = 0;  // from rank to rank
  uint64_t message_bytes = 0;
};

class ThreadJob {
 public:
  explicit ThreadJob(int size) : size_(size), seats_(static_cast<size_t>(size)) {}

  struct Ended : std::exception {
    const char* what() const noexcept override { return "another rank failed"; }
  };

  int size() const { return size_; }
  const Traffic& traffic() const { return traffic_; }
  std::exception_ptr error() const { return error_; }

  // All ranks meet, each with an object of its own; the last to come runs `act` over all of them,
  // while the others wait.
  template <typename T>
  void meet(int rank, T* seat, size_t bytes, const std::function<void(std::vector<T*>&)>& act) {
    std::unique_lock lock(mutex_);
    seats_[static_cast<size_t>(rank)] = seat;
    const uint64_t meeting = meetings_;
    if (++arrived_ == size_) {
      std::vector<T*> all;
      for (void* other : seats_) all.push_back(static_cast<T*>(other));
      act(all);
      ++traffic_.collectives;
      traffic_.collective_bytes += bytes;
      traffic_.largest_collective = std::max<uint64_t>(traffic_.largest_collective, bytes);
      arrived_ = 0;
      ++meetings_;
      changed_.notify_all();
    }
    wait(lock, [&] { return meetings_ != meeting; });
  }

  // Waits for room of one message, as a large message of MPI does.
  void send(std::string_view bytes, int from, int to) {
    std::unique_lock lock(mutex_);
    auto& box = boxes_[{from, to}];
    wait(lock, [&] { return box.empty(); });
    box.emplace_back(bytes);
    ++traffic_.messages;
    traffic_.message_bytes += bytes.size();
    changed_.notify_all();
  }

  std::string receive(int from, int to) {
    std::unique_lock lock(mutex_);
    auto& box = boxes_[{from, to}];
    wait(lock, [&] { return !box.empty(); });
    std::string bytes = std::move(box.front());
    box.pop_front();
    changed_.notify_all();
    return bytes;
  }

  void end(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    changed_.notify_all();
  }

 private:
  template <typename Condition>
  void wait(std::unique_lock<std::mutex>& lock, const Condition& condition) {
    changed_.wait(lock, [&] { return condition() || error_; });
    if (!condition()) throw Ended();
  }

  int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<void*> seats_;
  std::map<std::pair<int, int>, std::deque<std::string>> boxes_;
  Traffic traffic_;
  std::exception_ptr error_;
  int arrived_ = 0;
  uint64_t meetings_ = 0;
};

class ThreadCommunicator : public Communicator {
 public:
  ThreadCommunicator(ThreadJob& job, int rank) : job_(job), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return job_.size(); }
  void all_reduce(std::span<uint64_t> values, Reduce how) override { reduce(values, how); }
  void all_reduce(std::span<double> values, Reduce how) override { reduce(values, how); }

  void broadcast(std::string& bytes, int root) override {
    job_.meet<std::string>(rank_, &bytes, bytes.size(), [&](std::vector<std::string*>& all) {
      const std::string sent = *all[static_cast<size_t>(root)];
      for (std::string* other : all) *other = sent;
    });
  }

  std::vector<std::string> gather(std::string_view bytes) override {
    std::vector<std::string> gathered = {std::string(bytes)};
    using Seat = std::vector<std::string>;
    job_.meet<Seat>(rank_, &gathered, bytes.size(), [](std::vector<Seat*>& all) {
      for (size_t rank = 1; rank < all.size(); ++rank) {
        all[0]->push_back(std::move(all[rank]->front()));
        all[rank]->clear();
      }
    });
    return gathered;
  }

  void send(std::string_view bytes, int to) override { job_.send(bytes, rank_, to); }
  void receive(std::string& bytes, int from) override { bytes = job_.receive(from, rank_); }
  void barrier() override {
    job_.meet<ThreadCommunicator>(rank_, this, 0, [](std::vector<ThreadCommunicator*>&) {});
  }
  void abort(const std::string& message, int) override { throw std::runtime_error(message); }

 private:
  template <typename T>
  void reduce(std::span<T> values, Reduce how) {
    using Seat = std::span<T>;
    job_.meet<Seat>(rank_, &values, values.size_bytes(), [how](std::vector<Seat*>& all) {
      Seat& first = *all[0];
      for (size_t rank = 1; rank < all.size(); ++rank) {
        const Seat& other = *all[rank];
        if (other.size() != first.size()) throw std::runtime_error("spans of different lengths");
        for (size_t i = 0; i < first.size(); ++i) {
          first[i] = how == Reduce::kSum   ? first[i] + other[i]
                     : how == Reduce::kMin ? std::min(first[i], other[i])
                                           : std::max(first[i], other[i]);
        }
      }
      for (size_t rank = 1; rank < all.size(); ++rank) {
        std::copy(first.begin(), first.end(), all[rank]->begin());
      }
    });
  }

  ThreadJob& job_;
  int rank_;
};

// Runs the body on `size` ranks; rethrows what the first failing rank threw.
inline Traffic run_threads(int size, const std::function<void(Communicator&)>& body) {
  ThreadJob job(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&job, &body, rank] {
      try {
        ThreadCommunicator ranks(job, rank);
        body(ranks);
      } catch (...) {
        job.end(std::current_exception());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (job.error()) std::rethrow_exception(job.error());
  return job.traffic();
}

}  // namespace fcp
