#include "fcp/base/progress.h"

#include <gtest/gtest.h>

namespace fcp {
namespace {

TEST(Progress, SaysShareRateAndTimeLeft) {
  EXPECT_EQ(progress_text("run", 250, 1000, 5),
            "run [======                  ]  25% 50/s, 15s left");
  EXPECT_EQ(progress_text("run", 1000, 1000, 5), "run [========================] 100% 200/s");
  EXPECT_EQ(progress_text("run", 10, 73000, 10),
            "run [                        ]   0% 1.00/s, 20h16m left");
  EXPECT_EQ(progress_text("run", 20000, 50000, 1),
            "run [=========               ]  40% 20k/s, 2s left");
}

TEST(Progress, WithoutATotalSaysCountAndRate) {
  EXPECT_EQ(progress_text("read", 3000000, 0, 2), "read 3000000 1.5M/s");
}

TEST(Progress, BeforeAnyTimeHasPassedNothingIsDividedByZero) {
  EXPECT_EQ(progress_text("run", 0, 10, 0), "run [                        ]   0% 0.00/s");
}

TEST(Progress, AsksForTheNoteOnlyWhenDrawn) {
  Progress progress("quiet", 10, /*enabled=*/false);
  progress.advance(1, []() -> std::string { throw std::logic_error("drawn"); });
}

}  // namespace
}  // namespace fcp
