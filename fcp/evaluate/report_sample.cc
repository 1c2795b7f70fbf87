#include "fcp/evaluate/report_sample.h"

#include <utility>

namespace fcp {

template <typename Archive>
void visit_fields(Archive& archive, IntervalAtLevel& at) {
  archive(at.interval.lower, at.interval.upper, at.covered);
}

template <typename Archive>
void visit_fields(Archive& archive, IntervalExample& example) {
  archive(example.prediction, example.lower, example.upper, example.truth, example.at_levels);
}

template <typename Archive>
void visit_fields(Archive& archive, LabelAtLevels& label) {
  archive(label.name, label.last);
}

template <typename Archive>
void visit_fields(Archive& archive, LabelExample& example) {
  archive(example.truth, example.prediction, example.members, example.at_levels);
}

template <typename Archive>
void visit_fields(Archive& archive, PixelExample& example) {
  archive(example.pixel_share, example.height, example.width, example.uncertainty, example.truth,
          example.prediction, example.missed);
}

template <typename Archive>
void visit_fields(Archive& archive, Example& example) {
  uint64_t kind = example.region.index();
  archive(example.name, example.png, example.covered, kind);
  if (kind == 1 && kind != example.region.index()) example.region = LabelExample{};
  if (kind == 2 && kind != example.region.index()) example.region = PixelExample{};
  std::visit([&](auto& region) { archive(region); }, example.region);
  archive(example.others);
}

namespace {

constexpr size_t kIntervalExamples = 300;
constexpr size_t kLabelExamples = 200;  // of which the page shows the hardest
constexpr size_t kPictureExamples = 96;
constexpr size_t kLengths = 5000;

std::vector<size_t> sample_sizes(const EvaluateOptions& options, bool labels, bool images) {
  if (images) return {options.pictures};
  if (labels) return {options.images ? kPictureExamples : kLabelExamples};
  return {kIntervalExamples, kLengths};
}

}  // namespace

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

ReportSample::ReportSample(const MethodEvaluator& method, const EvaluateOptions& options,
                           bool labels, bool images, uint64_t seed)
    : method_(method),
      sampler_(sample_sizes(options, labels, images), images ? std::nullopt : std::optional(seed)) {
}

void ReportSample::measure(const Rows& rows, const MeasuredRegions& measured, Packer& packer) {
  const auto drawn = sampler_.draw(rows.first_row, rows.x.rows());
  std::vector<Drawn<Example>> shown;
  for (const DrawnRow& one : drawn[0]) {
    shown.push_back({one.place, method_.example(rows, measured, one.row)});
  }
  std::vector<Drawn<double>> sampled;
  for (size_t i = 0; drawn.size() > 1 && i < drawn[1].size(); ++i) {
    const DrawnRow& one = drawn[1][i];
    sampled.push_back({one.place, method_.length(measured.regions, one.row).value()});
  }
  packer(shown, sampled);
}

void ReportSample::take(Unpacker& unpacker) {
  std::vector<Drawn<Example>> shown;
  std::vector<Drawn<double>> sampled;
  unpacker(shown, sampled);
  put_drawn(examples, std::move(shown));
  put_drawn(lengths, std::move(sampled));
}

}  // namespace fcp
