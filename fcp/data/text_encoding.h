// Text files in other encodings as UTF-8 bytes.
//
//   utf-8     as it is
//   cp1252    Western European of Windows, which contains Latin-1
//   utf-16    by its byte order mark; little-endian without one
//
// Tested by tests/data/text_encoding_test.cc.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fcp/data/bytes.h"

namespace fcp {

enum class TextEncoding { kUtf8, kCp1252, kUtf16 };

// By the names above, `latin-1` for cp1252 too; an OptionError `encoding` for another one.
TextEncoding parse_text_encoding(const std::string& name);
std::vector<std::string> text_encoding_names();

// A file as UTF-8, unpacked as open_bytes does. An Error where a byte or a surrogate stands for
// nothing.
std::unique_ptr<ByteSource> open_text(const std::string& path,
                                      TextEncoding encoding = TextEncoding::kUtf8);

}  // namespace fcp
