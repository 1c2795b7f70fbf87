#include "fcp/data/images/image_transform.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"

namespace fcp {

namespace {

constexpr int kWeightBits = 22;  // 32 less 8 of the pixel and 2 of headroom

// The weights of one axis: output i is the sum over `count[i]` inputs from first[i] on.
struct AxisWeights {
  int width = 0;  // of a row of `weights`
  std::vector<int> first;
  std::vector<int> count;
  std::vector<int> weights;
};

AxisWeights triangle_weights(int in, int out) {
  const double scale = static_cast<double>(in) / out;
  const double support = std::max(scale, 1.0);
  AxisWeights axis;
  axis.width = static_cast<int>(std::ceil(support)) * 2 + 1;
  axis.weights.resize(static_cast<size_t>(axis.width) * static_cast<size_t>(out));
  std::vector<double> line(static_cast<size_t>(axis.width));
  for (int i = 0; i < out; ++i) {
    const double center = (i + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(std::floor(center - support + 0.5)));
    const int last = std::min(in, static_cast<int>(std::floor(center + support + 0.5)));
    double sum = 0;
    for (int j = first; j < last; ++j) {
      const double weight = std::max(0.0, 1 - std::abs((j - center + 0.5) * (1.0 / support)));
      line[static_cast<size_t>(j - first)] = weight;
      sum += weight;
    }
    int* const weights = axis.weights.data() + static_cast<ptrdiff_t>(i) * axis.width;
    for (int j = 0; j < last - first; ++j) {
      const double weight = line[static_cast<size_t>(j)] / sum;
      weights[j] = static_cast<int>(std::floor(0.5 + weight * (1 << kWeightBits)));
    }
    axis.first.push_back(first);
    axis.count.push_back(last - first);
  }
  return axis;
}

// A sum of weighted pixels, which starts at one half so that this rounds.
uint8_t to_byte(int sum) { return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255)); }
constexpr int kHalf = 1 << (kWeightBits - 1);

template <int kChannels>
void resize_row(const uint8_t* in, const AxisWeights& axis, uint8_t* out) {
  const int* weights = axis.weights.data();
  for (size_t x = 0; x < axis.first.size(); ++x, weights += axis.width, out += kChannels) {
    const uint8_t* pixel = in + static_cast<ptrdiff_t>(axis.first[x]) * kChannels;
    int sums[kChannels];
    std::fill_n(sums, kChannels, kHalf);
    for (int j = 0; j < axis.count[x]; ++j, pixel += kChannels) {
      for (int c = 0; c < kChannels; ++c) sums[c] += pixel[c] * weights[j];
    }
    for (int c = 0; c < kChannels; ++c) out[c] = to_byte(sums[c]);
  }
}

Image resize_rows(const Image& image, int width) {
  Image out = blank_image(image.height, width, image.channels);
  const AxisWeights axis = triangle_weights(image.width, width);
  const auto resize = image.channels == 3 ? resize_row<3> : resize_row<1>;
  for (int y = 0; y < image.height; ++y) resize(image.row(y), axis, out.row(y));
  return out;
}

Image resize_columns(const Image& image, int height) {
  Image out = blank_image(height, image.width, image.channels);
  const AxisWeights axis = triangle_weights(image.height, height);
  const size_t length = image.offset(1);
  std::vector<int> sums(length);
  for (int y = 0; y < height; ++y) {
    const auto i = static_cast<size_t>(y);
    std::fill(sums.begin(), sums.end(), kHalf);
    for (int j = 0; j < axis.count[i]; ++j) {
      const uint8_t* const in = image.row(axis.first[i] + j);
      const int weight = axis.weights[i * static_cast<size_t>(axis.width) + static_cast<size_t>(j)];
      for (size_t x = 0; x < length; ++x) sums[x] += in[x] * weight;
    }
    std::transform(sums.begin(), sums.end(), out.row(y), to_byte);
  }
  return out;
}

// Which input pixel the middle of every output pixel lies in; added up as Pillow does, because
// rounding decides where it lies on an edge.
std::vector<int> nearest_places(int in, int out) {
  const double scale = static_cast<double>(in) / out;
  std::vector<int> places;
  double middle = scale * 0.5;
  for (int i = 0; i < out; ++i, middle += scale) {
    places.push_back(std::min(static_cast<int>(middle), in - 1));
  }
  return places;
}

std::array<int, 2> short_side_size(std::array<int, 2> size, int wanted) {
  const auto [height, width] = size;
  const auto longer = [&](int side, int shorter) {
    const int64_t length = int64_t{wanted} * side / shorter;
    return static_cast<int>(std::min<int64_t>(length, kLargestImage));
  };
  if (width <= height) return {longer(height, width), wanted};
  return {wanted, longer(width, height)};
}

int half_to_even(int difference) { return static_cast<int>(std::nearbyint(difference / 2.0)); }

}  // namespace

Image resize_bilinear(const Image& image, int height, int width) {
  check_image_size(height, width, "resized image");
  if (width == image.width) {
    return height == image.height ? image : resize_columns(image, height);
  }
  Image rows = resize_rows(image, width);
  return height == image.height ? rows : resize_columns(rows, height);
}

Image resize_nearest(const Image& image, int height, int width) {
  Image out = blank_image(height, width, image.channels);
  const std::vector<int> columns = nearest_places(image.width, width);
  const std::vector<int> rows = nearest_places(image.height, height);
  for (int y = 0; y < height; ++y) {
    const uint8_t* const in = image.row(rows[static_cast<size_t>(y)]);
    uint8_t* to = out.row(y);
    for (const ptrdiff_t x : columns) to = std::copy_n(in + x * image.channels, image.channels, to);
  }
  return out;
}

