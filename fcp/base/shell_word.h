// Names in commands that a user can copy. Tested by tests/base/printable_test.cc.
#pragma once

#include <string>
#include <string_view>

namespace fcp {

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

}  // namespace fcp
