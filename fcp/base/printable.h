// Text from files for a terminal: names of nodes, columns and groups may hold escape sequences,
// which would colour, move or rewrite what a user sees. Tested by tests/base/printable_test.cc.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fcp {

// The text with every control character but tab and newline written as \xNN: C0, DEL, and in
// UTF-8 the C1 controls U+0080 to U+009F, which some terminals obey as well.
inline std::string printable(std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string shown;
  shown.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    const bool second_set = byte == 0xc2 && next >= 0x80 && next <= 0x9f;
    const bool control = (byte < 0x20 && byte != '\t' && byte != '\n') || byte == 0x7f;
    if (!control && !second_set) {
      shown += text[i];
      continue;
    }
    const unsigned char value = second_set ? next : byte;
    shown += {'\\', 'x', kDigits[value >> 4], kDigits[value & 15]};
    i += second_set ? 1 : 0;
  }
  return shown;
}

}  // namespace fcp
