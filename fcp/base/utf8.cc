#include "fcp/base/utf8.h"

#include <cstddef>

namespace fcp {
namespace {

// Bytes that follow a first byte; negative where none can begin with it.
int continuation_bytes(unsigned char first) {
  if (first < 0x80) return 0;
  if (first < 0xC2) return -1;  // a continuation, or overlong
  if (first < 0xE0) return 1;
  if (first < 0xF0) return 2;
  return first < 0xF5 ? 3 : -1;
}

// The second byte has a narrower range after some first bytes.
bool second_fits(unsigned char first, unsigned char second) {
  switch (first) {
    case 0xE0:
      return second >= 0xA0;  // below is overlong
    case 0xED:
      return second < 0xA0;  // above are surrogates
    case 0xF0:
      return second >= 0x90;  // below is overlong
    case 0xF4:
      return second < 0x90;  // above is beyond U+10FFFF
    default:
      return true;
  }
}

}  // namespace

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const int more = continuation_bytes(first);
    if (more < 0 || text.size() - i <= static_cast<size_t>(more)) return false;
    for (int j = 1; j <= more; ++j) {
      const auto byte = static_cast<unsigned char>(text[i + static_cast<size_t>(j)]);
      if ((byte & 0xC0) != 0x80 || (j == 1 && !second_fits(first, byte))) return false;
    }
    i += static_cast<size_t>(more) + 1;
  }
  return true;
}

}  // namespace fcp
