// Tested by tests/nn/ops/quantize_test.cc.
#include "fcp/nn/ops/types.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/base/special_numbers.h"

namespace fcp {
namespace {

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

// A float of `exponent_bits` and `mantissa_bits` with a sign before them.
struct FloatFormat {
  int64_t type;
  int exponent_bits, mantissa_bits, bias;
  double largest;
  bool infinite;       // has infinities; otherwise NaN stands for what is too large
  bool unsigned_zero;  // NaN in the place of −0 (FNUZ)
};

constexpr std::array<FloatFormat, 5> kFloatFormats = {{
    {kOnnxFloat8E4M3FN, 4, 3, 7, 448, false, false},
    {kOnnxFloat8E4M3FNUZ, 4, 3, 8, 240, false, true},
    {kOnnxFloat8E5M2, 5, 2, 15, 57344, true, false},
    {kOnnxFloat8E5M2FNUZ, 5, 2, 16, 57344, false, true},
    {kOnnxFloat4E2M1, 2, 1, 1, 6, false, false},
}};

const FloatFormat* format_of(int64_t type) {
  for (const FloatFormat& format : kFloatFormats) {
    if (format.type == type) return &format;
  }
  return nullptr;
}

bool is_four_bits(int64_t type) {
  return type == kOnnxUint4 || type == kOnnxInt4 || type == kOnnxFloat4E2M1;
}

double decoded(unsigned bits, const FloatFormat& format) {
  const int width = format.exponent_bits + format.mantissa_bits;
  const bool negative = (bits >> width & 1) != 0;
  const unsigned most = (1u << width) - 1, size = bits & most;
  const int exponent = static_cast<int>(size >> format.mantissa_bits);
  const int fraction = static_cast<int>(size & ((1u << format.mantissa_bits) - 1));
  if (format.unsigned_zero && negative && size == 0) return kNotANumber;
  if (format.infinite && exponent == (1 << format.exponent_bits) - 1) {
    if (fraction != 0) return kNotANumber;
    return negative ? -kInfinity : kInfinity;
  }
  if (format.type == kOnnxFloat8E4M3FN && size == most) return kNotANumber;
  const int whole = exponent == 0 ? fraction : fraction + (1 << format.mantissa_bits);
  const double value =
      std::ldexp(whole, std::max(exponent, 1) - format.bias - format.mantissa_bits);
  return negative ? -value : value;
}

double rounded(double x, const FloatFormat& format, bool saturate) {
  if (std::isnan(x)) return x;
  double size = std::fabs(x);
  if (std::isfinite(size) && size > 0) {
    const int exponent = std::max(std::ilogb(size), 1 - format.bias) - format.mantissa_bits;
    size = std::ldexp(std::nearbyint(std::ldexp(size, -exponent)), exponent);
  }
  if (size > format.largest) {
    const bool clamps = saturate || format.type == kOnnxFloat4E2M1;
    if (std::isinf(x) && format.unsigned_zero) return kNotANumber;
    if (!clamps && !format.infinite) return kNotANumber;
    size = clamps ? format.largest : kInfinity;
  }
  if (size == 0 && format.unsigned_zero) return 0;
  return std::copysign(size, x);
}

// A power of two, the next one upwards.
double rounded_up_to_power(double x, bool saturate) {
  if (std::isnan(x) || x < 0) return kNotANumber;
  const double largest = std::ldexp(1, 127);
  if (x > largest) return saturate ? largest : kNotANumber;
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);
  return std::ldexp(1, x == 0 ? -127 : std::max(-127, fraction == 0.5 ? exponent - 1 : exponent));
}

// What the bits of a narrow type stand for.
double meaning_of(unsigned bits, int64_t type) {
  if (const FloatFormat* format = format_of(type)) return decoded(bits, *format);
  if (type == kOnnxFloat8E8M0) {
    return bits == 255 ? kNotANumber : std::ldexp(1, static_cast<int>(bits) - 127);
  }
  const NarrowInteger integer = narrow_integer(type);
  const bool negative = integer.is_signed && (bits >> (integer.bits - 1) & 1) != 0;
  return static_cast<double>(bits) - (negative ? std::ldexp(1, integer.bits) : 0);
}

template <typename Number>
ConstantTensor meanings(const std::vector<unsigned>& bits, int64_t type, ElementType held,
                        std::vector<int64_t> shape) {
  const std::shared_ptr<void> room = room_for_numbers(bits.size() * sizeof(Number));
  auto* numbers = static_cast<Number*>(room.get());
  for (const unsigned each : bits) *numbers++ = static_cast<Number>(meaning_of(each, type));
  return {held, std::move(shape), room};
}

}  // namespace

