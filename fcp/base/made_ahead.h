// Items that a thread of its own makes ahead of whoever takes them, one after the other: at most
// `ahead` of them wait, so that memory is bounded. Taking one hands the taker's old item back,
// whose memory the maker may use again. What the maker throws reaches the taker at that item's
// turn, and nothing is made afterwards. Where the system gives no thread, an item is made when it
// is asked for. Tested by tests/base/made_ahead_test.cc.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace fcp {

template <typename Item>
class MadeAhead {
 public:
  // Fills an item and returns whether there was one more; not called again where there was not.
  using Make = std::function<bool(Item&)>;

  MadeAhead(size_t ahead, Make make) : make_(std::move(make)), slots_(std::max<size_t>(1, ahead)) {
    try {
      thread_ = std::thread([this] { work(); });
    } catch (const std::system_error&) {
      // next() makes them.
    }
  }
  ~MadeAhead() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  MadeAhead(const MadeAhead&) = delete;
  MadeAhead& operator=(const MadeAhead&) = delete;

  // False where there is none left.
  bool next(Item& item) {
    if (!thread_.joinable()) return make_(item);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return made_ > taken_ || ended_; });
    if (made_ == taken_) {
      if (error_) std::rethrow_exception(error_);
      return false;
    }
    std::swap(item, slots_[taken_ % slots_.size()]);
    ++taken_;
    lock.unlock();
    changed_.notify_all();
    return true;
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stopping_ || made_ < taken_ + slots_.size(); });
      if (stopping_) return;
      Item& mine = slots_[made_ % slots_.size()];  // nobody else touches it until it is counted
      lock.unlock();
      bool more = false;
      std::exception_ptr error;
      try {
        more = make_(mine);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      if (more) ++made_;
      ended_ = !more;
      error_ = error;
      changed_.notify_all();
      if (!more) return;
    }
  }

  const Make make_;
  std::vector<Item> slots_;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t made_ = 0, taken_ = 0;
  bool ended_ = false, stopping_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace fcp
