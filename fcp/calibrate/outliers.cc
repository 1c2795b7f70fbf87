#include "fcp/calibrate/outliers.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/base/special_numbers.h"
#include "fcp/calibrate/choose_cut.h"
#include "fcp/conformal/p_value.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/runtime/batch_free.h"

namespace fcp {
namespace {

std::string outlier_cut(const CalibrationArtifact& artifact, const std::string& asked) {
  if (!asked.empty()) return asked;
  if (!artifact.method.cut.empty()) return artifact.method.cut;
  return default_cut(artifact.network, artifact.method.score).cut;
}

torch::Tensor rows_at(const torch::Tensor& all, std::span<const size_t> places) {
  const std::vector<int64_t> chosen(places.begin(), places.end());
  return all.index_select(0, torch::tensor(chosen, torch::kLong));
}

// The distances of each row to the k nearest references, ascending [N, k]; `itself`: to others,
// where the rows are the references.
torch::Tensor nearest(const torch::Tensor& rows, const torch::Tensor& references, int64_t k,
                      bool itself = false) {
  // By differences: by products, the bits of a distance would depend on the batch.
  torch::Tensor distances = torch::cdist(rows, references, 2.0, /*compute_mode=*/2);
  if (itself) distances.fill_diagonal_(kInfinity);
  return std::get<0>(distances.topk(k, 1, /*largest=*/false, /*sorted=*/true));
}

void check_outlier_weights(std::span<const double> weights, size_t rows) {
  if (weights.size() != rows) {
    fail("weights: found ", weights.size(), " for ", rows, " rows, expected one each");
  }
  for (size_t row = 0; row < rows; ++row) {
    if (weights[row] >= 0 && std::isfinite(weights[row])) continue;
    fail("weights: row ", row, " (from 0) has ", weights[row],
         ", expected a finite number, not negative");
  }
}

}  // namespace

OutlierFeatures::OutlierFeatures(const CalibrationArtifact& artifact, const std::string& where,
                                 torch::Device device)
    : device_(device) {
  const std::string asked = outlier_cut(artifact, where);
  if (asked.empty()) return;
  CutGraph parts = fcp::cut(graph_for_score(artifact.network, artifact.method.score), asked);
  cut_ = parts.feature;
  NetworkOptions options;
  options.device = device;
  backbone_.emplace(std::move(parts.backbone), options);
}

torch::Tensor OutlierFeatures::of(const torch::Tensor& x, size_t first) const {
  const torch::NoGradGuard no_grad;
  const torch::Tensor found = backbone_ ? run_apart(*backbone_, {x.to(device_)})[0] : x;
  torch::Tensor plain = found.to(torch::kCPU, torch::kDouble).flatten(1).contiguous();
  const torch::Tensor bad = plain.isfinite().logical_not().any(1);
  if (bad.any().item<bool>()) {
    const int64_t row = bad.to(torch::kByte).argmax().item<int64_t>();
    fail("row ", first + static_cast<size_t>(row),
         " (from 0) has a feature that is no finite number");
  }
  return plain;
}

FeatureOutliers::FeatureOutliers(OutlierFeatures source, const torch::Tensor& features,
                                 const OutlierOptions& options)
    : source_(std::move(source)), density_(options.score == kByDensity) {
  const torch::NoGradGuard no_grad;
  const auto rows = static_cast<size_t>(features.size(0));
  if (!density_ && options.score != kByNeighbours) {
    fail("score: found ", options.score, ", expected neighbours or density");
  }
  if (options.neighbours < 1) fail("neighbours: found 0, expected at least 1");
  if (rows < 4) fail("outliers need at least 4 usual rows to compare with, found ", rows);
  if (!options.weights.empty()) check_outlier_weights(options.weights, rows);
  const std::vector<size_t> order = Random(options.seed).permutation(rows);
  const size_t kept = std::max<size_t>(2, std::min(options.kept, rows / 2));
  const auto [references, others] =
      std::pair(std::span(order).first(kept), std::span(order).subspan(kept));
  const torch::Tensor plain = rows_at(features, references);
  mean_ = plain.mean(0);
  deviation_ = plain.std(0, /*unbiased=*/false);
  deviation_ = torch::where(deviation_ > 0, deviation_, torch::ones_like(deviation_));
  reference_ = ((plain - mean_) / deviation_).contiguous();
  neighbours_ = static_cast<int64_t>(std::min(options.neighbours, kept - 1));
  if (density_) {
    const torch::Tensor far = nearest(reference_, reference_, neighbours_, /*itself=*/true);
    const double typical = far.select(1, neighbours_ - 1).median().item<double>();
    if (typical > 0) width_ = typical;
  }
  const std::vector<double> found = scores(rows_at(features, others));
  std::vector<size_t> places(found.size());
  std::iota(places.begin(), places.end(), size_t{0});
  std::stable_sort(places.begin(), places.end(),
                   [&](size_t a, size_t b) { return found[a] < found[b]; });
  for (const size_t place : places) {
    sorted_.push_back(found[place]);
    if (!options.weights.empty()) weights_.push_back(options.weights[others[place]]);
  }
}

std::vector<double> FeatureOutliers::scores(const torch::Tensor& features) const {
  const torch::NoGradGuard no_grad;
  if (features.size(1) != mean_.size(0)) {
    fail("found rows of ", features.size(1), " features, the usual rows have ", mean_.size(0));
  }
  const int64_t block = std::max<int64_t>(1, (int64_t{1} << 22) / reference_.size(0));
  std::vector<double> all;
  for (int64_t first = 0; first < features.size(0); first += block) {
    const torch::Tensor rows =
        (features.narrow(0, first, std::min(block, features.size(0) - first)) - mean_) / deviation_;
    torch::Tensor found;
    if (density_) {
      const torch::Tensor apart = torch::cdist(rows, reference_, 2.0, /*compute_mode=*/2) / width_;
      found = -torch::logsumexp(apart.square() * -0.5, 1);
    } else {
      found = nearest(rows, reference_, neighbours_).mean(1);
    }
    found = found.contiguous();
    all.insert(all.end(), found.data_ptr<double>(), found.data_ptr<double>() + found.numel());
  }
  return all;
}

std::vector<double> FeatureOutliers::p_values(std::span<const double> scores,
                                              std::span<const double> weights) const {
  const bool weighted = !weights_.empty();
  if (weighted != !weights.empty() && !scores.empty()) {
    fail("weights: the usual rows have ", weighted ? "some" : "none",
         ", expected the same of the new ones");
  }
  if (weighted) check_outlier_weights(weights, scores.size());
  std::vector<double> found;
  for (size_t i = 0; i < scores.size(); ++i) {
    found.push_back(weighted ? weighted_p_value(sorted_, weights_, weights[i], scores[i])
                             : conformal_p_value(sorted_, scores[i]).value());
  }
  return found;
}

}  // namespace fcp
