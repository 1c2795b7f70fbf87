#include "fcp/nn/kernels/cpu/dense_conv.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/utils.h>

#include "fcp/base/parallel.h"
#include "fcp/nn/kernels/cpu/epilogue.h"
#include "fcp/nn/kernels/cpu/packed_product.h"
#include "fcp/nn/kernels/cpu/window_bands.h"
#include "fcp/nn/kernels/cpu/window_tile.h"

namespace fcp {
namespace {

constexpr size_t kPlacesAtOnce = 240;  // whole strips of packed_product.h
constexpr double kDenseThreadWork = 1 << 21;

// A window among those of all images: where its first tap would lie.
struct WindowPlace {
  const float* image;
  ptrdiff_t out_y, out_x;

  WindowPlace(const WindowShape& shape, const float* images, size_t window)
      : image(images + window / shape.places() * shape.image()),
        out_y(static_cast<ptrdiff_t>(window % shape.places()) / shape.out_width),
        out_x(static_cast<ptrdiff_t>(window % shape.places()) % shape.out_width) {}

  void next(const WindowShape& shape) {
    if (++out_x < shape.out_width) return;
    out_x = 0;
    if (++out_y < shape.out_height) return;
    out_y = 0;
    image += shape.image();
  }
  // The row of the image that the window's row touches, or null outside of the image.
  const float* row(const WindowShape& shape, ptrdiff_t kernel_y) const {
    const ptrdiff_t y = out_y * shape.stride_y + kernel_y * shape.step_y - shape.begin_y;
    return y >= 0 && y < shape.height ? image + y * shape.width * shape.channels : nullptr;
  }
  ptrdiff_t first_x(const WindowShape& shape) const {
    return out_x * shape.stride_x - shape.begin_x;
  }
};

// Some of the windows as rows of pieces.
class WindowRows {
 public:
  // With `skips`, padding may be left out of the sums.
  WindowRows(const WindowShape& shape, bool skips)
      : shape_(shape), skips_(skips), zeros_(count_of(shape.channels)) {}

  PieceRows<float> rows(const float* images, size_t first, size_t count) {
    pieces_.resize(count * shape_.taps());
    const float** to = pieces_.data();
    WindowPlace place(shape_, images, first);
    for (size_t i = 0; i < count; ++i, place.next(shape_)) {
      for (ptrdiff_t y = 0; y < shape_.kernel_y; ++y) {
        const float* row = place.row(shape_, y);
        ptrdiff_t x = place.first_x(shape_);
        for (ptrdiff_t k = 0; k < shape_.kernel_x; ++k, x += shape_.step_x) {
          const bool inside = row != nullptr && x >= 0 && x < shape_.width;
          *to++ = inside ? row + x * shape_.channels : zeros_.data();
        }
      }
    }
    return {pieces_.data(), count, shape_.taps(), count_of(shape_.channels),
            skips_ ? zeros_.data() : nullptr};
  }

 private:
  const WindowShape& shape_;
  bool skips_;
  FloatRows zeros_;
  std::vector<const float*> pieces_;
};

// The kernel of window_tile.h for float32 numbers: what follows is a bias and two ends.
template <typename Floats>
struct FloatWindows {
  using In = float;
  using Inputs = float;
  using Weight = float;
  using Out = float;
  typedef typename Floats::Type Vector;
  typedef Vector Outs;
  static constexpr size_t kAtOnce = 1;
  static constexpr size_t kMostPlaces = 14;
  struct End {
    const float* bias;  // whole vectors
    float low, high;
  };

