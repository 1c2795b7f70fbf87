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
    std::vector<double> numbers = {interval->prediction, interval->lower, interval->upper,
                                   interval->truth};
    for (const IntervalAtLevel& at : interval->at_levels) {
      numbers.insert(numbers.end(), {at.interval.lower, at.interval.upper, at.covered ? 1.0 : 0.0});
    }
    packer.add(numbers);
  } else if (const auto* labels = std::get_if<LabelExample>(&example.region)) {
    packer.add(labels->truth);
    packer.add(labels->prediction);
    packer.add(uint64_t{labels->members.size()});
    for (const std::string& member : labels->members) packer.add(member);
    packer.add(uint64_t{labels->at_levels.size()});
    for (const LabelAtLevels& label : labels->at_levels) {
      packer.add(label.name);
      packer.add(uint64_t{label.last});
    }
  } else {
    const PixelExample& pixels = example.pixels();
    packer.add(std::vector<double>{pixels.pixel_share, static_cast<double>(pixels.height),
                                   static_cast<double>(pixels.width)});
    packer.add(pixels.uncertainty);
    for (const std::string* png : {&pixels.truth, &pixels.prediction, &pixels.missed}) {
      packer.add(*png);
    }
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
    IntervalExample interval{ends.at(0), ends.at(1), ends.at(2), ends.at(3)};
    for (size_t i = 4; i + 2 < ends.size(); i += 3) {
      interval.at_levels.push_back({{ends[i], ends[i + 1]}, ends[i + 2] != 0});
    }
    example.region = std::move(interval);
  } else if (kind == 1) {
    LabelExample labels;
    labels.truth = unpacker.text();
    labels.prediction = unpacker.text();
    const uint64_t members = unpacker.number();
    for (uint64_t i = 0; i < members; ++i) labels.members.push_back(unpacker.text());
    const uint64_t others = unpacker.number();
    for (uint64_t i = 0; i < others; ++i) {
      std::string name = unpacker.text();
      labels.at_levels.push_back({std::move(name), unpacker.number()});
    }
    example.region = std::move(labels);
  } else {
    const std::vector<double> figures = unpacker.numbers<double>();
    PixelExample pixels{figures.at(0), static_cast<size_t>(figures.at(1)),
                        static_cast<size_t>(figures.at(2))};
    pixels.uncertainty = unpacker.numbers<float>();
    pixels.truth = unpacker.text();
    pixels.prediction = unpacker.text();
    pixels.missed = unpacker.text();
    example.region = std::move(pixels);
  }
  return example;
}

}  // namespace fcp
