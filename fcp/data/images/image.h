// Pictures in files: JPEG and PNG, known by their first bytes. Reading gives the pixels that
// Pillow's Image.open(path).convert("RGB") gives, so that a network sees what it saw in training:
// grey and palettes become RGB, alpha is dropped, 16 bits keep their upper 8, CMYK JPEGs are
// converted as Pillow does, orientation tags and colour profiles are not looked at. One exception:
// 16-bit grey PNGs are scaled like all others, where Pillow cuts them off at 255.
//
// Files are hostile until decoded: a size in the header is checked before anything is allocated,
// and a file that ends too early is an Error, never a half-grey picture.
//
// Tested by tests/data/images/image_test.cc and, against Pillow, tests/parity/image_parity_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fcp {

struct Image {
  int height = 0;
  int width = 0;
  int channels = 3;             // 3: RGB, 1: grey or labels
  std::vector<uint8_t> pixels;  // [height, width, channels]

  const uint8_t* row(int y) const { return pixels.data() + offset(y); }
  uint8_t* row(int y) { return pixels.data() + offset(y); }
  size_t offset(int y) const {
    return static_cast<size_t>(y) * static_cast<size_t>(width) * static_cast<size_t>(channels);
  }
};

// The most pixels an image may have.
inline constexpr int64_t kLargestImage = int64_t{1} << 27;

// Fails where there is no pixel or there are more than kLargestImage; `name` opens the message.
void check_image_size(int64_t height, int64_t width, const std::string& name);

// An image of zeros.
Image blank_image(int height, int width, int channels);

// RGB.
Image read_image(const std::string& path);
// The same of a file in memory; messages call it `name`.
Image decode_image(std::string_view bytes, const std::string& name);

// The bytes of a grey or palette PNG of at most 8 bits as they stand in the file: class labels,
// which must not be scaled or coloured. One channel.
Image read_label_image(const std::string& path);

// Grey or RGB PNG, in memory or in a file that appears whole or not at all.
std::string encode_png(const Image& image);
void write_png(const std::string& path, const Image& image);

// Whether the file's name ends as a JPEG's or PNG's does, in any case.
bool has_image_name(std::string_view name);

// The two image formats, each in a file of its own that is built where its library is found.
// Everyone else includes image.h. `name` is what messages call the bytes.

Image decode_jpeg(std::string_view bytes, const std::string& name);  // RGB

enum class PngPixels { kColour, kIndices };  // RGB, or the file's own grey values and indices

Image decode_png(std::string_view bytes, const std::string& name, PngPixels pixels);
std::string encode_png_bytes(const Image& image);

}  // namespace fcp
