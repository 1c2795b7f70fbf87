// ONNX's numbers of element types, as attributes such as Cast's `to` give them.
//
// libtorch lacks some of these types: uint16, uint32, the 8-bit and 4-bit floats and the 4-bit
// integers. Numbers of these narrow types are held, exactly, in the wider type that
// type_of_number() gives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fcp/nn/graph/graph.h"

namespace fcp {

constexpr int64_t kOnnxUint16 = 4, kOnnxUint32 = 12, kOnnxFloat8E4M3FN = 17,
                  kOnnxFloat8E4M3FNUZ = 18, kOnnxFloat8E5M2 = 19, kOnnxFloat8E5M2FNUZ = 20,
                  kOnnxUint4 = 21, kOnnxInt4 = 22, kOnnxFloat4E2M1 = 23, kOnnxFloat8E8M0 = 24;

// An Error names the node where the type is not one that fcp has.
ElementType type_of_number(int64_t type, const Node& node);

bool is_narrow(int64_t type);
bool is_narrow_float(int64_t type);

// Whether an operator only moves numbers about, or combines their bits, so that its output has the
// narrow type of its inputs. Other arithmetic on narrow numbers is not defined here.
bool keeps_narrow_type(const std::string& op);

// The number of a narrow type of floats nearest to x, rounded to the even neighbour; beyond the
// largest number it becomes that number or, without `saturate`, infinity or NaN as the type has it.
double to_narrow_float(double x, int64_t type, bool saturate);

// A narrow type of whole numbers.
struct NarrowInteger {
  int bits;
  bool is_signed;
};
NarrowInteger narrow_integer(int64_t type);

// The numbers that a file's bytes stand for, one after the other: int16 for uint16, int32 for
// uint32, uint8 for the others, two 4-bit numbers in each byte.
ElementType narrow_storage(int64_t type);
int64_t narrow_stored_count(int64_t type, int64_t elements);
ConstantTensor from_narrow_storage(const void* stored, int64_t type, std::vector<int64_t> shape);

}  // namespace fcp
