#include "fcp/data/images/image_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

namespace fcp {
namespace {

TEST(ImageText, TransformComesBack) {
  ImageTransform before;
  before.resize = 0;
  before.size = {12, 34};
  before.crop = 7;
  before.mean = {0.1f, 0.2f, 1.0f / 3};
  before.deviation = {1, 2, 0.5f};
  const ImageTransform after = parse_transform(transform_text(before));
  EXPECT_EQ(after.resize, before.resize);
  EXPECT_EQ(after.size, before.size);
  EXPECT_EQ(after.crop, before.crop);
  EXPECT_EQ(after.mean, before.mean);
  EXPECT_EQ(after.deviation, before.deviation);
}

TEST(ImageText, DamageIsAnError) {
  const std::string text = transform_text({});
  EXPECT_THROW(parse_transform(text.substr(1)), Error);
  EXPECT_THROW(parse_transform("{}"), Error);
  std::string huge = text;
  huge.replace(huge.find("256"), 3, "1e99");
  EXPECT_THROW(parse_transform(huge), Error);
  EXPECT_THROW(parse_class_names("{\"a\":1}"), Error);
  EXPECT_THROW(parse_class_names("[\"a\",1]"), Error);
}

TEST(ImageText, ClassNamesComeBack) {
  const std::vector<std::string> names = {"cat", "dog \"x\"", "Käfer"};
  EXPECT_EQ(parse_class_names(class_names_text(names)), names);
}

}  // namespace
}  // namespace fcp
