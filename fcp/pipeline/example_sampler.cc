#include "fcp/pipeline/example_sampler.h"

#include <utility>

namespace fcp {

RowSampler::RowSampler(std::vector<size_t> sizes, std::optional<uint64_t> seed)
    : sizes_(std::move(sizes)) {
  if (seed) random_.emplace(*seed);
}

// Beyond its size: left out of that sample.
std::vector<size_t> RowSampler::places_of(size_t row) {
  std::vector<size_t> places;
  for (const size_t size : sizes_) {
    const bool random = row >= size && random_;
    places.push_back(random ? static_cast<size_t>(random_->below(row + 1)) : row);
  }
  return places;
}

std::vector<std::vector<DrawnRow>> RowSampler::draw(size_t first_row, size_t count) {
  while (drawn_ < first_row) places_of(drawn_++);
  std::vector<std::vector<DrawnRow>> drawn(sizes_.size());
  for (size_t i = 0; i < count; ++i) {
    const std::vector<size_t> places = places_of(drawn_++);
    for (size_t sample = 0; sample < sizes_.size(); ++sample) {
      if (places[sample] < sizes_[sample]) drawn[sample].push_back({i, places[sample]});
    }
  }
  return drawn;
}

void pack_example(const Example& example, Packer& packer) {
  packer.add(example.name);
  packer.add(example.png);
  packer.add(uint64_t{example.covered});
  packer.add(uint64_t{example.region.index()});
  if (const auto* interval = std::get_if<IntervalExample>(&example.region)) {
    packer.add(std::vector<double>{interval->prediction, interval->lower, interval->upper,
                                   interval->truth});
  } else if (const auto* labels = std::get_if<LabelExample>(&example.region)) {
    packer.add(labels->truth);
    packer.add(labels->prediction);
    packer.add(uint64_t{labels->members.size()});
    for (const std::string& member : labels->members) packer.add(member);
  } else {
    const PixelExample& pixels = example.pixels();
    packer.add(std::vector<double>{pixels.pixel_share, pixels.largest_uncertainty});
  }
}

Example unpack_example(Unpacker& unpacker) {
  Example example;
  example.name = unpacker.text();
  example.png = unpacker.text();
  example.covered = unpacker.number() != 0;
  const uint64_t kind = unpacker.number();
  if (kind == 0) {
    const std::vector<double> ends = unpacker.numbers<double>();
    example.region = IntervalExample{ends.at(0), ends.at(1), ends.at(2), ends.at(3)};
  } else if (kind == 1) {
    LabelExample labels;
    labels.truth = unpacker.text();
    labels.prediction = unpacker.text();
    const uint64_t members = unpacker.number();
    for (uint64_t i = 0; i < members; ++i) labels.members.push_back(unpacker.text());
    example.region = std::move(labels);
  } else {
    const std::vector<double> figures = unpacker.numbers<double>();
    example.region = PixelExample{figures.at(0), figures.at(1)};
  }
  return example;
}

}  // namespace fcp
