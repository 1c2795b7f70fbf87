#include "fcp/base/interrupt.h"

#include <csignal>

#include <gtest/gtest.h>

namespace fcp {
namespace {

TEST(Interrupt, IsThrownAfterASignalAndNotBefore) {
  catch_interrupts();
  EXPECT_NO_THROW(check_interrupted());
  EXPECT_EXIT(
      {
        std::raise(SIGINT);
        try {
          check_interrupted();
        } catch (const Interrupted& interrupted) {
          std::_Exit(interrupted.exit_code());
        }
        std::_Exit(0);
      },
      testing::ExitedWithCode(130), "");
}

TEST(Interrupt, ASecondSignalEndsTheProcess) {
  catch_interrupts();
  EXPECT_EXIT(
      {
        std::raise(SIGTERM);
        std::raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace fcp
