#include "fcp/pipeline/coverage_counts.h"

#include <algorithm>
#include <optional>

#include "fcp/pipeline/region_tensors.h"

namespace fcp {

std::vector<Level> curve_levels() {
  std::vector<Level> levels;
  for (uint64_t percent = 2; percent <= 50; percent += 2) {
    levels.push_back(Level::fraction(percent, 100));
  }
  return levels;
}

std::vector<Level> slider_levels(const CalibrationArtifact& artifact, const Level& own) {
  std::vector<Level> levels = artifact.rows.levels;
  if (levels.empty()) {
    for (const char* text : {"0.01", "0.02", "0.03", "0.04", "0.05", "0.06", "0.08", "0.1", "0.12",
                             "0.15", "0.2", "0.25", "0.3", "0.4", "0.5"}) {
      levels.push_back(Level::parse(text));
    }
  }
  if (std::find(levels.begin(), levels.end(), own) == levels.end()) levels.push_back(own);
  std::sort(levels.begin(), levels.end(),
            [](const Level& a, const Level& b) { return a.value() < b.value(); });
  return levels;
}

std::vector<bool> foreign_labels(const Score& score, const torch::Tensor& truth) {
  if (score.classes() == 0 || !truth.is_floating_point() || truth.dim() != 2 ||
      truth.size(1) != 1) {
    return {};
  }
  const torch::Tensor infinite = truth.isinf().to(torch::kCPU).flatten().contiguous();
  if (!infinite.any().item<bool>()) return {};
  const bool* const from = infinite.data_ptr<bool>();
  return std::vector<bool>(from, from + infinite.numel());
}

std::vector<bool> within_radii(const TensorPredictor& predictor, const TestInputs& rows,
                               const torch::Tensor& truth, const std::vector<double>& scores,
                               const Level& level, bool strict) {
  torch::Tensor radii =
      host_doubles(predictor.calibration().radii(rows, level));  // [N, S] or [N, C]
  const int64_t sides = predictor.score().sides();
  const std::vector<bool> foreign = foreign_labels(predictor.score(), truth);
  if (predictor.score().classes() > 0 && radii.size(1) > 1) {
    const torch::Tensor plain = truth.to(torch::kCPU).reshape({-1, 1});
    const torch::Tensor labels = plain.masked_fill(plain.isinf(), 0).to(torch::kLong);
    radii = radii.gather(1, labels).contiguous();
  }
  const std::span<const double> limits = numbers(radii);
  std::vector<bool> in(scores.size() / static_cast<size_t>(sides), true);
  for (size_t i = 0; i < scores.size(); ++i) {
    const bool within = strict ? scores[i] < limits[i] : scores[i] <= limits[i];
    if (!within) in[i / static_cast<size_t>(sides)] = false;
  }
  for (size_t i = 0; i < foreign.size(); ++i) {
    if (foreign[i]) in[i] = false;  // an infinite radius takes all labels there are, and no others
  }
  return in;
}

std::vector<uint64_t> count_within(const CalibrationArtifact& artifact,
                                   const TensorPredictor& predictor, const TestInputs& rows,
                                   const torch::Tensor& truth, const std::vector<double>& scores) {
  std::vector<uint64_t> counts;
  for (const Level& level : artifact.rows.levels) {
    const std::vector<bool> in = within_radii(predictor, rows, truth, scores, level, false);
    counts.push_back(static_cast<uint64_t>(std::count(in.begin(), in.end(), true)));
  }
  return counts;
}

void add_counts(std::vector<uint64_t>& sums, std::span<const uint64_t> counts) {
  sums.resize(counts.size());
  for (size_t i = 0; i < counts.size(); ++i) sums[i] += counts[i];
}

std::vector<CurvePoint> curve_of_levels(const CalibrationArtifact& artifact,
                                        std::span<const uint64_t> sums, size_t rows) {
  std::vector<CurvePoint> curve;
  for (size_t i = 0; i < sums.size(); ++i) {
    const Level& level = artifact.rows.levels[i];
    const std::vector<double> radius = artifact.radius(level);
    curve.push_back({level, radius.size() == 1 ? std::optional(radius[0]) : std::nullopt,
                     coverage_of(sums[i], rows)});
  }
  return curve;
}

Conformity judge_rows(const TensorPredictor& predictor, const TestInputs& rows,
                      const torch::Tensor& truth, bool p_values) {
  if (p_values) return predictor.judge(rows, truth);
  return {predictor.score().score(rows.features, truth), {}};
}

}  // namespace fcp
