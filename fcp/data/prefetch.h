// Makes numbered items ahead of their consumer: several threads work, and the items are handed out
// in order whatever thread finished first. At most `ahead` items are ready or in the making, so
// memory is bounded and their buffers are used again and again. What the maker of an item throws
// reaches the consumer when it is that item's turn. Where the system gives no thread, the consumer
// makes the items itself.
//
// Tested by tests/data/prefetch_test.cc.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace fcp {

class Prefetch {
 public:
  // Fills `out`, of the item's size, from several threads at once.
  using Make = std::function<void(size_t item, std::span<float> out)>;

  // Items first … last − 1, each of `size` numbers.
  Prefetch(size_t first, size_t last, size_t size, size_t ahead, size_t threads, Make make);
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  // The next item. An item that could not be made throws, now and whenever it is asked for again.
  // There must be an item left.
  void take(std::span<float> out);

 private:
  struct Slot {
    std::vector<float> numbers;
    std::exception_ptr error;
    bool ready = false;
  };

  void work();
  Slot& slot(size_t item) { return slots_[item % slots_.size()]; }

  const size_t last_;
  const Make make_;
  std::vector<Slot> slots_;
  std::mutex mutex_;
  std::condition_variable ready_;  // the consumer's item
  std::condition_variable room_;   // a slot for the workers
  size_t claimed_;                 // the first item no thread has begun
  size_t taken_;                   // the first item the consumer has not had
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

// How many threads to use where 0 means all the machine has.
size_t thread_count(size_t wanted);

}  // namespace fcp
