#include "fcp/nn/kernels/cpu/dense_conv.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/utils.h>

#include "fcp/base/parallel.h"
#include "fcp/nn/kernels/cpu/packed_matrix.h"

namespace fcp {
namespace {

constexpr size_t kPlacesAtOnce = 240;  // whole strips of packed_product.h
constexpr double kDenseThreadWork = 1 << 21;
constexpr size_t kFewChannels = 16;  // below, a window's pieces are too short to be read in place

size_t count_of(int64_t n) { return static_cast<size_t>(n); }

// Images, and the window that goes over each of them.
struct WindowShape {
  ptrdiff_t height, width, channels;
  ptrdiff_t out_height, out_width;
  ptrdiff_t kernel_y, kernel_x, stride_y, stride_x, begin_y, begin_x, step_y, step_x;

  WindowShape(const torch::Tensor& x, const torch::Tensor& w, const ConvPlan& plan)
      : height(x.size(2)),
        width(x.size(3)),
        channels(x.size(1)),
        out_height(plan.places[0]),
        out_width(plan.places[1]),
        kernel_y(w.size(2)),
        kernel_x(w.size(3)),
        stride_y(plan.strides[0]),
        stride_x(plan.strides[1]),
        begin_y(plan.begins[0]),
        begin_x(plan.begins[1]),
        step_y(plan.dilations[0]),
        step_x(plan.dilations[1]) {}

  size_t taps() const { return count_of(kernel_y * kernel_x); }
  size_t places() const { return count_of(out_height * out_width); }
  size_t image() const { return count_of(height * width * channels); }
};

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

// Without a call of a function where there are few numbers.
float* copy_few(const float* from, size_t count, float* to) {
  if (count > 2 * kLanes) return std::copy_n(from, count, to);
  for (; count >= 4; count -= 4, from += 4, to += 4) std::memcpy(to, from, 4 * sizeof(float));
  for (; count > 0; --count) *to++ = *from++;
  return to;
}

// Some of the windows as rows of pieces.
class WindowRows {
 public:
  // With `skips`, padding may be left out of the sums.
  WindowRows(const WindowShape& shape, bool skips)
      : shape_(shape),
        few_(shape.taps() > 1 && count_of(shape.channels) < kFewChannels),
        skips_(skips),
        zeros_(few_ ? 0 : count_of(shape.channels)) {}

  PieceRows<float> rows(const float* images, size_t first, size_t count) {
    if (few_) return written(images, first, count);
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
  PieceRows<float> written(const float* images, size_t first, size_t count) {
    const size_t length = shape_.taps() * count_of(shape_.channels);
    copies_.resize(count * length);
    pieces_.resize(count);
    float* to = copies_.data();
    WindowPlace place(shape_, images, first);
    for (size_t i = 0; i < count; ++i, place.next(shape_)) {
      pieces_[i] = to;
      for (ptrdiff_t y = 0; y < shape_.kernel_y; ++y) {
        to = write_row(place.row(shape_, y), place.first_x(shape_), to);
      }
    }
    return {pieces_.data(), count, 1, length, nullptr};
  }

  // A row of a window, side by side.
  float* write_row(const float* row, ptrdiff_t x, float* to) const {
    const size_t channels = count_of(shape_.channels), taps = count_of(shape_.kernel_x);
    const ptrdiff_t end = x + (shape_.kernel_x - 1) * shape_.step_x;
    if (row == nullptr) return std::fill_n(to, taps * channels, 0.0f);
    if (shape_.step_x == 1 && x >= 0 && end < shape_.width) {
      return copy_few(row + x * shape_.channels, taps * channels, to);
    }
    for (size_t k = 0; k < taps; ++k, x += shape_.step_x) {
      const bool inside = x >= 0 && x < shape_.width;
      to = inside ? copy_few(row + x * shape_.channels, channels, to)
                  : std::fill_n(to, channels, 0.0f);
    }
    return to;
  }

  const WindowShape& shape_;
  bool few_, skips_;
  FloatRows zeros_, copies_;
  std::vector<const float*> pieces_;
};

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
  const torch::Tensor in = x.contiguous(last);
  torch::Tensor out =
      torch::empty({x.size(0), w.size(0), plan.places[0], plan.places[1]}, x.options(), last);
  if (out.numel() == 0) return out;
  const torch::Tensor added =
      epilogue.added.defined() ? epilogue.added.contiguous(last) : torch::Tensor();
  const std::shared_ptr<const PackedMatrix> filters = cache.packed_filters(w);
  const WindowShape shape(x, w, plan);
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
