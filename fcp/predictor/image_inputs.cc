#include "fcp/predictor/image_inputs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fcp/data/forwarded_rows.h"

namespace fcp {
namespace {

constexpr int64_t kChannels = 3;

bool has_channels_last(const TensorInfo& input) {
  return input.known_rank && input.shape.size() == 4 && input.shape[3] == kChannels &&
         input.shape[1] != kChannels;
}

class ImagesForInput : public ForwardedRows {
 public:
  ImagesForInput(std::unique_ptr<RowSource> source, const TensorInfo& input)
      : ForwardedRows(std::move(source)),
        last_(has_channels_last(input)),
        round_(takes_pixels(input)),
        row_shape_(ForwardedRows::row_shape()) {
    if (last_) row_shape_ = {row_shape_[1], row_shape_[2], row_shape_[0]};
  }

  bool next(size_t count, Rows& out) override {
    if (!ForwardedRows::next(count, out)) return false;
    for (float& value : out.x.values) value = round_ ? std::nearbyint(value) : value;
    if (last_) move_channels(out.x);
    return true;
  }
  const std::vector<int64_t>& row_shape() const override { return row_shape_; }

 private:
  // [n, 3, H, W] → [n, H, W, 3]
  void move_channels(Array& x) {
    const auto channels = static_cast<size_t>(kChannels);
    const size_t row = x.row_size(), plane = row / channels;
    moved_.resize(row);
    for (size_t i = 0; i < x.rows(); ++i) {
      float* const numbers = x.values.data() + i * row;
      for (size_t pixel = 0; pixel < plane; ++pixel) {
        for (size_t c = 0; c < channels; ++c) {
          moved_[pixel * channels + c] = numbers[c * plane + pixel];
        }
      }
      std::copy(moved_.begin(), moved_.end(), numbers);
    }
    x.shape = {x.shape[0], x.shape[2], x.shape[3], kChannels};
  }

  bool last_, round_;
  std::vector<int64_t> row_shape_;
  std::vector<float> moved_;
};

}  // namespace

bool takes_pixels(const TensorInfo& input) { return input.type == ElementType::kUint8; }

ImageTransform pixel_transform() {
  ImageTransform transform;
  transform.mean = {0, 0, 0};
  transform.deviation = {1.0f / 255, 1.0f / 255, 1.0f / 255};
  return transform;
}

std::unique_ptr<RowSource> images_for_input(std::unique_ptr<RowSource> rows,
                                            const TensorInfo& input) {
  if (!has_channels_last(input) && !takes_pixels(input)) return rows;
  return std::make_unique<ImagesForInput>(std::move(rows), input);
}

}  // namespace fcp
