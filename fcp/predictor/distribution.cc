#include "fcp/predictor/distribution.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/methods/calibrations/kept_levels.h"
#include "fcp/methods/scores/labels.h"
#include "fcp/nn/runtime/batch_free.h"
#include "fcp/predictor/region_tensors.h"

namespace fcp {
namespace {

// The artifact with one end, and no support: of two ends the upper one.
CalibrationArtifact one_end_artifact(CalibrationArtifact artifact) {
  if (const auto why = no_distribution(artifact)) fail(*why);
  ScoreOptions& score = artifact.method.score;
  score.support.clear();
  score.integer = false;
  if (score.side != BoundSide::kBoth) return artifact;
  score.side = BoundSide::kUpper;
  score.set(field::asymmetric, false);
  artifact.rows.scores = side_scores(artifact.rows, 1);
  artifact.rows.sides = 1;
  return artifact;
}

double threshold_in(const char* option, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    fail_option(option, "found ", text, ", expected a number");
  }
  return value;
}

}  // namespace

std::optional<std::string> no_distribution(const CalibrationArtifact& artifact) {
  const ScoreOptions& score = artifact.method.score;
  if (score.traits().labels) {
    return "a predictive distribution needs a regression; this predictor answers labels";
  }
  if (!score.has_signed_ends()) {
    return concat("a predictive distribution needs the scores of one end, which ", score.name(),
                  " does not have here; calibrate with side upper, or residual, spread or ",
                  "quantiles with asymmetric");
  }
  const CalibrationTraits calibration = artifact.method.calibration.traits();
  if (calibration.by_feature || calibration.made_by_fit) {
    return concat("a predictive distribution takes the calibration split, grouped or weighted; ",
                  "this one is ", artifact.method.calibration.name());
  }
  if (const auto missing = missing_scores(artifact.rows.levels)) {
    return concat("the calibration ", *missing, "; a predictive distribution needs all scores");
  }
  return std::nullopt;
}

Event event_above(const std::string& text) { return {.from = threshold_in("above", text)}; }

Event event_below(const std::string& text) { return {.to = threshold_in("below", text)}; }

Event event_between(const std::string& text) {
  const size_t colon = std::min(text.find(':'), text.size());
  if (colon == text.size()) fail_option("between", "found ", text, ", expected FROM:TO");
  const Event event{threshold_in("between", text.substr(0, colon)),
                    threshold_in("between", text.substr(colon + 1))};
  if (!(event.from < event.to)) {
    fail_option("between", "found ", text, ", expected FROM:TO with FROM below TO");
  }
  return event;
}

std::vector<Level> even_levels(uint64_t count) {
  std::vector<Level> levels;
  for (uint64_t i = 1; i <= count; ++i) levels.push_back(Level::fraction(i, count + 1));
  return levels;
}

PredictiveDistribution::PredictiveDistribution(const CalibrationArtifact& artifact,
                                               torch::Device device)
    : side_(artifact.method.score.side == BoundSide::kLower ? BoundSide::kLower
                                                            : BoundSide::kUpper),
      support_(parse_support(artifact.method.score.support, artifact.method.score.integer)),
      predictor_(one_end_artifact(artifact), device) {}

torch::Tensor PredictiveDistribution::quantiles(const TestInputs& rows,
                                                std::span<const Level> probabilities) const {
  const torch::NoGradGuard no_grad;
  const RunOnce once;
  const bool upper = side_ == BoundSide::kUpper;
  std::vector<torch::Tensor> radii;
  for (const Level& p : probabilities) {
    radii.push_back(predictor_.calibration().radii(rows, upper ? Level(1 - p.value()) : p));
  }
  std::vector<torch::Tensor> columns;
  for (const Regions& regions : predictor_.score().regions(rows.features, radii)) {
    if (regions.prediction.size(1) != 1) {
      fail("a predictive distribution is one of a single output; the network answers ",
           regions.prediction.size(1));
    }
    torch::Tensor end = host_doubles(upper ? regions.upper : regions.lower);
    if (support_.integer) end = upper ? end.floor() : end.ceil();
    columns.push_back(end.clamp(support_.lower, support_.upper));
  }
  return torch::cat(columns, 1).contiguous();
}

