// A progress line for long work: share done, rate, time left and one free note (the loss, say).
// It is drawn on stderr, at most ten times a second; where stderr is no terminal it is a line of
// its own every 30 seconds.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

namespace fcp {

class Progress {
 public:
  // total = 0: the end is not known; only count and rate are shown. Silent when `enabled` is false.
  Progress(std::string label, size_t total, bool enabled);
  ~Progress();  // clears the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `note` is asked for only when the line is drawn.
  void advance(size_t count, const std::function<std::string()>& note = {});

 private:
  using Clock = std::chrono::steady_clock;

  std::string label_;
  size_t total_;
  size_t done_ = 0;
  bool visible_;
  Clock::time_point start_;
  Clock::time_point last_drawn_;
};

// "done of total", rate and time left as the progress line shows them; total = 0 when unknown.
std::string progress_text(const std::string& label, size_t done, size_t total, double seconds);

}  // namespace fcp
