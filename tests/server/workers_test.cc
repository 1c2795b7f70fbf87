#include "apps/server/workers.h"

#include <atomic>
#include <cstring>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

namespace fcp {
namespace {

TEST(Workers, DoAllInOrderAndThenEnd) {
  std::vector<int> done;
  Workers one(1);
  for (int i = 0; i < 1000; ++i) one.put([&done, i] { done.push_back(i); });
  one.end();
  ASSERT_EQ(done.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(done[static_cast<size_t>(i)], i);
  one.put([&] { done.push_back(-1); });  // by this thread
  EXPECT_EQ(done.back(), -1);
}

// Two that wait for each other only end where both are worked on at once.
TEST(Workers, WorkAtTheSameTime) {
  std::atomic<int> here = 0;
  Workers two(2);
  for (int i = 0; i < 2; ++i) {
    two.put([&] {
      ++here;
      while (here < 2) std::this_thread::yield();
    });
  }
  two.end();
  EXPECT_EQ(here, 2);
}

}  // namespace
namespace {

using std::chrono::milliseconds;

const RateLimit::Time kStart = RateLimit::Time() + std::chrono::hours(1);

size_t allowed(RateLimit& limit, const std::string& client, RateLimit::Time now, size_t tries) {
  size_t count = 0;
  for (size_t i = 0; i < tries; ++i) count += limit.allows(client, now) ? 1 : 0;
  return count;
}

TEST(RateLimit, LetsASecondsWorthThroughAndThenTheRate) {
  RateLimit limit(10);
  EXPECT_EQ(allowed(limit, "a", kStart, 100), 10u);
  EXPECT_EQ(allowed(limit, "b", kStart, 100), 10u);
  EXPECT_EQ(allowed(limit, "a", kStart + milliseconds(250), 100), 2u);
  size_t count = 0;
  for (int ms = 300; ms <= 20'300; ++ms) {
    count += limit.allows("a", kStart + milliseconds(ms)) ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(count), 200, 2);
}

TEST(RateLimit, AllowsLessThanOneASecond) {
  RateLimit limit(0.5);
  EXPECT_TRUE(limit.allows("a", kStart));
  EXPECT_FALSE(limit.allows("a", kStart + milliseconds(1'900)));
  EXPECT_TRUE(limit.allows("a", kStart + milliseconds(2'000)));
}

TEST(RateLimit, IsOffAtZero) {
  RateLimit limit(0);
  EXPECT_EQ(allowed(limit, "a", kStart, 1000), 1000u);
  EXPECT_EQ(limit.clients(), 0u);
}

TEST(RateLimit, KeepsFewClients) {
  RateLimit limit(1, 8);
  for (int i = 0; i < 100; ++i) limit.allows(std::to_string(i), kStart);
  EXPECT_LE(limit.clients(), 9u);
  // Newcomers share a bucket, which is empty by now; later there is room again.
  EXPECT_FALSE(limit.allows("new", kStart));
  EXPECT_TRUE(limit.allows("new", kStart + milliseconds(5'000)));
  EXPECT_LE(limit.clients(), 2u);
}

sockaddr_storage address_of(const char* text) {
  sockaddr_storage storage{};
  sockaddr_in plain{};
  sockaddr_in6 six{};
  if (inet_pton(AF_INET, text, &plain.sin_addr) == 1) {
    plain.sin_family = AF_INET;
    std::memcpy(&storage, &plain, sizeof plain);
  } else if (inet_pton(AF_INET6, text, &six.sin6_addr) == 1) {
    six.sin6_family = AF_INET6;
    std::memcpy(&storage, &six, sizeof six);
  }
  return storage;
}

TEST(RateLimit, KnowsClientsByTheirAddress) {
  const auto of = [](const char* text) { return client_of(address_of(text)); };
  EXPECT_EQ(of("10.0.0.1"), of("::ffff:10.0.0.1"));
  EXPECT_NE(of("10.0.0.1"), of("10.0.0.2"));
  EXPECT_EQ(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::2"));
  EXPECT_NE(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
}

}  // namespace
}  // namespace fcp