// p(s) = (1 + #{s_i ≥ s}) / (n + 1), whatever the calibration counts: #{s_i < s} / (n + 1) is
// 1 − p, and #{s_i > s} what p counts at the next double. Above all scores p is the row's own.
std::vector<PredictiveDistribution::Place> PredictiveDistribution::places(
    const TestInputs& rows, std::span<const double> thresholds) const {
  const torch::NoGradGuard no_grad;
  const auto count = static_cast<int64_t>(thresholds.size());
  const torch::Tensor truth =
      torch::from_blob(const_cast<double*>(thresholds.data()), {count, 1}, torch::kDouble);
  const std::vector<double> scores = predictor_.score().score(rows.features, truth);
  std::vector<double> next;
  for (const double score : scores) next.push_back(std::nextafter(score, kInfinity));
  const std::vector<double> all(scores.size(), kInfinity);
  const Calibration& calibration = predictor_.calibration();
  const std::vector<double> at = calibration.p_values(rows, scores);
  const std::vector<double> after = calibration.p_values(rows, next);
  const std::vector<double> own = calibration.p_values(rows, all);
  std::vector<Place> found;
  for (size_t i = 0; i < at.size(); ++i) {
    const double low = 1 - at[i], high = std::min(1.0, 1 - after[i] + own[i]);
    const bool upper = side_ == BoundSide::kUpper;
    found.push_back(
        {upper ? ProbabilityBand{low, high} : ProbabilityBand{1 - high, 1 - low}, own[i]});
  }
  for (size_t i = 0; i < found.size(); ++i) {
    if (thresholds[i] < support_.lower) found[i] = {{0, 0}, 0};
    if (thresholds[i] >= support_.upper) found[i] = {{1, 1}, 0};
  }
  return found;
}

std::vector<ProbabilityBand> PredictiveDistribution::below(
    const TestInputs& rows, std::span<const double> thresholds) const {
  std::vector<double> asked(thresholds.begin(), thresholds.end());
  if (support_.integer) {
    for (double& threshold : asked) threshold = std::floor(threshold);
  }
  std::vector<ProbabilityBand> bands;
  for (const Place& place : places(rows, asked)) bands.push_back(place.band);
  return bands;
}

std::vector<ProbabilityBand> PredictiveDistribution::above(
    const TestInputs& rows, std::span<const double> thresholds) const {
  std::vector<ProbabilityBand> bands = below(rows, thresholds);
  for (ProbabilityBand& band : bands) band = {1 - band.upper, 1 - band.lower};
  return bands;
}

std::vector<ProbabilityBand> PredictiveDistribution::probability(const TestInputs& rows,
                                                                 const Event& event) const {
  const auto count = static_cast<size_t>(rows.features.size(0));
  const auto at = [&](double threshold, double beyond) {
    if (std::isinf(threshold)) {
      return std::vector<Place>(count, {{beyond, beyond}, 0});
    }
    const double asked = support_.integer ? std::floor(threshold) : threshold;
    return places(rows, std::vector<double>(count, asked));
  };
  const std::vector<Place> from = at(event.from, 0), to = at(event.to, 1);
  std::vector<ProbabilityBand> bands;
  for (size_t i = 0; i < count; ++i) {
    // The new row is one: its share cannot be left out at both thresholds.
    const double own = std::min(from[i].own, to[i].own);
    bands.push_back({std::max(0.0, to[i].band.lower - from[i].band.upper + own),
                     std::min(1.0, to[i].band.upper - from[i].band.lower)});
  }
  return bands;
}

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
