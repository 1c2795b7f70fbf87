#include "apps/server/workers.h"

#include <new>
#include <utility>

namespace fcp {

Workers::Workers(size_t threads) {
  for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

void Workers::put(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (!ending_) queue_.push_back(std::exchange(work, nullptr));
  }
  if (work) return work();
  wake_.notify_one();
}

void Workers::end() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  for (std::thread& one : threads_) one.join();
  threads_.clear();
}

void Workers::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    {
      const std::function<void()> next = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      try {
        next();
      } catch (const std::bad_alloc&) {  // who asked is told so when his time is over
      }
    }  // what it holds is let go outside the lock
    lock.lock();
  }
}

}  // namespace fcp
