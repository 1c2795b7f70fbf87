#include "fcp/evaluate/distribution_sample.h"

#include <algorithm>

#include "fcp/base/random.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/region_tensors.h"

namespace fcp {
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

}  // namespace fcp
