#include "apps/server/rate_limit.h"

#include <algorithm>
#include <iterator>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace fcp {

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
