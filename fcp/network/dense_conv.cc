#include "fcp/network/dense_conv.h"

#include <algorithm>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/utils.h>

#include "fcp/base/parallel.h"
#include "fcp/network/packed_matrix.h"

namespace fcp {
namespace {

constexpr size_t kPlacesAtOnce = 240;  // whole strips of packed_product.h
constexpr double kDenseThreadWork = 1 << 21;
constexpr size_t kFewChannels = 16;  // below, a window's pieces are too short to be read in place

size_t count_of(int64_t n) { return static_cast<size_t>(n); }

// An image and the window that goes over it.
struct WindowShape {
  ptrdiff_t height, width, channels;
  ptrdiff_t out_width, out_places;
  ptrdiff_t kernel_y, kernel_x, stride_y, stride_x, begin_y, begin_x, step_y, step_x;

  WindowShape(const torch::Tensor& x, const torch::Tensor& w, const ConvPlan& plan)
      : height(x.size(2)),
        width(x.size(3)),
        channels(x.size(1)),
        out_width(plan.places[1]),
        out_places(plan.places[0] * plan.places[1]),
        kernel_y(w.size(2)),
        kernel_x(w.size(3)),
        stride_y(plan.strides[0]),
        stride_x(plan.strides[1]),
        begin_y(plan.begins[0]),
        begin_x(plan.begins[1]),
        step_y(plan.dilations[0]),
        step_x(plan.dilations[1]) {}

  size_t taps() const { return count_of(kernel_y * kernel_x); }
  // A tap's channels, or null outside of the image.
  const float* tap(const float* image, ptrdiff_t place, ptrdiff_t ky, ptrdiff_t kx) const {
    const ptrdiff_t y = place / out_width * stride_y + ky * step_y - begin_y;
    const ptrdiff_t x = place % out_width * stride_x + kx * step_x - begin_x;
    const bool inside = y >= 0 && y < height && x >= 0 && x < width;
    return inside ? image + (y * width + x) * channels : nullptr;
  }
};

// The windows of some places as rows of pieces.
class WindowRows {
 public:
  WindowRows(const WindowShape& shape)
      : shape_(shape),
        few_(shape.taps() > 1 && count_of(shape.channels) < kFewChannels),
        zeros_(few_ ? 0 : count_of(shape.channels)) {}

  PieceRows<float> rows(const float* image, size_t first, size_t count) {
    if (few_) return written(image, first, count);
    pieces_.clear();
    for (size_t place = first; place < first + count; ++place) {
      for (ptrdiff_t y = 0; y < shape_.kernel_y; ++y) {
        for (ptrdiff_t x = 0; x < shape_.kernel_x; ++x) {
          const float* tap = shape_.tap(image, static_cast<ptrdiff_t>(place), y, x);
          pieces_.push_back(tap == nullptr ? zeros_.data() : tap);
        }
      }
    }
    return {pieces_.data(), count, shape_.taps(), count_of(shape_.channels), zeros_.data()};
  }

 private:
  PieceRows<float> written(const float* image, size_t first, size_t count) {
    const size_t channels = count_of(shape_.channels), length = shape_.taps() * channels;
    const size_t run = count_of(shape_.kernel_x) * channels;  // taps in a row that lie side by side
    copies_.assign(count * length, 0);
    pieces_.clear();
    float* to = copies_.data();
    for (size_t i = first; i < first + count; ++i) {
      const auto place = static_cast<ptrdiff_t>(i);
      pieces_.push_back(to);
      for (ptrdiff_t y = 0; y < shape_.kernel_y; ++y, to += run) {
        const float* begin = shape_.tap(image, place, y, 0);
        const float* end = shape_.tap(image, place, y, shape_.kernel_x - 1);
        if (shape_.step_x == 1 && begin != nullptr && end != nullptr) {
          std::copy_n(begin, run, to);
          continue;
        }
        for (ptrdiff_t x = 0; x < shape_.kernel_x; ++x) {
          const float* tap = shape_.tap(image, place, y, x);
          if (tap != nullptr) std::copy_n(tap, channels, to + count_of(x) * channels);
        }
      }
    }
    return {pieces_.data(), count, 1, length, nullptr};
  }

  const WindowShape& shape_;
  bool few_;
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
                         const ConvPlan& plan, PackedCache& cache, const Finish& finish) {
  const auto last = at::MemoryFormat::ChannelsLast;
  const torch::Tensor in = x.contiguous(last);
  torch::Tensor out =
      torch::empty({x.size(0), w.size(0), plan.places[0], plan.places[1]}, x.options(), last);
  if (out.numel() == 0) return out;
  const torch::Tensor added =
      finish.added.defined() ? finish.added.contiguous(last) : torch::Tensor();
  const std::shared_ptr<const PackedMatrix> filters = cache.packed_filters(w);
  const WindowShape shape(x, w, plan);
  const size_t places = count_of(shape.out_places), outputs = count_of(w.size(0));
  const size_t blocks = (places + kPlacesAtOnce - 1) / kPlacesAtOnce;
  const size_t image = count_of(shape.height * shape.width * shape.channels);
  const ProductBias<float> add = {bias.defined() ? bias.data_ptr<float>() : nullptr, nullptr};
  const double work =
      static_cast<double>(w.numel()) * static_cast<double>(std::min(places, kPlacesAtOnce));
  parallel_rows(
      blocks * count_of(x.size(0)), static_cast<size_t>(kDenseThreadWork / work) + 1,
      static_cast<size_t>(at::get_num_threads()), [&](size_t begin, size_t end) {
        WindowRows windows(shape);
        for (size_t i = begin; i < end; ++i) {
          const size_t row = i / blocks, first = i % blocks * kPlacesAtOnce;
          const size_t count = std::min(kPlacesAtOnce, places - first);
          const size_t to = (row * places + first) * outputs;
          float* numbers = out.data_ptr<float>() + to;
          const float* more = added.defined() ? added.data_ptr<float>() + to : nullptr;
          const PanelDone done = [&](size_t from, size_t rows, size_t column, size_t columns) {
            const size_t at = from * outputs + column;
            finish_rows(finish.activation, {numbers + at, more == nullptr ? nullptr : more + at,
                                            numbers + at, rows, columns, outputs});
          };
          multiply_pieces<float>(windows.rows(in.data_ptr<float>() + row * image, first, count),
                                 filters->floats,
                                 {numbers, count, outputs, static_cast<ptrdiff_t>(outputs), 1}, add,
                                 finish.empty() ? nullptr : &done);
        }
      });
  return out;
}

}  // namespace fcp
