#include "fcp/nn/kernels/cpu/byte_conv.h"

#include <algorithm>
#include <cstring>

#include <ATen/Parallel.h>
#include <torch/utils.h>

#include "fcp/base/lanes.h"
#include "fcp/base/parallel.h"
#include "fcp/nn/kernels/cpu/window_bands.h"
#include "fcp/nn/kernels/cpu/window_tile.h"

namespace fcp {
namespace {

constexpr double kByteThreadWork = 1 << 23;  // products below which a thread costs more
constexpr int64_t kMostProducts = 1 << 15;   // of a window: 2¹⁵ · 2⁸ · 2⁷ = 2³⁰
constexpr ptrdiff_t kRowPlaces = 56;         // that a matrix product takes for one row of an image

// Whole vectors.
struct PaddedEnd {
  std::vector<int32_t, LineAllocator<int32_t>> offset;
  FloatRows scale, shift;
  float low, high, step, zero;

  PaddedEnd(const ByteEnd& end, const ByteFilters& filters, int32_t x_zero)
      : low(end.low), high(end.high), step(end.step), zero(end.zero) {
    const size_t outputs = filters.sums.size();
    offset.resize(padded(outputs));
    scale.resize(padded(outputs));
    if (!end.shift.empty()) shift.resize(padded(outputs));
    std::copy(end.scale.begin(), end.scale.end(), scale.begin());
    std::copy(end.shift.begin(), end.shift.end(), shift.begin());
    for (size_t i = 0; i < outputs; ++i) {
      offset[i] = (end.bias.empty() ? 0 : end.bias[i]) - x_zero * filters.sums[i];
    }
  }
};

// The kernel of window_tile.h for bytes.
template <typename Floats, ByteBranch kBranch, typename Result>
struct ByteWindows {
  using In = uint8_t;
  using Weight = int32_t;
  using Out = Result;
  typedef typename IntsOf<Floats>::Type Vector;
  typedef Result Outs __attribute__((vector_size(kFloatsIn<Floats> * sizeof(Result)),
                                     aligned(sizeof(Result)), may_alias));
  static constexpr size_t kAtOnce = 4;
  // Each number of places is a function to compile: many only where time is spent.
  static constexpr size_t kMostPlaces =
      kBranch == ByteBranch::kPlain128 || sizeof(Result) > 1 ? 4 : 14;
  using End = PaddedEnd;

