#include "fcp/data/prefetch.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace fcp {

Prefetch::Prefetch(size_t first, size_t last, size_t size, size_t ahead, size_t threads, Make make)
    : last_(last), make_(std::move(make)), claimed_(first), taken_(first) {
  slots_.resize(std::max<size_t>(1, std::min(ahead, last - first)));
  for (Slot& one : slots_) one.numbers.resize(size);
  threads = std::min(std::max<size_t>(1, threads), slots_.size());
  threads_.reserve(threads);
  try {
    for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    // Those that started do the work; where none did, take() does.
  }
}

Prefetch::~Prefetch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  room_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Prefetch::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    room_.wait(lock, [this] {
      return stopping_ || claimed_ == last_ || claimed_ < taken_ + slots_.size();
    });
    if (stopping_ || claimed_ == last_) return;
    const size_t item = claimed_++;
    Slot& mine = slot(item);  // nobody else touches it until it is ready
    lock.unlock();
    try {
      make_(item, mine.numbers);
    } catch (...) {
      mine.error = std::current_exception();
    }
    lock.lock();
    mine.ready = true;
    if (item == taken_) ready_.notify_one();
  }
}

void Prefetch::take(std::span<float> out) {
  if (threads_.empty()) {
    make_(taken_, out);
    ++taken_;
    return;
  }
  std::unique_lock lock(mutex_);
  Slot& next = slot(taken_);
  ready_.wait(lock, [&] { return next.ready; });
  if (next.error) std::rethrow_exception(next.error);
  lock.unlock();
  std::copy(next.numbers.begin(), next.numbers.end(), out.begin());
  lock.lock();
  next.ready = false;
  ++taken_;
  lock.unlock();
  // All of them: at the end every waiting thread has to see that nothing is left.
  room_.notify_all();
}

size_t thread_count(size_t wanted) {
  return wanted > 0 ? wanted : std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace fcp
