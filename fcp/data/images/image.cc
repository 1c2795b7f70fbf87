#include "fcp/data/images/image.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "fcp/base/error.h"
#include "fcp/base/output_file.h"
#include "fcp/data/bytes.h"

namespace fcp {

namespace {

constexpr std::string_view kJpegMagic = "\xff\xd8\xff";
constexpr std::string_view kPngMagic = "\x89PNG\r\n\x1a\n";
constexpr uint64_t kLargestImageFile = uint64_t{1} << 30;

std::string image_bytes(const std::string& path) {
  const auto source = open_bytes(path);
  std::string bytes;
  constexpr size_t kPiece = size_t{1} << 16;
  for (size_t got = kPiece; got == kPiece;) {
    const size_t before = bytes.size();
    if (before > kLargestImageFile) {
      fail(path, ": larger than the ", kLargestImageFile, " bytes an image file may have");
    }
    bytes.resize(before + kPiece);
    got = source->read(bytes.data() + before, kPiece);
    bytes.resize(before + got);
  }
  return bytes;
}

[[noreturn]] void fail_magic(std::string_view bytes, const std::string& name) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string found;
  for (const char c : bytes.substr(0, 4)) {
    const auto byte = static_cast<unsigned char>(c);
    found += {' ', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  fail(name, ": neither a JPEG nor a PNG image: begins with bytes",
       found.empty() ? " (none)" : found, ", expected ff d8 ff or 89 50 4e 47");
}

[[maybe_unused]] [[noreturn]] void fail_missing(const std::string& name, const char* format) {
  fail(name, ": fcp was built without ", format);
}

Image open_png(std::string_view bytes, const std::string& name, PngPixels pixels) {
#ifdef FCP_HAS_PNG
  return decode_png(bytes, name, pixels);
#else
  (void)bytes, (void)pixels;
  fail_missing(name, "PNG");
#endif
}

Image open_jpeg(std::string_view bytes, const std::string& name) {
#ifdef FCP_HAS_JPEG
  return decode_jpeg(bytes, name);
#else
  (void)bytes;
  fail_missing(name, "JPEG");
#endif
}

}  // namespace

void check_image_size(int64_t height, int64_t width, const std::string& name) {
  const bool fits =
      height > 0 && width > 0 && height <= kLargestImage && width <= kLargestImage / height;
  if (!fits) {
    fail(name, ": the image is ", width, " x ", height, " pixels, expected 1 to ", kLargestImage,
         " in all");
  }
}

Image blank_image(int height, int width, int channels) {
  check_image_size(height, width, "new image");
  Image image{height, width, channels, {}};
  image.pixels.resize(image.offset(height));
  return image;
}

Image decode_image(std::string_view bytes, const std::string& name) {
  if (bytes.starts_with(kJpegMagic)) return open_jpeg(bytes, name);
  if (bytes.starts_with(kPngMagic)) return open_png(bytes, name, PngPixels::kColour);
  fail_magic(bytes, name);
}

Image read_image(const std::string& path) { return decode_image(image_bytes(path), path); }

Image read_label_image(const std::string& path) {
  const std::string bytes = image_bytes(path);
  if (bytes.starts_with(kJpegMagic)) {
    fail(path, ": a JPEG image, which does not keep labels exactly; expected a PNG");
  }
  if (!bytes.starts_with(kPngMagic)) fail_magic(bytes, path);
  return open_png(bytes, path, PngPixels::kIndices);
}

std::string encode_png(const Image& image) {
  if ((image.channels != 1 && image.channels != 3) ||
      image.pixels.size() != image.offset(image.height)) {
    fail("cannot write an image of ", image.width, " x ", image.height, " pixels and ",
         image.channels, " channels with ", image.pixels.size(), " bytes");
  }
#ifdef FCP_HAS_PNG
  return encode_png_bytes(image);
#else
  fail_missing("cannot write an image", "PNG");
#endif
}

void write_png(const std::string& path, const Image& image) { write_file(path, encode_png(image)); }

bool has_image_name(std::string_view name) {
  constexpr std::array<std::string_view, 3> kEndings = {".jpg", ".jpeg", ".png"};
  return std::any_of(kEndings.begin(), kEndings.end(), [&](std::string_view ending) {
    return name.size() > ending.size() &&
           std::equal(ending.begin(), ending.end(),
                      name.end() - static_cast<std::ptrdiff_t>(ending.size()), [](char a, char b) {
                        return a == std::tolower(static_cast<unsigned char>(b));
                      });
  });
}

}  // namespace fcp
