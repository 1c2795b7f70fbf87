// JPEG by libjpeg, with its defaults (exact integer DCT, smooth upsampling of colour), which are
// Pillow's. libjpeg reports errors by a function that must not return: it jumps back to
// decode_jpeg. No object with a destructor may begin to live between the setjmp and the jump, so
// all of them stand in one struct outside.
#include <csetjmp>
#include <cstdio>  // jpeglib.h needs it before
#include <utility>

#include <jerror.h>
#include <jpeglib.h>

#include "fcp/base/error.h"
#include "fcp/data/images/image.h"

namespace fcp {

namespace {

// A progressive file may repeat scans over a huge picture without end; no encoder makes so many.
constexpr int kMostScans = 500;

// Every block of 8 x 8 pixels takes a bit at least, and sampling makes a block stand for 16 at
// most: a header that promises more pixels is a lie, and would cost seconds and much memory.
constexpr int64_t kMostPixelsPerByte = int64_t{8} * 64 * 16;

struct JpegDecoder {
  jpeg_decompress_struct info = {};
  jpeg_error_mgr errors = {};
  jpeg_progress_mgr progress = {};
  std::jmp_buf failed = {};
  char message[JMSG_LENGTH_MAX] = {};
  bool too_large = false;
  Image image;
  std::vector<uint8_t> line;

  JpegDecoder() = default;
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;
  ~JpegDecoder() { jpeg_destroy_decompress(&info); }
};

JpegDecoder& decoder_of(j_common_ptr info) { return *static_cast<JpegDecoder*>(info->client_data); }

[[noreturn]] void stop_jpeg(j_common_ptr info) {
  info->err->format_message(info, decoder_of(info).message);
  std::longjmp(decoder_of(info).failed, 1);
}

// Warnings are spoilt data that libjpeg bridges, as Pillow lets it; but not a missing end.
void on_jpeg_message(j_common_ptr info, int level) {
  if (level < 0 && info->err->msg_code == JWRN_JPEG_EOF) stop_jpeg(info);
}

void on_jpeg_progress(j_common_ptr info) {
  if (info->is_decompressor &&
      reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > kMostScans) {
    ERREXIT(info, JERR_BAD_PROGRESSION);
  }
}

uint8_t product_255(int a, int b) {  // a · b / 255, rounded as Pillow rounds it
  const int product = a * b + 128;
  return static_cast<uint8_t>(((product >> 8) + product) >> 8);
}

// Adobe stores CMYK inverted, and Pillow takes every CMYK file for one of Adobe's:
// R = K − (255 − C) · K / 255 in stored values.
void cmyk_to_rgb(const uint8_t* in, int width, uint8_t* out) {
  for (int x = 0; x < width; ++x, in += 4, out += 3) {
    for (int c = 0; c < 3; ++c) {
      out[c] = static_cast<uint8_t>(in[3] - product_255(255 - in[c], in[3]));
    }
  }
}

void read_jpeg_lines(JpegDecoder& decoder) {
  jpeg_decompress_struct& info = decoder.info;
  const bool cmyk = info.out_color_space == JCS_CMYK;
  while (info.output_scanline < info.output_height) {
    uint8_t* const out = decoder.image.row(static_cast<int>(info.output_scanline));
    JSAMPROW line = cmyk ? decoder.line.data() : out;
    jpeg_read_scanlines(&info, &line, 1);
    if (cmyk) cmyk_to_rgb(line, decoder.image.width, out);
  }
}

// False: failed, with decoder.message or decoder.too_large set.
bool decode_jpeg_bytes(JpegDecoder& decoder, std::string_view bytes) {
  jpeg_decompress_struct& info = decoder.info;
  if (setjmp(decoder.failed) != 0) return false;
  jpeg_create_decompress(&info);
  decoder.progress.progress_monitor = on_jpeg_progress;
  info.progress = &decoder.progress;
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&info, TRUE);
  decoder.too_large = int64_t{info.image_height} * int64_t{info.image_width} > kLargestImage;
  if (decoder.too_large) return false;
  if (int64_t{info.image_height} * int64_t{info.image_width} >
      kMostPixelsPerByte * static_cast<int64_t>(bytes.size())) {
    std::snprintf(decoder.message, sizeof decoder.message,
                  "the file is too short for the size in its header");
    return false;
  }
  info.out_color_space = info.num_components == 4 ? JCS_CMYK : JCS_RGB;
  jpeg_start_decompress(&info);
  decoder.image.height = static_cast<int>(info.output_height);
  decoder.image.width = static_cast<int>(info.output_width);
  decoder.image.pixels.resize(decoder.image.offset(decoder.image.height));
  decoder.line.resize(4 * static_cast<size_t>(info.output_width));
  read_jpeg_lines(decoder);
  jpeg_finish_decompress(&info);
  return true;
}

}  // namespace

Image decode_jpeg(std::string_view bytes, const std::string& name) {
  JpegDecoder decoder;
  decoder.info.err = jpeg_std_error(&decoder.errors);
  decoder.errors.error_exit = stop_jpeg;
  decoder.errors.emit_message = on_jpeg_message;
  decoder.errors.output_message = [](j_common_ptr) {};
  decoder.info.client_data = &decoder;
  if (!decode_jpeg_bytes(decoder, bytes)) {
    if (decoder.too_large) {
      check_image_size(decoder.info.image_height, decoder.info.image_width, name);
    }
    fail(name, ": bad JPEG image: ", decoder.message);
  }
  return std::move(decoder.image);
}

}  // namespace fcp
