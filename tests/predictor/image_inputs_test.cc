#include "fcp/predictor/image_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/calibrate/memory_rows.h"
#include "tests/nn/graphs.h"

namespace fcp {
namespace {

using ::testing::ElementsAre;

std::unique_ptr<RowSource> two_pixels() {
  // Two rows of [3, 1, 2]: planes of red, green and blue.
  return std::make_unique<MemoryRows>(
      Array{{2, 3, 1, 2}, {1, 2, 3, 4, 5, 6, 7.0001f, 8, 9, 10, 11, 12}}, Array{});
}

TEST(ImageInputs, ChannelsComeLastWhereTheInputWantsThem) {
  const auto rows = images_for_input(two_pixels(), make_info("x", {kDynamic, 1, 2, 3}));
  EXPECT_THAT(rows->row_shape(), ElementsAre(1, 2, 3));
  Rows read;
  ASSERT_TRUE(rows->next(2, read));
  EXPECT_THAT(read.x.shape, ElementsAre(2, 1, 2, 3));
  EXPECT_THAT(read.x.values, ElementsAre(1, 3, 5, 2, 4, 6, 7.0001f, 9, 11, 8, 10, 12));
}

TEST(ImageInputs, PlanesAndPixels) {
  TensorInfo input = make_info("x", {kDynamic, 3, 1, 2});
  const auto same = images_for_input(two_pixels(), input);
  Rows read;
  ASSERT_TRUE(same->next(2, read));
  EXPECT_EQ(read.x.values[6], 7.0001f);
  input.type = ElementType::kUint8;
  EXPECT_TRUE(takes_pixels(input));
  const auto rounded = images_for_input(two_pixels(), input);
  ASSERT_TRUE(rounded->next(2, read));
  EXPECT_EQ(read.x.values[6], 7.0f);
}

}  // namespace
}  // namespace fcp
