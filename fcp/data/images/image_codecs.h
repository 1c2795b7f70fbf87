// The two image formats, each in a file of its own that is built where its library is found.
// Everyone else includes image.h. `name` is what messages call the bytes.
#pragma once

#include <string>
#include <string_view>

#include "fcp/data/images/image.h"

namespace fcp {

Image decode_jpeg(std::string_view bytes, const std::string& name);  // RGB

enum class PngPixels { kColour, kIndices };  // RGB, or the file's own grey values and indices

Image decode_png(std::string_view bytes, const std::string& name, PngPixels pixels);
std::string encode_png_bytes(const Image& image);

}  // namespace fcp
