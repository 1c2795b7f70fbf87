#include "fcp/evaluate/report_sample.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "fcp/base/random.h"
#include "fcp/methods/options.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/region_tensors.h"

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

namespace {

constexpr uint64_t kQuantiles = 99;

// F at the truth, anywhere between its bounds: by the number of the row, so that it is the same in
// batches of any size.
double place_in(const ProbabilityBand& band, uint64_t seed, uint64_t row) {
  Random random(seed ^ (row * 0x9E3779B97F4A7C15ULL));
  return std::clamp(band.lower + random.uniform() * (band.upper - band.lower), 0.0, 1.0);
}

}  // namespace

DistributionSample::DistributionSample(const CalibrationArtifact& artifact, const RowSource& source,
                                       const EvaluateOptions& options, const Context& context)
    : options_(options),
      groups_(artifact.rows.group_names.size()),
      calibration_rows_(artifact.rows.count()),
      seed_(context.seed),
      evaluator_(kQuantiles) {
  if (source.segmentation() || source.target_count() != 1 || no_distribution(artifact)) return;
  distribution_.emplace(artifact, context.device);
}

void DistributionSample::measure(const Rows& rows, Packer& packer) const {
  if (!distribution_) return;
  const SideInformation known =
      side_information(options_.facts, groups_, rows.first_row, rows.x.rows());
  const TestInputs inputs = distribution_->describe(view(rows.x), known);
  const torch::Tensor quantiles = distribution_->quantiles(inputs, even_levels(kQuantiles));
  const torch::Tensor truths = host_doubles(view(rows.y));
  const std::vector<double> truth(numbers(truths).begin(), numbers(truths).end());
  std::vector<double> places;
  for (const ProbabilityBand& band : distribution_->below(inputs, truth)) {
    places.push_back(place_in(band, seed_, rows.first_row + places.size()));
  }
  packer.add(numbers(quantiles));
  packer.add(truth);
  packer.add(places);
}

void DistributionSample::take(Unpacker& unpacker) {
  if (!distribution_) return;
  const auto quantiles = unpacker.numbers<double>(), truth = unpacker.numbers<double>(),
             places = unpacker.numbers<double>();
  for (size_t i = 0; i < truth.size(); ++i) {
    evaluator_.add(std::span(quantiles).subspan(i * kQuantiles, kQuantiles), truth[i], places[i]);
    any_ = true;
  }
}

std::optional<DistributionEvaluation> DistributionSample::finish() const {
  if (!any_) return std::nullopt;
  return evaluator_.finish(calibration_rows_);
}

namespace {

constexpr size_t kNumbersOfRow = 4;

void put_judged(const JudgedProbabilities& row, std::vector<double>& numbers) {
  numbers.insert(numbers.end(), {row.log_loss, row.brier, row.predicted, row.happened});
}

void add_judged(std::span<const double> numbers, ProbabilityEvaluator& evaluator) {
  for (size_t at = 0; at < numbers.size(); at += kNumbersOfRow) {
    evaluator.add({numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3]});
  }
}

}  // namespace

ProbabilitySample::ProbabilitySample(const Judge& judge, std::vector<std::string> class_names)
    : class_names_(std::move(class_names)) {
  const ScoreOptions& score = judge.artifact().method.score;
  if (!score.traits().labels || score.pixels != 0) return;
  probabilities_.emplace(judge.predictor().network(), judge.artifact());
}

void ProbabilitySample::measure(const JudgedRows& rows, Packer& packer) const {
  if (!probabilities_) return;
  const torch::Tensor own = probabilities_->shares().of(rows.inputs.features);
  const ClassChances found = probabilities_->from(own);
  const auto width = static_cast<size_t>(own.size(1));
  const auto row_of = [&](const torch::Tensor& all, size_t row) {
    return std::span<const double>(all.data_ptr<double>() + row * width, width);
  };
  std::vector<double> judged, plain, gaps;
  for (size_t i = 0; i < rows.count(); ++i) {
    const float truth = rows.rows.y.values[i];
    if (std::isinf(truth) || std::isnan(row_of(own, i)[0])) continue;
    const auto label = static_cast<size_t>(truth);
    const JudgedProbabilities row = judge_probabilities(row_of(found.merged, i), label);
    put_judged(row, judged);
    if (!found.calibrated()) continue;
    put_judged(judge_probabilities(row_of(own, i), label), plain);
    gaps.push_back(row_of(found.p1, i)[row.event_class] - row_of(found.p0, i)[row.event_class]);
  }
  packer.add(judged);
  packer.add(plain);
  packer.add(gaps);
}

void ProbabilitySample::take(Unpacker& unpacker) {
  if (!probabilities_) return;
  add_judged(unpacker.numbers<double>(), evaluator_);
  add_judged(unpacker.numbers<double>(), softmax_);
  for (const double gap : unpacker.numbers<double>()) gaps_ += gap;
}

std::optional<ProbabilityEvaluation> ProbabilitySample::finish() const {
  if (evaluator_.rows() == 0) return std::nullopt;
  ProbabilityEvaluation found{.method = probabilities_->calibrated() ? kVennAbers : "softmax",
                              .of = class_names_.size() == 2 ? class_names_[1] : "answer",
                              .rows = evaluator_.rows(),
                              .figures = evaluator_.figures(),
                              .reliability = evaluator_.reliability()};
  if (!probabilities_->calibrated()) return found;
  found.mean_gap = gaps_ / static_cast<double>(found.rows);
  found.softmax = softmax_.figures();
  return found;
}

}  // namespace fcp
