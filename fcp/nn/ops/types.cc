// Tested by tests/nn/ops/quantize_test.cc.
#include "fcp/nn/ops/types.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "fcp/base/error.h"
#include "fcp/base/infinity.h"

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

template <typename Function>
torch::Tensor each_float(const torch::Tensor& x, Function function) {
  torch::Tensor result = x.detach().to(torch::kCPU, torch::kFloat).contiguous().clone();
  float* numbers = result.data_ptr<float>();
  for (int64_t i = 0; i < result.numel(); ++i) {
    numbers[i] = static_cast<float>(function(numbers[i]));
  }
  return result.to(x.device());
}

// Whole numbers of a type of so many bits.
torch::Tensor to_bits(const torch::Tensor& x, int bits, bool is_signed, torch::ScalarType wide) {
  const int64_t count = int64_t{1} << bits, least = is_signed ? -count / 2 : 0;
  if (x.is_floating_point()) {
    const torch::Tensor cut = x.to(torch::kDouble).trunc();
    return cut.clamp(static_cast<double>(least), static_cast<double>(least + count - 1)).to(wide);
  }
  return ((x.to(torch::kLong) - least).bitwise_and(count - 1) + least).to(wide);
}

}  // namespace

torch::ScalarType type_of_number(int64_t type, const Node& node) {
  switch (type) {
    case 1:
      return torch::kFloat;
    case 2:
    case kOnnxUint4:
      return torch::kByte;
    case 3:
    case kOnnxInt4:
      return torch::kChar;
    case 5:
      return torch::kShort;
    case 6:
    case kOnnxUint16:
      return torch::kInt;
    case 7:
    case kOnnxUint32:
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
  if (is_narrow_float(type)) return torch::kFloat;
  fail(describe(node), ": names the ONNX type number ", type,
       ", expected float (1), uint8 (2), int8 (3), uint16 (4), int16 (5), int32 (6), int64 (7), ",
       "bool (9), float16 (10), double (11), uint32 (12), bfloat16 (16), a float of 8 bits (17 to ",
       "20, 24), uint4 (21), int4 (22) or a float of 4 bits (23)");
}

int64_t number_of_type(torch::ScalarType type) {
  for (const int64_t number : {1, 2, 3, 5, 6, 7, 9, 10, 11, 16}) {
    if (type_of_number(number, Node{}) == type) return number;
  }
  fail("ONNX has no element type ", c10::toString(type));
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

torch::Tensor to_narrow(const torch::Tensor& x, int64_t type, bool saturate) {
  if (const FloatFormat* format = format_of(type)) {
    return each_float(x, [&](double number) { return rounded(number, *format, saturate); });
  }
  if (type == kOnnxFloat8E8M0) {
    return each_float(x, [&](double number) { return rounded_up_to_power(number, saturate); });
  }
  if (type == kOnnxUint4) return to_bits(x, 4, false, torch::kByte);
  if (type == kOnnxInt4) return to_bits(x, 4, true, torch::kChar);
  if (type == kOnnxUint16) return to_bits(x, 16, false, torch::kInt);
  return to_bits(x, 32, false, torch::kLong);
}

torch::ScalarType narrow_storage(int64_t type) {
  if (type == kOnnxUint16) return torch::kShort;
  return type == kOnnxUint32 ? torch::kInt : torch::kByte;
}

int64_t narrow_stored_count(int64_t type, int64_t elements) {
  return is_four_bits(type) ? elements / 2 + elements % 2 : elements;
}

torch::Tensor from_narrow_storage(const torch::Tensor& stored, int64_t type, int64_t elements) {
  torch::Tensor bits = stored;
  if (is_four_bits(type)) {
    const torch::Tensor low = stored.bitwise_and(15);
    const torch::Tensor high = (stored - low).to(torch::kInt).div(16, "floor").to(torch::kByte);
    bits = torch::stack({low, high}, 1).flatten().narrow(0, 0, elements);
  }
  if (const FloatFormat* format = format_of(type)) {
    return each_float(bits, [&](double b) { return decoded(static_cast<unsigned>(b), *format); });
  }
  if (type == kOnnxFloat8E8M0) {
    return each_float(bits, [](double b) {
      return b == 255 ? kNotANumber : std::ldexp(1, static_cast<int>(b) - 127);
    });
  }
  return to_narrow(bits, type, true);
}

}  // namespace fcp