  // Four bytes for each sum; or the even and the odd ones, as numbers of 16 bits.
  struct Inputs {
    Vector all, even, odd;
  };
  FCP_KERNEL static void load(const uint8_t* at, Inputs* x) {
    broadcast(at, &x->all);
    if constexpr (kBranch != ByteBranch::kDots512) {
      x->even = x->all & 0x00ff00ff;
      x->odd = (x->all >> 8) & 0x00ff00ff;
    }
  }
  // g++ 12 would set one number after the other.
  FCP_KERNEL static void broadcast(const uint8_t* at, Vector* x) {
    int32_t four;
    std::memcpy(&four, at, sizeof(four));
#if defined(__x86_64__)
    if constexpr (kFloatsIn<Floats> == 4) {
      asm("movd %1, %0\n\tpshufd $0, %0, %0" : "=x"(*x) : "r"(four));
    } else {
      asm("vpbroadcastd %1, %0" : "=v"(*x) : "m"(four));
    }
#else
    *x = Vector{} + four;
#endif
  }
  FCP_KERNEL static void add(const Inputs* x, const Vector* w, Vector* sum) {
    if constexpr (kBranch == ByteBranch::kPlain128) {
      *sum += (x->even & 0xffff) * ((*w << 24) >> 24) + (x->odd & 0xffff) * ((*w << 16) >> 24) +
              (x->even >> 16) * ((*w << 8) >> 24) + (x->odd >> 16) * (*w >> 24);
    }
#if defined(__x86_64__)
    if constexpr (kBranch == ByteBranch::kDots512) {
      asm("vpdpbusd %2, %1, %0" : "+v"(*sum) : "v"(x->all), "v"(*w));
    } else if constexpr (kBranch != ByteBranch::kPlain128) {
      // Signed bytes become signed numbers of 16 bits.
      const Vector even = (((*w << 24) >> 24) & 0xffff) | (((*w << 8) >> 24) << 16);
      const Vector odd = (((*w << 16) >> 24) & 0xffff) | ((*w >> 24) << 16);
      Vector first = x->even, second = x->odd;
      asm("vpmaddwd %1, %0, %0" : "+v"(first) : "v"(even));
      asm("vpmaddwd %1, %0, %0" : "+v"(second) : "v"(odd));
      *sum += first + second;
    }
#endif
  }
  FCP_KERNEL static void finish(const End& end, size_t at, const Vector* sum, Outs* out) {
    typedef typename Floats::Type Reals;
    const Vector whole = *sum + *reinterpret_cast<const Vector*>(end.offset.data() + at);
    Reals y = __builtin_convertvector(whole, Reals) * *floats<Floats>(end.scale.data() + at);
    if (!end.shift.empty()) {
      // Or some processors would multiply and add in one.
#if defined(__x86_64__)
      asm("" : "+v"(y));
#else
      asm("" : "+m"(y));
#endif
      y += *floats<Floats>(end.shift.data() + at);
    }
    const Reals low = Reals{} + end.low, high = Reals{} + end.high;
    if constexpr (sizeof(Result) == 1) {
      constexpr float kRound = 12582912.0f;  // 1.5 · 2²³, which rounds what is below 2²²
      const Reals far = Reals{} + static_cast<float>(1 << 20), near = -far;
      if (end.step != 1) y /= end.step;
      y = y > near ? y : near;
      y = y < far ? y : far;
      y = ((y + kRound) - kRound) + end.zero;
      y = y > low ? y : low;
      y = y < high ? y : high;
      *out = __builtin_convertvector(__builtin_convertvector(y, Vector), Outs);
    } else {
      *out = y > high ? high : y < low ? low : y;
    }
  }
};

struct ByteWork {
  const WindowShape& shape;
  const uint8_t* in;
  bool channels_last, is_signed;
  uint8_t padding;
  const ByteFilters& filters;
  PaddedEnd end;
  void* out;
};

template <typename Set, typename Floats, ByteBranch kBranch, typename Result>
void walk_byte_band(const ByteWork& work, size_t band, BandCopy<uint8_t>& copy) {
  using Kernel = ByteWindows<Floats, kBranch, Result>;
  const WindowShape& shape = work.shape;
  const size_t image = band / shape.bands(), outputs = work.filters.sums.size();
  const auto [first, last] = shape.band(band % shape.bands());
  const size_t numbers = count_of(shape.out_width) * outputs;  // of a row
  const size_t at = (image * count_of(shape.out_height) + count_of(first)) * numbers;
  WindowRow<Kernel> row = {copy.copy(work.in + image * shape.image(), first, last, work.is_signed),
                           shape.stride_x * shape.channels,
                           shape.step_y * shape.band_row(),
                           count_of(shape.kernel_y),
                           count_of(shape.kernel_x * shape.channels + 3) / 4,
                           static_cast<Result*>(work.out) + at,
                           outputs,
                           count_of(last - first) * numbers};
  for (ptrdiff_t y = first; y < last; ++y) {
    WindowWalk<Set, Kernel>::walk(row, count_of(shape.out_width), work.filters.panels.numbers(),
                                  work.end);
    row.at += shape.stride_y * shape.band_row();
    row.out += numbers;
    row.room -= numbers;
  }
}

using BandWalk = void (*)(const ByteWork&, size_t, BandCopy<uint8_t>&);

template <typename Result>
BandWalk walk_of(ByteBranch branch) {
  switch (branch) {
#if defined(__x86_64__)
    case ByteBranch::kDots512:
      return walk_byte_band<WindowsAvx512, Floats16, ByteBranch::kDots512, Result>;
    case ByteBranch::kPairs256:
      return walk_byte_band<WindowsAvx2, Floats8, ByteBranch::kPairs256, Result>;
#endif
    default:
      return walk_byte_band<WindowsPlain, Floats4, ByteBranch::kPlain128, Result>;
  }
}

int vector_bits(ByteBranch branch) {
  return branch == ByteBranch::kDots512 ? 512 : branch == ByteBranch::kPairs256 ? 256 : 128;
}

std::vector<ByteBranch> branches_of_processor() {
  std::vector<ByteBranch> branches = {ByteBranch::kPlain128};
#if defined(__x86_64__)
  const int width = simd_width();
  if (width >= 256) branches.insert(branches.begin(), ByteBranch::kPairs256);
  if (width == 512 && __builtin_cpu_supports("avx512vnni")) {
    branches.insert(branches.begin(), ByteBranch::kDots512);
  }
#endif
  return branches;
}

// `in` and `out`: bytes, and bytes or floats, channels-last or as `in_order` says.
void walk_byte_bands(const WindowShape& shape, size_t images, const torch::Tensor& x, bool in_order,
                     int32_t x_zero, const ByteFilters& filters, const ByteEnd& end, void* out) {
  const bool is_signed = x.scalar_type() == torch::kChar;
  const int32_t zero = x_zero + (is_signed ? 128 : 0);
  const ByteWork work = {shape,
                         static_cast<const uint8_t*>(x.data_ptr()),
                         !in_order,
                         is_signed,
                         static_cast<uint8_t>(zero),
                         filters,
                         PaddedEnd(end, filters, zero),
                         out};
  const size_t bands = images * shape.bands();
  const double products = static_cast<double>(shape.band_rows() * shape.out_width) *
                          static_cast<double>(filters.panels.inputs() * filters.sums.size()) * 4;
  const BandWalk walk =
      end.type == torch::kFloat ? walk_of<float>(filters.branch) : walk_of<uint8_t>(filters.branch);
  parallel_rows(bands, static_cast<size_t>(kByteThreadWork / products) + 1,
                static_cast<size_t>(at::get_num_threads()), [&](size_t first, size_t last) {
                  BandCopy<uint8_t> copy(shape, work.channels_last, work.padding);
                  for (size_t band = first; band < last; ++band) walk(work, band, copy);
                });
}

}  // namespace

const std::vector<ByteBranch>& byte_branches() {
  static const std::vector<ByteBranch> branches = branches_of_processor();
  return branches;
}

std::shared_ptr<const ByteFilters> make_byte_filters(const torch::Tensor& w,
                                                     const torch::Tensor& zero, ByteBranch branch) {
  const int64_t outputs = w.size(0), channels = w.size(1), rows = w.size(2), across = w.size(3);
  if (w.numel() == 0 || w.numel() / outputs > kMostProducts) return nullptr;
  torch::Tensor whole = w.to(torch::kInt);
  if (zero.defined()) {
    whole = whole -
            (zero.numel() == 1 ? zero.reshape({}) : zero.reshape({-1, 1, 1, 1})).to(torch::kInt);
  }
  if (whole.min().item<int>() < -128 || whole.max().item<int>() > 127) return nullptr;
  auto filters = std::make_shared<ByteFilters>();
  filters->branch = branch;
  filters->shape = w.sizes().vec();
  const torch::Tensor sums = whole.flatten(1).sum(1).to(torch::kInt);
  filters->sums.assign(sums.data_ptr<int32_t>(), sums.data_ptr<int32_t>() + outputs);
  // [M, y, x · C], to whole steps, then [y · steps, M] of four bytes each.
  torch::Tensor lines =
      whole.to(torch::kChar).permute({0, 2, 3, 1}).reshape({outputs, rows, across * channels});
  lines = torch::constant_pad_nd(lines, {0, (4 - across * channels % 4) % 4}).contiguous();
  const int64_t steps = lines.numel() / outputs / 4;
  filters->panels.pack({static_cast<const int32_t*>(lines.data_ptr()), count_of(steps),
                        count_of(outputs), 1, static_cast<ptrdiff_t>(steps)},
                       vector_bits(branch));
  return filters;
}

torch::Tensor byte_conv(const torch::Tensor& x, int32_t x_zero, const ByteFilters& filters,
                        const ConvPlan& plan, const ByteEnd& end) {
  const auto last = at::MemoryFormat::ChannelsLast;
  torch::Tensor out = torch::empty({x.size(0), filters.shape[0], plan.places[0], plan.places[1]},
                                   x.options().dtype(end.type), last);
  if (out.numel() == 0) return out;
  const bool in_order = x.is_contiguous();
  const torch::Tensor in = in_order ? x : x.contiguous(last);
  const WindowShape shape(x, {filters.shape[2], filters.shape[3]}, plan);
  walk_byte_bands(shape, count_of(x.size(0)), in, in_order, x_zero, filters, end, out.data_ptr());
  return out;
}

torch::Tensor byte_product(const torch::Tensor& x, int32_t x_zero, const ByteFilters& filters,
                           const ByteEnd& end) {
  const int64_t inputs = filters.shape[1], outputs = filters.shape[0];
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() = outputs;
  torch::Tensor out = torch::empty(shape, x.options().dtype(end.type));
  if (out.numel() == 0) return out;
  const torch::Tensor rows = x.reshape({-1, inputs}).contiguous();
  const auto multiply = [&](int64_t first, int64_t height, int64_t width) {
    if (height * width == 0) return;
    const torch::Tensor image = rows.narrow(0, first, height * width)
                                    .view({1, height, width, inputs})
                                    .permute({0, 3, 1, 2});
    const ConvPlan plan = {{1, 1}, {1, 1}, {0, 0}, {0, 0}, {height, width}, 1};
    walk_byte_bands(WindowShape(image, {1, 1}, plan), 1, image, false, x_zero, filters, end,
                    static_cast<char*>(out.data_ptr()) +
                        count_of(first * outputs) * c10::elementSize(end.type));
  };
  const int64_t whole = rows.size(0) / kRowPlaces;
  multiply(0, whole, kRowPlaces);
  multiply(whole * kRowPlaces, 1, rows.size(0) - whole * kRowPlaces);
  return out;
}

}  // namespace fcp
