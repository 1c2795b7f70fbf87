#include "fcp/network/ops/types.h"

#include "fcp/base/error.h"

namespace fcp {

torch::ScalarType type_of_number(int64_t type, const Node& node) {
  switch (type) {
    case 1:
      return torch::kFloat;
    case 2:
      return torch::kByte;
    case 3:
      return torch::kChar;
    case 5:
      return torch::kShort;
    case 6:
      return torch::kInt;
    case 7:
      return torch::kLong;
    case 9:
      return torch::kBool;
    case 10:
      return torch::kHalf;
    case 11:
      return torch::kDouble;
    case 16:
      return torch::kBFloat16;
    default:
      break;
  }
  fail(describe(node), ": names the ONNX type number ", type,
       ", expected float (1), uint8 (2), int8 (3), int16 (5), int32 (6), int64 (7), bool (9), "
       "float16 (10), double (11) or bfloat16 (16)");
}

int64_t number_of_type(torch::ScalarType type) {
  for (const int64_t number : {1, 2, 3, 5, 6, 7, 9, 10, 11, 16}) {
    if (type_of_number(number, Node{}) == type) return number;
  }
  fail("ONNX has no element type ", c10::toString(type));
}

}  // namespace fcp
