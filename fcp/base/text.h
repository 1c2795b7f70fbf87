// Whether text is UTF-8. Names of columns and categories become metadata of a network and text of
// reports, which are UTF-8; a file in another code is refused where such a name is read.
// Tested by tests/base/text_test.cc.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fcp {

// As RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view text);

// Text from files for a terminal: names of nodes, columns and groups may hold escape sequences,
// which would colour, move or rewrite what a user sees. Tested by tests/base/text_test.cc.

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

// Names in commands that a user can copy. Tested by tests/base/text_test.cc.

// A name as a shell takes it: in quotes, unless it is plain.
inline std::string shell_word(std::string_view name) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:=+%";
  if (!name.empty() && name.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(name);
  }
  std::string quoted = "'";
  for (const char c : name) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// The word that somebody may have meant. Tested by tests/base/text_test.cc.

// The one of `words` that is nearest to `word` by letters left out, put in, changed or swapped with
// the next one; "" where none is near: about a third of the letters may differ. An option's dashes
// do not count.
std::string nearest_word(const std::string& word, const std::vector<std::string>& words);

}  // namespace fcp
