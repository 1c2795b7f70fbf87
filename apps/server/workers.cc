#include "apps/server/workers.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>

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

RateLimit::RateLimit(double rate, size_t most_clients)
    : rate_(rate), most_(std::max(rate, 1.0)), most_clients_(most_clients) {}

void RateLimit::fill(Bucket& bucket, Time now) const {
  const double seconds = std::chrono::duration<double>(now - bucket.filled).count();
  bucket.tokens = std::min(most_, bucket.tokens + seconds * rate_);
  bucket.filled = now;
}

// Not more often than once a second: it looks at all.
void RateLimit::forget_full(Time now) {
  if (now - swept_ < std::chrono::seconds(1)) return;
  swept_ = now;
  for (auto each = buckets_.begin(); each != buckets_.end();) {
    fill(each->second, now);
    each = each->second.tokens >= most_ ? buckets_.erase(each) : std::next(each);
  }
}

bool RateLimit::allows(const std::string& client, Time now) {
  if (rate_ <= 0) return true;
  auto found = buckets_.find(client);
  if (found == buckets_.end()) {
    if (buckets_.size() >= most_clients_) forget_full(now);
    const bool room = buckets_.size() < most_clients_;
    found = buckets_.try_emplace(room ? client : "", Bucket{most_, now}).first;
  }
  Bucket& bucket = found->second;
  fill(bucket, now);
  if (bucket.tokens < 1) return false;
  bucket.tokens -= 1;
  return true;
}

std::string client_of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& found = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
    return {reinterpret_cast<const char*>(&found), sizeof found};
  }
  if (address.ss_family != AF_INET6) return "";
  const auto& found = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  const auto* bytes = reinterpret_cast<const char*>(&found);
  const bool mapped = IN6_IS_ADDR_V4MAPPED(&found);
  return mapped ? std::string(bytes + 12, 4) : std::string(bytes, 8);
}

std::string address_text(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text, sizeof text);
  } else if (address.ss_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, text,
              sizeof text);
  }
  return text;
}

}  // namespace fcp
