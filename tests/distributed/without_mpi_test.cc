// Linked with without_mpi.cc whatever the build found, as fcp is on a machine without MPI.
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/distributed/communicator.h"

namespace fcp {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

int job_size() {
  return run_ranks([](Communicator& ranks) { return ranks.size(); });
}

class WithoutMpi : public testing::TestWithParam<const char*> {
 protected:
  void TearDown() override { unsetenv(GetParam()); }
};

TEST_P(WithoutMpi, SeveralProcessesAreAnErrorRatherThanTheSameWorkTwice) {
  ASSERT_FALSE(built_with_mpi());
  EXPECT_EQ(mpi_library(), "");
  setenv(GetParam(), "2", 1);
  EXPECT_THAT(job_size, ThrowsMessage<Error>(HasSubstr("fcp was built without MPI")));
}

TEST_P(WithoutMpi, OneProcessIsServed) {
  EXPECT_EQ(job_size(), 1);
  setenv(GetParam(), "1", 1);
  EXPECT_TRUE(started_by_mpirun());
  EXPECT_EQ(job_size(), 1);
}

INSTANTIATE_TEST_SUITE_P(Starters, WithoutMpi, testing::Values("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"));

TEST(WithoutMpiUnderPmix, AnUnknownNumberOfProcessesIsAnError) {
  setenv("PMIX_RANK", "0", 1);
  EXPECT_TRUE(started_by_mpirun());
  EXPECT_THAT(job_size, ThrowsMessage<Error>(HasSubstr("fcp was built without MPI")));
  unsetenv("PMIX_RANK");
}

}  // namespace
}  // namespace fcp
