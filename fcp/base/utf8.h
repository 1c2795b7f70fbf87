// Whether text is UTF-8. Names of columns and categories become metadata of a network and text of
// reports, which are UTF-8; a file in another code is refused where such a name is read.
// Tested by tests/base/utf8_test.cc.
#pragma once

#include <string_view>

namespace fcp {

// As RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view text);

}  // namespace fcp
