#include "fcp/evaluate/measures/probability_evaluation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fcp/base/error.h"

namespace fcp {

JudgedProbabilities judge_probabilities(std::span<const double> probabilities, size_t label) {
  if (probabilities.size() < 2 || label >= probabilities.size()) {
    fail("found the label ", label, " of ", probabilities.size(),
         " classes, expected one of at least two");
  }
  // A probability of 0 of what happened would make the mean infinite whatever the other rows are.
  constexpr double kLeast = 1e-15;
  JudgedProbabilities row{.log_loss = -std::log(std::max(kLeast, probabilities[label]))};
  if (probabilities.size() == 2) {
    row.event_class = 1;
    row.brier = std::pow(probabilities[1] - (label == 1 ? 1 : 0), 2);
  } else {
    const auto most = std::max_element(probabilities.begin(), probabilities.end());
    row.event_class = static_cast<size_t>(most - probabilities.begin());
    for (size_t k = 0; k < probabilities.size(); ++k) {
      row.brier += std::pow(probabilities[k] - (k == label ? 1 : 0), 2);
    }
  }
  row.predicted = probabilities[row.event_class];
  row.happened = row.event_class == label ? 1 : 0;
  return row;
}

void ProbabilityEvaluator::add(const JudgedProbabilities& row) {
  if (!(row.predicted >= 0 && row.predicted <= 1)) {
    fail("row ", rows_, ": found the probability ", row.predicted, ", expected one from 0 to 1");
  }
  ++rows_;
  log_loss_ += row.log_loss;
  brier_ += row.brier;
  const auto place = static_cast<size_t>(row.predicted * static_cast<double>(kReliabilityBins));
  Bin& bin = bins_[std::min(place, kReliabilityBins - 1)];
  ++bin.rows;
  bin.predicted += row.predicted;
  bin.happened += row.happened;
}

ProbabilityFigures ProbabilityEvaluator::figures() const {
  if (rows_ == 0) fail("probabilities of no rows cannot be evaluated");
  const auto rows = static_cast<double>(rows_);
  ProbabilityFigures found{.log_loss = log_loss_ / rows, .brier = brier_ / rows};
  for (const Bin& bin : bins_) found.ece += std::abs(bin.predicted - bin.happened) / rows;
  return found;
}

std::vector<ReliabilityBin> ProbabilityEvaluator::reliability() const {
  std::vector<ReliabilityBin> found;
  constexpr double kDeviations = 1.96;
  for (size_t i = 0; i < bins_.size(); ++i) {
    if (bins_[i].rows == 0) continue;
    const auto rows = static_cast<double>(bins_[i].rows);
    ReliabilityBin bin{.from = static_cast<double>(i) / kReliabilityBins,
                       .to = static_cast<double>(i + 1) / kReliabilityBins,
                       .rows = bins_[i].rows,
                       .predicted = bins_[i].predicted / rows,
                       .observed = bins_[i].happened / rows};
    const double spread =
        kDeviations * std::sqrt(std::max(0.0, bin.predicted * (1 - bin.predicted)) / rows);
    bin.low = std::max(0.0, bin.predicted - spread);
    bin.high = std::min(1.0, bin.predicted + spread);
    found.push_back(bin);
  }
  return found;
}

namespace {

constexpr size_t kMostProbabilities = size_t{1} << 24;
constexpr double kLeastProbability = 1e-15;

}  // namespace

void ClassSkill::add(std::span<const float> log_probabilities, size_t label) {
  loss_ -= std::max(static_cast<double>(log_probabilities[label]), std::log(kLeastProbability));
  ++rows_;
  if (rows_ * classes_ > kMostProbabilities) {
    numbers_.clear();
    labels_.clear();
    return;
  }
  for (size_t c = 0; c < classes_; ++c) numbers_[c].push_back(log_probabilities[c]);
  labels_.push_back(static_cast<uint32_t>(label));
}

std::optional<double> ClassSkill::log_loss() const {
  if (rows_ == 0) return std::nullopt;
  return loss_ / static_cast<double>(rows_);
}

// By the sum of the ranks of the rows of the class, those of equal numbers shared.
std::optional<double> ClassSkill::auc(size_t label) const {
  const double own =
      static_cast<double>(std::count(labels_.begin(), labels_.end(), static_cast<uint32_t>(label)));
  const double others = static_cast<double>(labels_.size()) - own;
  if (own == 0 || others == 0) return std::nullopt;
  const std::vector<float>& numbers = numbers_[label];
  std::vector<size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return numbers[a] < numbers[b]; });
  double ranks = 0;
  for (size_t first = 0, last = 0; first < order.size(); first = last) {
    size_t hits = 0;
    for (; last < order.size() && numbers[order[last]] == numbers[order[first]]; ++last) {
      hits += labels_[order[last]] == label;
    }
    const double middle = static_cast<double>(first + last + 1) / 2;
    ranks += middle * static_cast<double>(hits);
  }
  return (ranks - own * (own + 1) / 2) / (own * others);
}

