#include "fcp/evaluate/measures/probability_evaluation.h"

#include <algorithm>
#include <cmath>

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

}  // namespace fcp
