// Threads for work that the event loop must not do, in the order in which it is given.
// Tested by tests/server/workers_test.cc.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace fcp {

class Workers {
 public:
  explicit Workers(size_t threads);
  ~Workers() { end(); }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Work throws nothing but what memory that has run out throws, and is then given up.
  void put(std::function<void()> work);
  // Does what is waiting. What is put later is done at once, by the thread that puts it.
  void end();

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace fcp
