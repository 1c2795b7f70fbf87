// How long the answer to a request is wanted: until its time has passed, or its client has gone.
// The connection and those who work on the answer share one; all functions may be called from any
// thread.
// Tested by tests/server/http_server_test.cc.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>

namespace fcp {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Deadline(std::chrono::duration<double> time)
      : end_(
            (Clock::now() + std::chrono::duration_cast<Clock::duration>(time)).time_since_epoch()) {
  }

  // To an earlier end, from now on. A later one changes nothing.
  void shorten(std::chrono::duration<double> time) {
    const Clock::duration now = Clock::now().time_since_epoch(), left = end_.load() - now;
    if (time < left) end_ = now + std::chrono::duration_cast<Clock::duration>(time);
  }

  // Nobody waits any more.
  void cancel() { cancelled_ = true; }

  bool has_passed() const { return Clock::now().time_since_epoch() >= end_.load(); }
  bool is_over() const { return cancelled_ || has_passed(); }

 private:
  std::atomic<Clock::duration> end_;
  std::atomic<bool> cancelled_ = false;
};

}  // namespace fcp
