#include "fcp/pipeline/label_examples.h"

#include <algorithm>
#include <cmath>

#include "fcp/base/error.h"
#include "fcp/images/image.h"
#include "fcp/pipeline/label_sets.h"

namespace fcp {
namespace {

constexpr size_t kExamples = 24;

void pack_example(const LabelExample& example, Packer& packer) {
  packer.add(example.name);
  packer.add(example.truth);
  packer.add(example.prediction);
  packer.add(uint64_t{example.members.size()});
  for (const std::string& member : example.members) packer.add(member);
  packer.add(uint64_t{example.covered});
  packer.add(example.image_png);
}

LabelExample unpack_example(Unpacker& unpacker) {
  LabelExample example;
  example.name = unpacker.text();
  example.truth = unpacker.text();
  example.prediction = unpacker.text();
  const uint64_t members = unpacker.number();
  for (uint64_t i = 0; i < members; ++i) example.members.push_back(unpacker.text());
  example.covered = unpacker.number() != 0;
  example.image_png = unpacker.text();
  return example;
}

}  // namespace

void ExampleSampler::measure(const Rows& rows, const Regions& regions, Packer& packer) {
  const torch::Tensor members = host_members(regions);
  const std::vector<int64_t> predicted = host_labels(regions.prediction);
  while (drawn_ < rows.first_row) draw();
  std::vector<uint64_t> places;
  std::vector<size_t> chosen;
  for (size_t i = 0; i < rows.x.rows(); ++i) {
    const size_t place = draw();
    if (place >= kExamples) continue;
    places.push_back(place);
    chosen.push_back(i);
  }
  packer.add(places);
  for (const size_t i : chosen) {
    LabelExample example;
    example.name = source_.row_name(rows.first_row + i);
    if (example.name.empty()) example.name = concat("row ", rows.first_row + i);
    const auto truth = static_cast<size_t>(rows.y.values[i]);
    example.truth = names_[truth];
    example.prediction = names_[static_cast<size_t>(predicted[i])];
    example.members = member_names(members, static_cast<int64_t>(i), names_);
    example.covered = members[static_cast<int64_t>(i)][static_cast<int64_t>(truth)].item<bool>();
    if (transform_) example.image_png = picture(rows.x, i);
    pack_example(example, packer);
  }
}

void ExampleSampler::take(Unpacker& unpacker) {
  for (const uint64_t place : unpacker.numbers<uint64_t>()) {
    if (place >= examples_.size()) examples_.resize(place + 1);
    examples_[place] = unpack_example(unpacker);
  }
}

size_t ExampleSampler::draw() {
  const size_t row = drawn_++;
  return row < kExamples ? row : static_cast<size_t>(random_.below(row + 1));
}

std::string ExampleSampler::picture(const Array& x, size_t row) const {
  const auto height = static_cast<int>(x.shape[2]), width = static_cast<int>(x.shape[3]);
  Image image = blank_image(height, width, 3);
  const size_t plane = static_cast<size_t>(height) * static_cast<size_t>(width);
  for (size_t channel = 0; channel < 3; ++channel) {
    const float* from = x.values.data() + (row * 3 + channel) * plane;
    for (size_t i = 0; i < plane; ++i) {
      const float value =
          255 * (from[i] * transform_->deviation[channel] + transform_->mean[channel]);
      image.pixels[i * 3 + channel] =
          static_cast<uint8_t>(std::clamp(std::lround(value), 0l, 255l));
    }
  }
  return encode_png(image);
}

}  // namespace fcp
