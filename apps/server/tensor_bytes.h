// Tensors as the bytes of the binary extension: little-endian, BYTES preceded by their length in
// four bytes.
// Tested by tests/server/tensor_message_test.cc and fuzz/fuzz_request.cc.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "apps/server/tensor_message.h"

namespace fcp {

// The values of a tensor of this datatype, whose shape has `count` elements. An Error begins with
// `where`.
decltype(NamedValues::values) read_binary_data(std::string_view bytes, const std::string& type,
                                               size_t count, const std::string& where);

std::string data_bytes(const ResponseTensor& tensor);

}  // namespace fcp
