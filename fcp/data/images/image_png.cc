// PNG by libpng. As in image_jpeg.cc errors jump, so that every object with a destructor stands in
// one struct outside the function that is jumped back to.
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <utility>

#include <png.h>

#include "fcp/base/error.h"
#include "fcp/data/images/image.h"

namespace fcp {

namespace {

// Deflate packs at most 1032 bytes into one: a header that promises more is a lie, known before
// anything is allocated for it.
constexpr int64_t kBestDeflate = 1032;

struct PngDecoder {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::string_view rest;  // bytes not yet read
  size_t file_size = 0;
  std::string message;  // why it failed
  bool bad_size = false;
  Image image;
  std::vector<png_bytep> rows;

  PngDecoder() = default;
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;
  ~PngDecoder() { png_destroy_read_struct(&png, &info, nullptr); }
};

[[noreturn]] void stop_png(png_structp png, png_const_charp text) {
  *static_cast<std::string*>(png_get_error_ptr(png)) = text;
  png_longjmp(png, 1);
}

void ignore_png_warning(png_structp, png_const_charp) {}

void take_png_bytes(png_structp png, png_bytep out, size_t count) {
  auto& decoder = *static_cast<PngDecoder*>(png_get_io_ptr(png));
  if (decoder.rest.size() < count) png_error(png, "the file ends too early");
  std::memcpy(out, decoder.rest.data(), count);
  decoder.rest.remove_prefix(count);
}

void expand_to_rgb(png_structp png) {
  png_set_strip_16(png);
  png_set_palette_to_rgb(png);
  png_set_expand_gray_1_2_4_to_8(png);
  png_set_gray_to_rgb(png);
  png_set_strip_alpha(png);
}

void read_png_header(PngDecoder& decoder) {
  png_read_info(decoder.png, decoder.info);
  decoder.image.height = static_cast<int>(png_get_image_height(decoder.png, decoder.info));
  decoder.image.width = static_cast<int>(png_get_image_width(decoder.png, decoder.info));
  const int64_t height = decoder.image.height;
  const auto row_bytes = static_cast<int64_t>(png_get_rowbytes(decoder.png, decoder.info));
  decoder.bad_size = decoder.image.width > kLargestImage / height;
  if (!decoder.bad_size &&
      height * row_bytes > kBestDeflate * static_cast<int64_t>(decoder.file_size)) {
    png_error(decoder.png, "the file is too short for the size in its header");
  }
}

void choose_pixels(PngDecoder& decoder, PngPixels pixels) {
  const int type = png_get_color_type(decoder.png, decoder.info);
  const bool plain = type == PNG_COLOR_TYPE_GRAY || type == PNG_COLOR_TYPE_PALETTE;
  if (pixels == PngPixels::kColour) {
    expand_to_rgb(decoder.png);
  } else if (!plain || png_get_bit_depth(decoder.png, decoder.info) > 8) {
    png_error(decoder.png, "colours or 16 bits, expected labels: 8-bit grey or a palette");
  } else {
    decoder.image.channels = 1;
    png_set_packing(decoder.png);  // one byte per pixel, its value unchanged
  }
}

// False: failed, with decoder.message or decoder.bad_size set.
bool decode_png_bytes(PngDecoder& decoder, PngPixels pixels) {
  if (setjmp(png_jmpbuf(decoder.png)) != 0) return false;
  read_png_header(decoder);
  if (decoder.bad_size) return false;
  choose_pixels(decoder, pixels);
  png_set_interlace_handling(decoder.png);
  png_read_update_info(decoder.png, decoder.info);
  Image& image = decoder.image;
  if (png_get_rowbytes(decoder.png, decoder.info) != image.offset(1)) {
    png_error(decoder.png, "unexpected kind of pixels");
  }
  image.pixels.resize(image.offset(image.height));
  decoder.rows.resize(static_cast<size_t>(image.height));
  for (int y = 0; y < image.height; ++y) decoder.rows[static_cast<size_t>(y)] = image.row(y);
  png_read_image(decoder.png, decoder.rows.data());
  png_read_end(decoder.png, nullptr);
  return true;
}

struct PngEncoder {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::string message;
  std::string bytes;

  PngEncoder() = default;
  PngEncoder(const PngEncoder&) = delete;
  PngEncoder& operator=(const PngEncoder&) = delete;
  ~PngEncoder() { png_destroy_write_struct(&png, &info); }
};

void put_png_bytes(png_structp png, png_bytep bytes, size_t count) {
  static_cast<PngEncoder*>(png_get_io_ptr(png))
      ->bytes.append(reinterpret_cast<const char*>(bytes), count);
}

bool write_png_bytes(PngEncoder& encoder, const Image& image) {
  if (setjmp(png_jmpbuf(encoder.png)) != 0) return false;
  png_set_IHDR(encoder.png, encoder.info, static_cast<png_uint_32>(image.width),
               static_cast<png_uint_32>(image.height), 8,
               image.channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(encoder.png, encoder.info);
  for (int y = 0; y < image.height; ++y) png_write_row(encoder.png, image.row(y));
  png_write_end(encoder.png, nullptr);
  return true;
}

}  // namespace

Image decode_png(std::string_view bytes, const std::string& name, PngPixels pixels) {
  PngDecoder decoder;
  decoder.rest = bytes;
  decoder.file_size = bytes.size();
  decoder.png =
      png_create_read_struct(PNG_LIBPNG_VER_STRING, &decoder.message, stop_png, ignore_png_warning);
  if (decoder.png) decoder.info = png_create_info_struct(decoder.png);
  if (!decoder.info) fail(name, ": out of memory");
  png_set_read_fn(decoder.png, &decoder, take_png_bytes);
  if (!decode_png_bytes(decoder, pixels)) {
    if (decoder.bad_size) check_image_size(decoder.image.height, decoder.image.width, name);
    fail(name, ": bad PNG image: ", decoder.message);
  }
  return std::move(decoder.image);
}

std::string encode_png_bytes(const Image& image) {
  PngEncoder encoder;
  encoder.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &encoder.message, stop_png,
                                        ignore_png_warning);
  if (encoder.png) encoder.info = png_create_info_struct(encoder.png);
  if (!encoder.info) fail("out of memory for a PNG image");
  png_set_write_fn(encoder.png, &encoder, put_png_bytes, [](png_structp) {});
  if (!write_png_bytes(encoder, image)) fail("cannot write a PNG image: ", encoder.message);
  return std::move(encoder.bytes);
}

}  // namespace fcp
