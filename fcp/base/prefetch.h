// Prefetching: items that other threads make before they are asked for, handed out in order.
//
// At most `ahead` items wait or are being made, so memory is bounded, and each is made in the
// memory of one that its taker gave back. An item that cannot be made throws when its turn comes,
// then and whenever it is asked for again; those after it are not begun. Where the system gives no
// thread, items are made when they are asked for. No thread outlives the object. Tested by
// tests/base/prefetch_test.cc.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace fcp {

template <typename Item>
class Prefetcher {
 public:
  // Makes item `index` and returns whether there is one. The threads take ascending indices, and
  // several call this at once.
  using Make = std::function<bool(size_t index, Item& item)>;

  Prefetcher(size_t ahead, size_t threads, Make make)
      : make_(std::move(make)), slots_(std::max<size_t>(1, ahead)) {
    const size_t most = std::clamp<size_t>(threads, 1, slots_.size());
    threads_.reserve(most);
    try {
      while (threads_.size() < most) threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      // Those that started do the work; where none did, next() does.
    }
  }
  // One thread, which makes item after item.
  Prefetcher(size_t ahead, std::function<bool(Item& item)> make)
      : Prefetcher(ahead, 1, [make = std::move(make)](size_t, Item& item) { return make(item); }) {}

  ~Prefetcher() {
    {
      const std::lock_guard lock(mutex_);
      end_ = 0;
    }
    room_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Swaps the next item into `item`; false where there is none left.
  bool next(Item& item) {
    if (threads_.empty()) return make_here(item);
    std::unique_lock lock(mutex_);
    Slot& slot = slots_[taken_ % slots_.size()];
    made_.wait(lock, [&] { return slot.ready; });
    if (slot.error) std::rethrow_exception(slot.error);
    if (slot.none) return false;
    std::swap(item, slot.item);
    slot.ready = false;
    ++taken_;
    lock.unlock();
    room_.notify_all();
    return true;
  }

 private:
  struct Slot {
    Item item{};
    std::exception_ptr error;
    bool ready = false;
    bool none = false;  // ready, and there is no such item
  };

  bool make_here(Item& item) {
    if (taken_ >= end_) return false;
    if (make_(taken_, item)) return ++taken_, true;
    end_ = taken_;
    return false;
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      room_.wait(lock, [this] { return claimed_ >= end_ || claimed_ < taken_ + slots_.size(); });
      if (claimed_ >= end_) return;
      const size_t index = claimed_++;
      Slot& slot = slots_[index % slots_.size()];  // nobody else touches it until it is ready
      lock.unlock();
      try {
        slot.none = !make_(index, slot.item);
      } catch (...) {
        slot.error = std::current_exception();
      }
      lock.lock();
      if (slot.none || slot.error) end_ = std::min(end_, index);
      slot.ready = true;
      if (index == taken_) made_.notify_one();
    }
  }

  const Make make_;
  std::vector<Slot> slots_;
  std::mutex mutex_;
  std::condition_variable made_;                     // the taker's item
  std::condition_variable room_;                     // a slot for the threads, or the end
  size_t claimed_ = 0;                               // the first item that no thread has begun
  size_t taken_ = 0;                                 // the first item that was not taken
  size_t end_ = std::numeric_limits<size_t>::max();  // none is begun from here on
  std::vector<std::thread> threads_;
};

// A list of `size` items, each of which any thread can make by itself, prefetched from wherever the
// reading is. Who skips once will again, as ranks do that share a list: from then on no item is
// made that nobody has asked for.
template <typename Item>
class PrefetchedList {
 public:
  using Make = std::function<void(size_t index, Item& item)>;

  PrefetchedList(size_t size, size_t ahead, size_t threads, Make make)
      : size_(size), ahead_(ahead), threads_(threads), make_(std::move(make)) {}

  size_t size() const { return size_; }
  size_t position() const { return position_; }

  // Gives the next items to `take`, `count` at most, and returns how many there were. Where one
  // throws, reading goes on before the first of them.
  size_t next(size_t count, const std::function<void(size_t i, Item& item)>& take) {
    const size_t some = std::min(count, size_ - position_);
    if (some > 0 && !prefetcher_) start(skips_ ? position_ + some : size_);
    try {
      for (size_t i = 0; i < some && prefetcher_->next(item_); ++i) take(i, item_);
    } catch (...) {
      prefetcher_.reset();
      throw;
    }
    position_ += some;
    if (skips_) prefetcher_.reset();
    return some;
  }

  size_t skip(size_t count) {
    skips_ = true;
    prefetcher_.reset();
    const size_t some = std::min(count, size_ - position_);
    position_ += some;
    return some;
  }

  void rewind() {
    if (position_ > 0) prefetcher_.reset();
    position_ = 0;
  }

 private:
  void start(size_t last) {
    prefetcher_ = std::make_unique<Prefetcher<Item>>(
        std::min(ahead_, last - position_), threads_,
        [this, first = position_, last](size_t index, Item& item) {
          if (first + index >= last) return false;
          make_(first + index, item);
          return true;
        });
  }

  const size_t size_, ahead_, threads_;
  const Make make_;
  size_t position_ = 0;
  bool skips_ = false;
  Item item_{};
  std::unique_ptr<Prefetcher<Item>> prefetcher_;  // last: its threads use the rest
};

}  // namespace fcp
