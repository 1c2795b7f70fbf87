#include "fcp/predictor/class_probabilities.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/methods/scores/softmax_row.h"

namespace fcp {
namespace {

// What the fitted predictors say of one row of the network's own probabilities.
void put_pairs(const std::vector<VennAbers>& fitted, std::span<const double> shares, double* p0,
               double* p1) {
  if (fitted.size() == 1) {
    const VennAbersPair second = fitted[0].at(shares[1]);
    p0[0] = 1 - second.p1;
    p1[0] = 1 - second.p0;
    p0[1] = second.p0;
    p1[1] = second.p1;
    return;
  }
  for (size_t k = 0; k < shares.size(); ++k) {
    const VennAbersPair pair = fitted[k].at(shares[k]);
    p0[k] = pair.p0;
    p1[k] = pair.p1;
  }
}

}  // namespace

LogitShares::LogitShares(const ScoredNetwork& network, const ScoreOptions& score) {
  if (!score.traits().labels || score.pixels != 0) {
    fail_option("probabilities", "are of classes; the score ", score.name(), " gives ",
                score.traits().labels ? "sets for pixels" : "intervals");
  }
  head_ = logit_head(network.shared_head(), score.output);
  const double* const own = score.find(field::temperature);
  temperature_ = own == nullptr ? 1 : *own;
}

torch::Tensor LogitShares::of(const torch::Tensor& features) const {
  const torch::NoGradGuard no_grad;
  const torch::Tensor logits = logits_of(head_, features).contiguous();
  torch::Tensor all = torch::empty(logits.sizes(), torch::kDouble);
  const auto width = static_cast<size_t>(logits.size(1));
  const auto rows = static_cast<size_t>(logits.size(0));
  for (size_t row = 0; row < rows; ++row) {
    double* const own = all.data_ptr<double>() + row * width;
    if (softmax_row({logits.data_ptr<float>() + row * width, width}, temperature_, own)) continue;
    std::fill_n(own, width, std::numeric_limits<double>::quiet_NaN());
  }
  return all;
}

torch::Tensor LogitShares::scores(const torch::Tensor& features) const {
  const torch::Tensor all = of(features);
  return all.size(1) == 2 ? all.narrow(1, 1, 1).contiguous() : all;
}

std::vector<VennAbers> fit_chances(std::span<const double> scores,
                                   std::span<const int64_t> labels) {
  if (labels.empty()) fail("calibrated probabilities need rows with labels of the classes");
  const size_t width = scores.size() / labels.size();
  std::vector<VennAbers> fitted;
  std::vector<double> own(labels.size());
  std::vector<bool> hits(labels.size());
  for (size_t k = 0; k < width; ++k) {
    const auto label = static_cast<int64_t>(width == 1 ? 1 : k);
    for (size_t row = 0; row < labels.size(); ++row) {
      own[row] = scores[row * width + k];
      hits[row] = labels[row] == label;
    }
    fitted.emplace_back(own, hits);
  }
  return fitted;
}

void check_chances(const std::vector<VennAbers>& fitted, int64_t classes) {
  const auto needed = static_cast<size_t>(classes == 2 ? 1 : classes);
  if (fitted.empty() || fitted.size() == needed) return;
  fail("its calibrated probabilities are of ", fitted.size(), " classes, its network answers ",
       classes);
}

torch::Tensor ClassChances::columns() const {
  return calibrated() ? torch::cat({merged, p0, p1}, 1) : merged;
}

ClassProbabilities::ClassProbabilities(const ScoredNetwork& network,
                                       const CalibrationArtifact& artifact)
    : network_(network), fitted_(artifact.chances), shares_(network, artifact.method.score) {
  check_chances(fitted_, shares_.classes());
}

ClassChances ClassProbabilities::from(const torch::Tensor& shares) const {
  if (!calibrated()) return {shares, {}, {}};
  const torch::NoGradGuard no_grad;
  ClassChances found{torch::empty_like(shares), torch::empty_like(shares),
                     torch::empty_like(shares)};
  const auto width = static_cast<size_t>(shares.size(1));
  for (size_t row = 0; row < static_cast<size_t>(shares.size(0)); ++row) {
    const size_t at = row * width;
    const std::span<const double> own(shares.data_ptr<double>() + at, width);
    double* const merged = found.merged.data_ptr<double>() + at;
    double* const p0 = found.p0.data_ptr<double>() + at;
    double* const p1 = found.p1.data_ptr<double>() + at;
    put_pairs(fitted_, own, p0, p1);
    double sum = 0;
    for (size_t k = 0; k < width; ++k) {
      merged[k] = VennAbersPair{p0[k], p1[k]}.merged();
      sum += merged[k];
    }
    for (size_t k = 0; k < width; ++k) {
      if (width > 2) merged[k] /= sum;
      if (std::isnan(own[k])) merged[k] = p0[k] = p1[k] = own[k];
    }
  }
  return found;
}

}  // namespace fcp