double crps_of_quantiles(std::span<const double> quantiles, double truth) {
  const auto count = static_cast<double>(quantiles.size());
  double sum = 0;
  for (size_t i = 0; i < quantiles.size(); ++i) {
    const double level = static_cast<double>(i + 1) / (count + 1);
    const double above = truth - quantiles[i];
    sum += above >= 0 ? level * above : (level - 1) * above;
  }
  return 2 * sum / count;
}

void DistributionEvaluator::add(std::span<const double> quantiles, double truth, double place) {
  if (quantiles.size() != levels_) {
    fail("found ", quantiles.size(), " quantiles of a row, expected ", levels_);
  }
  if (!(place >= 0 && place <= 1) || !std::isfinite(truth)) {
    fail("row ", rows_, ": the place ", place, " of the truth ", truth,
         "; expected 0 to 1 and a finite truth");
  }
  ++rows_;
  crps_ += crps_of_quantiles(quantiles, truth);
  const auto bin = static_cast<size_t>(place * static_cast<double>(kPitBins));
  ++pit_[std::min(bin, kPitBins - 1)];
  if (truths_.size() == kThresholdRows) return;
  truths_.push_back(truth);
  quantiles_.insert(quantiles_.end(), quantiles.begin(), quantiles.end());
}

std::vector<ThresholdCalibration> DistributionEvaluator::thresholds() const {
  std::vector<double> sorted = truths_;
  std::sort(sorted.begin(), sorted.end());
  std::vector<ThresholdCalibration> found;
  const auto rows = static_cast<double>(truths_.size());
  for (const size_t quarter : {1, 2, 3}) {
    ThresholdCalibration one{.threshold = sorted[(sorted.size() - 1) * quarter / 4]};
    for (size_t row = 0; row < truths_.size(); ++row) {
      one.observed += truths_[row] > one.threshold ? 1 / rows : 0;
      const auto first = quantiles_.begin() + static_cast<std::ptrdiff_t>(row * levels_);
      const auto above = std::count_if(first, first + static_cast<std::ptrdiff_t>(levels_),
                                       [&](double q) { return q > one.threshold; });
      // Between two neighbouring quantiles, whose levels differ by 1 / (Q + 1).
      one.predicted += (static_cast<double>(above) + 0.5) / static_cast<double>(levels_ + 1) / rows;
    }
    found.push_back(one);
  }
  return found;
}

DistributionEvaluation DistributionEvaluator::finish(size_t calibration_rows) const {
  if (rows_ == 0) fail("distributions of no rows cannot be evaluated");
  const auto rows = static_cast<double>(rows_);
  const auto calibrated = static_cast<double>(calibration_rows);
  DistributionEvaluation result{.rows = rows_, .crps = crps_ / rows, .pit = pit_};
  constexpr double kShare = 1.0 / kPitBins, kDeviations = 1.96;
  // Of a beta-binomial count with a + b = n + 1.
  const double deviation =
      std::sqrt(rows * kShare * (1 - kShare) * (calibrated + 1 + rows) / (calibrated + 2));
  result.pit_low = std::max(0.0, rows * kShare - kDeviations * deviation);
  result.pit_high = std::min(rows, rows * kShare + kDeviations * deviation);
  result.thresholds = thresholds();
  return result;
}

}  // namespace fcp
