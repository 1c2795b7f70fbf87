#include "fcp/calibrate/halves.h"

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/methods/method.h"
#include "fcp/methods/scores/labels.h"
#include "fcp/methods/scores/outputs.h"

namespace fcp {
namespace {

torch::Tensor places_of(const std::vector<size_t>& rows) {
  return torch::tensor(std::vector<int64_t>(rows.begin(), rows.end()), torch::kLong);
}

// As a split calibration would keep them.
CalibrationScores rows_at(const Score& score, const torch::Tensor& scores,
                          const torch::Tensor& which) {
  const torch::Tensor some = scores.index_select(0, which).contiguous();  // [n, S]
  CalibrationScores rows;
  rows.sides = score.sides();
  rows.targets = score.targets();
  rows.scores.assign(some.data_ptr<double>(), some.data_ptr<double>() + some.numel());
  return rows;
}

// needed [n]: the labels of a set that just holds the truth.
void add_sets(const torch::Tensor& members, const torch::Tensor& needed, HalfMeasures& measures) {
  const torch::Tensor sizes = members.sum(1);
  measures.side = BoundSide::kUpper;
  measures.lengths.push_back(sizes.to(torch::kDouble).mean().item<double>());
  measures.distances.push_back(
      (needed - sizes).clamp_min(0).to(torch::kDouble).mean().item<double>());
}

// How many labels have a score up to that of the truth [N]; of a truth that is no class, all.
torch::Tensor needed_labels(const Score& score, const torch::Tensor& features,
                            const std::vector<double>& own) {
  const auto& labels = dynamic_cast<const LabelScore&>(score);
  const torch::Tensor truth = torch::tensor(own, torch::kDouble).unsqueeze(1);
  return (labels.label_scores(features) <= truth).sum(1);
}

void add_half(const Regions& regions, const torch::Tensor& truth, HalfMeasures& measures) {
  const torch::Tensor y = truth_matrix(truth, regions.prediction);
  measures.side = regions.side;
  measures.lengths.push_back(region_costs(regions, y).mean().item<double>());
  measures.distances.push_back(region_distances(regions, y).mean().item<double>());
  measures.volumes.push_back(region_volumes(regions).mean().item<double>());
}

}  // namespace

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double HalfMeasures::length() const { return mean_of(lengths); }

double HalfMeasures::interval_score(const Level& level) const {
  return length() + miss_penalty(level, side) * mean_of(distances);
}

std::vector<double> HalfMeasures::losses(Objective objective, const Level& level) const {
  if (objective == Objective::kVolume) return volumes;
  std::vector<double> losses = lengths;
  if (objective == Objective::kLength) return losses;
  for (size_t i = 0; i < losses.size(); ++i) losses[i] += miss_penalty(level, side) * distances[i];
  return losses;
}

HalfMeasures measure_halves(const Score& score, const torch::Tensor& features,
                            const torch::Tensor& truth, const Level& level,
                            const std::vector<Halving>& halvings) {
  const std::vector<double> plain = score.score(features, truth);
  const torch::Tensor scores =
      torch::tensor(plain, torch::kDouble).reshape({features.size(0), score.sides()});
  if (scores.isnan().any().item<bool>()) fail("some of its scores are not numbers");
  const bool labels = score.classes() > 0;
  const torch::Tensor needed = labels ? needed_labels(score, features, plain) : torch::Tensor();
  const auto halves = static_cast<double>(2 * halvings.size());
  HalfMeasures measures;
  for (const Halving& halving : halvings) {
    for (const size_t side : {0, 1}) {
      check_interrupted();
      const torch::Tensor judged = places_of(halving[1 - side]);
      const auto calibration =
          make_calibration({}, rows_at(score, scores, places_of(halving[side])));
      const TestInputs fresh{features.index_select(0, judged.to(features.device())), {}, {}};
      const torch::Tensor radii = calibration->radii(fresh, level);
      const Regions regions = score.region(fresh.features, radii);
      if (labels) {
        add_sets(regions.members, needed.index_select(0, judged), measures);
      } else {
        add_half(regions, truth.index_select(0, judged.to(truth.device())), measures);
      }
      measures.radius += radii.mean().item<double>() / halves;
      const torch::Tensor within = scores.index_select(0, judged) <= radii.cpu();
      const torch::Tensor in = within.reshape({within.size(0), score.targets(), -1}).all(2);
      measures.coverage += in.to(torch::kDouble).mean().item<double>() / halves;
    }
  }
  return measures;
}

}  // namespace fcp
