// Decoding, resizing, cropping and normalising against Pillow and torchvision: the cases that
// make_image_cases.py wrote. Bytes are equal; normalised and blurred numbers differ by rounding
// alone.
#include <cmath>
#include <fstream>
#include <iomanip>
#include <map>
#include <sstream>

#include <gtest/gtest.h>

#include "fcp/data/images/image_transform.h"
#include "fcp/data/images/segmentation.h"
#include "fcp/data/npy.h"

namespace fcp {
namespace {

struct ImageCase {
  std::string kind, file, expected;
  std::vector<int> numbers;
};

std::vector<ImageCase> image_cases() {
  std::ifstream file(FCP_PARITY_DIR "/image_cases/cases.txt");
  std::vector<ImageCase> cases;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    ImageCase one;
    words >> one.kind >> std::quoted(one.file) >> std::quoted(one.expected);
    for (int number; words >> number;) one.numbers.push_back(number);
    cases.push_back(one);
  }
  return cases;
}

Array as_array(const Image& image) {
  Array array{{image.height, image.width}, {image.pixels.begin(), image.pixels.end()}};
  if (image.channels > 1) array.shape.push_back(image.channels);
  return array;
}

Array found(const ImageCase& one) {
  const std::vector<int>& n = one.numbers;
  if (one.kind == "labels") return as_array(read_label_image(one.file));
  if (one.kind == "blurred") {
    return blurred_labels(read_label_image(one.file), {.drop_unlabelled = false});
  }
  const Image image = read_image(one.file);
  if (one.kind == "decode") return as_array(image);
  if (one.kind == "bilinear") return as_array(resize_bilinear(image, n[0], n[1]));
  if (one.kind == "nearest") return as_array(resize_nearest(image, n[0], n[1]));
  if (one.kind == "crop") return as_array(center_crop(image, n[0], n[1]));
  if (one.kind == "short") return as_array(resize_short_side(image, n[0]));
  return transform_image({}, image);
}

TEST(ImageParity, EqualsPillowAndTorchvision) {
  const std::vector<ImageCase> cases = image_cases();
  if (cases.empty()) GTEST_SKIP() << "no goldens: they need Python with Pillow and torchvision";
  std::map<std::string, int> kinds;
  for (const ImageCase& one : cases) {
    SCOPED_TRACE(one.kind + " " + one.file);
    ++kinds[one.kind];
    const Array expected = read_npy(one.expected);
    const Array got = found(one);
    ASSERT_EQ(got.shape, expected.shape);
    float worst = 0;
    for (size_t i = 0; i < got.values.size(); ++i) {
      worst = std::max(worst, std::abs(got.values[i] - expected.values[i]));
    }
    const std::map<std::string, float> allowed = {{"transform", 1e-6f}, {"blurred", 3e-7f}};
    const auto rounding = allowed.find(one.kind);
    EXPECT_LE(worst, rounding == allowed.end() ? 0 : rounding->second);
  }
  EXPECT_EQ(kinds.size(), 8u);
}

}  // namespace
}  // namespace fcp
