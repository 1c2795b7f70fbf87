#include "fcp/distributed/communicator.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

namespace fcp {
namespace {

using testing::ElementsAre;

TEST(Serial, OneRankHoldsWhatAllRanksWould) {
  const auto ranks = make_serial_communicator();
  EXPECT_EQ(ranks->rank(), 0);
  EXPECT_EQ(ranks->size(), 1);
  uint64_t counts[] = {1, 2};
  double numbers[] = {1.5};
  ranks->all_reduce(counts, Reduce::kSum);
  ranks->all_reduce(numbers, Reduce::kMax);
  EXPECT_THAT(counts, ElementsAre(1, 2));
  EXPECT_THAT(numbers, ElementsAre(1.5));
  std::string bytes = "mine";
  ranks->broadcast(bytes, 0);
  EXPECT_EQ(bytes, "mine");
  EXPECT_THAT(ranks->gather("mine"), ElementsAre("mine"));
  ranks->barrier();
}

TEST(Serial, ThereIsNobodyElse) {
  const auto ranks = make_serial_communicator();
  std::string bytes;
  EXPECT_THROW(ranks->broadcast(bytes, 1), Error);
  EXPECT_THROW(ranks->send("x", 1), Error);
  EXPECT_THROW(ranks->receive(bytes, 0), Error);
  EXPECT_THROW(ranks->abort("wrong", 1), Error);
}

TEST(RunRanks, WithoutMpirunTheCallerGetsResultAndException) {
  ASSERT_FALSE(started_by_mpirun()) << "run this test without mpirun";
  EXPECT_EQ(run_ranks([](Communicator& ranks) { return 40 + ranks.size(); }), 41);
  EXPECT_THROW(run_ranks([](Communicator&) -> int { fail("wrong"); }), Error);
}

}  // namespace
}  // namespace fcp
