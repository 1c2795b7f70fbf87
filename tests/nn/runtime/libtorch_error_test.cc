#include "fcp/nn/runtime/libtorch_error.h"

#include <gmock/gmock.h>
#include <torch/types.h>

namespace fcp {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

template <typename Work>
std::string told(const Work& work) {
  try {
    work();
  } catch (const c10::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("\n"));  // libtorch's own words come with a call stack
    try {
      fail_libtorch("node 'a'", error);
    } catch (const Error& ours) {
      return ours.what();
    }
  }
  return "";
}

TEST(LibtorchError, IsOneLineWithoutACallStack) {
  const std::string text = told([] { torch::ones({2, 3}).matmul(torch::ones({2, 3})); });
  EXPECT_THAT(text, AllOf(StartsWith("node 'a': "), HasSubstr("2x3"), Not(HasSubstr("\n")),
                          Not(HasSubstr("frame #"))));
}

TEST(LibtorchError, TooLittleMemoryIsBadAlloc) {
  try {
    torch::empty({int64_t{1} << 60}, torch::kByte);
    FAIL() << "there is more memory than expected";
  } catch (const c10::Error& error) {
    EXPECT_TRUE(is_out_of_memory(error)) << error.what_without_backtrace();
    EXPECT_THROW(fail_libtorch("node 'a'", error), std::bad_alloc);
  }
}

}  // namespace
}  // namespace fcp