ElementType type_of_number(int64_t type, const Node& node) {
  if (const std::optional<ElementType> same = element_type(type)) return *same;
  if (type == kOnnxUint4) return ElementType::kUint8;
  if (type == kOnnxInt4) return ElementType::kInt8;
  if (type == kOnnxUint16) return ElementType::kInt32;
  if (type == kOnnxUint32) return ElementType::kInt64;
  if (is_narrow_float(type)) return ElementType::kFloat;
  fail(describe(node), ": names the ONNX type number ", type,
       ", expected float (1), uint8 (2), int8 (3), uint16 (4), int16 (5), int32 (6), int64 (7), ",
       "bool (9), float16 (10), double (11), uint32 (12), bfloat16 (16), a float of 8 bits (17 to ",
       "20, 24), uint4 (21), int4 (22) or a float of 4 bits (23)");
}

bool is_narrow_float(int64_t type) { return format_of(type) != nullptr || type == kOnnxFloat8E8M0; }

bool is_narrow(int64_t type) {
  return is_narrow_float(type) || is_four_bits(type) || type == kOnnxUint16 || type == kOnnxUint32;
}

bool keeps_narrow_type(const std::string& op) {
  static const std::set<std::string> ops = {
      "BitShift",  "BitwiseAnd", "BitwiseOr",    "BitwiseXor",     "Concat",   "DepthToSpace",
      "Expand",    "Flatten",    "Gather",       "GatherElements", "GatherND", "Identity",
      "Reshape",   "Slice",      "SpaceToDepth", "Split",          "Squeeze",  "Tile",
      "Transpose", "Unsqueeze",  "Where"};
  return ops.contains(op);
}

double to_narrow_float(double x, int64_t type, bool saturate) {
  const FloatFormat* format = format_of(type);
  return format == nullptr ? rounded_up_to_power(x, saturate) : rounded(x, *format, saturate);
}

NarrowInteger narrow_integer(int64_t type) {
  if (type == kOnnxUint4 || type == kOnnxInt4) return {4, type == kOnnxInt4};
  return {type == kOnnxUint16 ? 16 : 32, false};
}

ElementType narrow_storage(int64_t type) {
  if (type == kOnnxUint16) return ElementType::kInt16;
  return type == kOnnxUint32 ? ElementType::kInt32 : ElementType::kUint8;
}

int64_t narrow_stored_count(int64_t type, int64_t elements) {
  return is_four_bits(type) ? elements / 2 + elements % 2 : elements;
}

ConstantTensor from_narrow_storage(const void* stored, int64_t type, std::vector<int64_t> shape) {
  size_t elements = 1;
  for (const int64_t size : shape) elements *= static_cast<size_t>(size);
  std::vector<unsigned> bits(elements);
  const auto* bytes = static_cast<const uint8_t*>(stored);
  for (size_t i = 0; i < elements; ++i) {
    if (is_four_bits(type)) {
      bits[i] = bytes[i / 2] >> (i % 2 * 4) & 15u;
    } else if (type == kOnnxUint16) {
      bits[i] = static_cast<const uint16_t*>(stored)[i];
    } else if (type == kOnnxUint32) {
      bits[i] = static_cast<const uint32_t*>(stored)[i];
    } else {
      bits[i] = bytes[i];
    }
  }
  const ElementType held = type_of_number(type, Node{});
  switch (held) {
    case ElementType::kFloat:
      return meanings<float>(bits, type, held, std::move(shape));
    case ElementType::kInt64:
      return meanings<int64_t>(bits, type, held, std::move(shape));
    case ElementType::kInt32:
      return meanings<int32_t>(bits, type, held, std::move(shape));
    default:  // int4 and uint4
      return meanings<int8_t>(bits, type, held, std::move(shape));
  }
}

}  // namespace fcp
