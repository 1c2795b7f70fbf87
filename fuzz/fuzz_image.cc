// Any bytes as a JPEG or PNG image, as colours and as labels. A picture that comes out has the size
// it says, and a PNG made of it reads back the same.
#include <cstdint>
#include <string_view>

#include "fcp/base/error.h"
#include "fcp/data/images/image.h"

#include "fuzz/input_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fcp::InputFile file;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const fcp::Image image = fcp::decode_image(bytes, "image");
    if (image.pixels.size() != image.offset(image.height)) __builtin_trap();
    if (image.pixels.size() < 4096 &&
        fcp::decode_image(fcp::encode_png(image), "again").pixels != image.pixels) {
      __builtin_trap();
    }
  } catch (const fcp::Error&) {
  }
  try {
    const fcp::Image labels = fcp::read_label_image(file.write(data, size));
    if (labels.channels != 1 || labels.pixels.size() != labels.offset(labels.height)) {
      __builtin_trap();
    }
  } catch (const fcp::Error&) {
  }
  return 0;
}