Image resize_short_side(const Image& image, int size) {
  const auto [height, width] = short_side_size({image.height, image.width}, size);
  return resize_bilinear(image, height, width);
}

// An image that is smaller is padded by ⌊difference / 2⌋ before, the rest after.
Image center_crop(const Image& image, int height, int width) {
  Image out = blank_image(height, width, image.channels);
  const auto begin = [](int in, int wanted) {
    return wanted > in ? -((wanted - in) / 2) : half_to_even(in - wanted);
  };
  const int top = begin(image.height, height);
  const int left = begin(image.width, width);
  const ptrdiff_t from = std::max(0, left);
  const ptrdiff_t count = std::min(image.width, left + width) - from;
  for (int y = 0; y < height; ++y) {
    if (top + y < 0 || top + y >= image.height) continue;
    std::copy_n(image.row(top + y) + from * image.channels, count * image.channels,
                out.row(y) + (from - left) * image.channels);
  }
  return out;
}

void normalize_image(const Image& image, const std::array<float, 3>& mean,
                     const std::array<float, 3>& deviation, std::span<float> out) {
  const size_t plane = static_cast<size_t>(image.height) * static_cast<size_t>(image.width);
  if (image.channels != 3 || out.size() != 3 * plane) {
    fail("cannot normalise an image of ", image.channels, " channels and ", plane,
         " pixels to 3 planes of ", out.size(), " numbers in all");
  }
  for (size_t c = 0; c < 3; ++c) {
    std::array<float, 256> value;  // of every byte: a look instead of two divisions
    for (size_t byte = 0; byte < 256; ++byte) {
      value[byte] = (static_cast<float>(byte) / 255.f - mean[c]) / deviation[c];
    }
    const uint8_t* in = image.pixels.data() + c;
    float* const to = out.data() + c * plane;
    for (size_t i = 0; i < plane; ++i, in += 3) to[i] = value[*in];
  }
}

void check_transform(const ImageTransform& transform) {
  const auto [height, width] = transform.size;
  if (transform.resize < 0 || transform.crop < 0 || height < 0 || width < 0 ||
      (height == 0) != (width == 0)) {
    fail("image transform: resize ", transform.resize, ", size ", height, " x ", width, ", crop ",
         transform.crop, ", expected positive sizes, or 0 for none");
  }
  if (transform.resize > 0 && height > 0) {
    fail("image transform: resize ", transform.resize, " and size ", height, " x ", width,
         " are both given, expected one of them");
  }
  for (const float deviation : transform.deviation) {
    if (!(deviation > 0)) fail("image transform: a deviation is ", deviation, ", expected > 0");
  }
}

std::array<int, 2> transformed_size(const ImageTransform& transform, std::array<int, 2> size) {
  if (transform.crop > 0) return {transform.crop, transform.crop};
  if (transform.size[0] > 0) return transform.size;
  if (transform.resize > 0 && size[0] > 0) return short_side_size(size, transform.resize);
  return size;
}

Image resize_and_crop(const ImageTransform& transform, Image image) {
  if (transform.resize > 0) {
    image = resize_short_side(image, transform.resize);
  } else if (transform.size[0] > 0) {
    image = resize_bilinear(image, transform.size[0], transform.size[1]);
  }
  if (transform.crop > 0) image = center_crop(image, transform.crop, transform.crop);
  return image;
}

Array transform_image(const ImageTransform& transform, const Image& image) {
  const Image ready = resize_and_crop(transform, image);
  Array out = zeros({3, ready.height, ready.width});
  normalize_image(ready, transform.mean, transform.deviation, out.values);
  return out;
}

namespace {

using ImageJson = nlohmann::ordered_json;

int whole_number(const ImageJson& json) {
  if (!json.is_number_integer()) fail("the image settings are damaged: ", json.dump());
  return json.get<int>();
}

}  // namespace

std::string transform_text(const ImageTransform& transform) {
  return ImageJson{{"resize", transform.resize},
                   {"size", transform.size},
                   {"crop", transform.crop},
                   {"mean", transform.mean},
                   {"deviation", transform.deviation}}
      .dump();
}

ImageTransform parse_transform(const std::string& text) {
  try {
    const ImageJson json = ImageJson::parse(text);
    ImageTransform transform;
    transform.resize = whole_number(json.at("resize"));
    transform.size = {whole_number(json.at("size").at(0)), whole_number(json.at("size").at(1))};
    transform.crop = whole_number(json.at("crop"));
    json.at("mean").get_to(transform.mean);
    json.at("deviation").get_to(transform.deviation);
    check_transform(transform);
    return transform;
  } catch (const nlohmann::json::exception&) {
    fail("the image settings are damaged: ", text);
  }
}

std::string class_names_text(const std::vector<std::string>& names) {
  // Names that are not UTF-8 keep what can be kept of them.
  return ImageJson(names).dump(-1, ' ', false, ImageJson::error_handler_t::replace);
}

std::vector<std::string> parse_class_names(const std::string& text) {
  const ImageJson names = ImageJson::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto is_text = [](const ImageJson& name) { return name.is_string(); };
  if (!names.is_array() || !std::all_of(names.begin(), names.end(), is_text)) {
    fail("the class names are damaged: ", text);
  }
  return names.get<std::vector<std::string>>();
}

}  // namespace fcp