  FCP_KERNEL static void load(const float* at, float* x) { *x = *at; }
  FCP_KERNEL static void add(const float* x, const Vector* w, Vector* sum) { *sum += *x * *w; }
  FCP_KERNEL static void finish(const End& end, size_t at, const Vector* sum, Vector* out) {
    *out = *sum + *floats<Floats>(end.bias + at);
    activate_floats<Floats, ActivationKind::kClip>({ActivationKind::kClip, end.low, end.high}, out);
  }
};

// A convolution whose windows are read where they lie.
struct DirectConv {
  const WindowShape& shape;
  const float* in;
  bool channels_last;
  const PackedPanels<float>& filters;
  FloatRows bias = {};
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
  const float* added = nullptr;
  FusedActivation then = {};  // what is no pair of ends
  float* out = nullptr;
};

template <typename Set, typename Floats>
void walk_band(const DirectConv& conv, size_t band, BandCopy<float>& copy) {
  using Kernel = FloatWindows<Floats>;
  const WindowShape& shape = conv.shape;
  const size_t image = band / shape.bands(), outputs = conv.filters.outputs();
  const auto [first, last] = shape.band(band % shape.bands());
  const size_t numbers = count_of(shape.out_width) * outputs;  // of a row
  size_t at = (image * count_of(shape.out_height) + count_of(first)) * numbers;
  WindowRow<Kernel> row = {copy.copy(conv.in + image * shape.image(), first, last),
                           shape.stride_x * shape.channels,
                           shape.step_y * shape.band_row(),
                           count_of(shape.kernel_y),
                           count_of(shape.kernel_x * shape.channels),
                           conv.out + at,
                           outputs,
                           count_of(last - first) * numbers};
  for (ptrdiff_t y = first; y < last; ++y, at += numbers) {
    WindowWalk<Set, Kernel>::walk(row, count_of(shape.out_width), conv.filters.numbers(),
                                  {conv.bias.data(), conv.low, conv.high});
    if (conv.added != nullptr || conv.then.kind != ActivationKind::kNone) {
      const float* added = conv.added == nullptr ? nullptr : conv.added + at;
      epilogue_rows(conv.then, {row.out, added, row.out, 1, numbers, 0});
    }
    row.at += shape.stride_y * shape.band_row();
    row.out += numbers;
    row.room -= numbers;
  }
}

void walk_bands(const DirectConv& conv, size_t images) {
  const WindowShape& shape = conv.shape;
  const size_t bands = images * shape.bands();
  const double work = static_cast<double>(shape.band_rows() * shape.out_width) *
                      static_cast<double>(conv.filters.inputs() * conv.filters.outputs());
  const int width = simd_width();
  const auto walk = width == 512   ? walk_band<WindowsAvx512, Floats16>
                    : width == 256 ? walk_band<WindowsAvx2, Floats8>
                                   : walk_band<WindowsPlain, Floats4>;
  parallel_rows(bands, static_cast<size_t>(kDenseThreadWork / work) + 1,
                static_cast<size_t>(at::get_num_threads()), [&](size_t begin, size_t end) {
                  BandCopy<float> copy(shape, conv.channels_last, 0);
                  for (size_t band = begin; band < end; ++band) walk(conv, band, copy);
                });
}

DirectConv direct_conv(const WindowShape& shape, const torch::Tensor& in,
                       const PackedPanels<float>& filters, const torch::Tensor& bias,
                       const torch::Tensor& added, const FusedActivation& activation,
                       torch::Tensor& out) {
  DirectConv conv = {shape, in.data_ptr<float>(), !in.is_contiguous(), filters};
  conv.bias.resize(padded(filters.outputs()));
  if (bias.defined()) std::copy_n(bias.data_ptr<float>(), bias.numel(), conv.bias.data());
  conv.added = added.defined() ? added.data_ptr<float>() : nullptr;
  conv.out = out.data_ptr<float>();
  if (conv.added == nullptr && activation.kind == ActivationKind::kRelu) {
    conv.low = 0;
  } else if (conv.added == nullptr && activation.kind == ActivationKind::kClip) {
    conv.low = activation.first;
    conv.high = activation.second;
  } else {
    conv.then = activation;
  }
  return conv;
}

// Windows of few numbers, or of pieces that would be short.
bool reads_in_place(const WindowShape& shape) {
  constexpr size_t kFewChannels = 16, kFewProducts = 320;
  const size_t channels = count_of(shape.channels);
  return shape.step_x == 1 && (channels < kFewChannels || shape.taps() * channels <= kFewProducts);
}

}  // namespace

bool is_dense(const torch::Tensor& x, const torch::Tensor& w, const ConvPlan& plan) {
  const bool floats = x.scalar_type() == torch::kFloat && w.scalar_type() == torch::kFloat;
  const bool flat = x.dim() == 4 && plan.groups == 1;
  return floats && x.is_cpu() && w.is_cpu() && flat && x.numel() > 0 && plan.begins[0] >= 0 &&
         plan.begins[1] >= 0 && plan.ends[0] >= 0 && plan.ends[1] >= 0;
}

torch::Tensor dense_conv(const torch::Tensor& x, const torch::Tensor& w, const torch::Tensor& bias,
                         const ConvPlan& plan, PackedCache& cache, const Epilogue& epilogue) {
  const auto last = at::MemoryFormat::ChannelsLast;
  torch::Tensor out =
      torch::empty({x.size(0), w.size(0), plan.places[0], plan.places[1]}, x.options(), last);
  if (out.numel() == 0) return out;
  const torch::Tensor added =
      epilogue.added.defined() ? epilogue.added.contiguous(last) : torch::Tensor();
  const std::shared_ptr<const PackedMatrix> filters = cache.packed_filters(w);
  const WindowShape shape(x, w.sizes().slice(2), plan);
  if (reads_in_place(shape)) {
    const bool in_order = x.is_contiguous();
    const torch::Tensor in = in_order ? x : x.contiguous(last);
    walk_bands(direct_conv(shape, in, filters->floats, bias, added, epilogue.activation, out),
               count_of(x.size(0)));
    return out;
  }
  const torch::Tensor in = x.contiguous(last);
  const size_t windows = shape.places() * count_of(x.size(0)), outputs = count_of(w.size(0));
  const double work =
      static_cast<double>(w.numel()) * static_cast<double>(std::min(windows, kPlacesAtOnce));
  ProductEpilogue<float> end;
  if (bias.defined()) end.columns = bias.data_ptr<float>();
  end.activation = epilogue.activation;
  parallel_rows(
      (windows + kPlacesAtOnce - 1) / kPlacesAtOnce,
      static_cast<size_t>(kDenseThreadWork / work) + 1, static_cast<size_t>(at::get_num_threads()),
      [&](size_t begin, size_t last_block) {
        WindowRows rows(shape, filters->finite);
        for (size_t i = begin; i < last_block; ++i) {
          const size_t first = i * kPlacesAtOnce, to = first * outputs;
          const size_t count = std::min(kPlacesAtOnce, windows - first);
          ProductEpilogue<float> part = end;
          if (added.defined()) part.added = added.data_ptr<float>() + to;
          multiply_pieces<float>(
              rows.rows(in.data_ptr<float>(), first, count), filters->floats,
              {out.data_ptr<float>() + to, count, outputs, static_cast<ptrdiff_t>(outputs), 1},
              part);
        }
      });
  return out;
}

}  // namespace fcp
