// How good probabilities of classes are on rows whose label is known.
//
//   log loss    −log of the probability of the true label, the mean over rows
//   Brier       of two classes (p − [y is the second])², of more Σ_k (p_k − [y = k])²; the mean
//   reliability ten bins of equal width by a probability: how probable the event was, the mean of
//               the bin, and how often it came. Of two classes the event is that the row is of the
//               second one, of more that the most probable label is right
//   ECE         Σ over bins |predicted − observed| · rows of the bin / rows: it depends on the
//               bins, and is above 0 by chance for calibrated probabilities too
//
// Reference: Brier, Verification of forecasts expressed in terms of probability, 1950; Guo, Pleiss,
// Sun, Weinberger, On calibration of modern neural networks, 2017.
// Tested by tests/evaluate/measures/probability_evaluation_test.cc.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fcp {

inline constexpr size_t kReliabilityBins = 10;

struct ReliabilityBin {
  double from = 0, to = 0;
  size_t rows = 0;
  double predicted = 0, observed = 0;
  double low = 0, high = 0;  // where `observed` lies with 95 % if `predicted` is right
};

struct ProbabilityFigures {
  double log_loss = 0, brier = 0, ece = 0;
};

struct ProbabilityEvaluation {
  std::string method;  // softmax or venn-abers
  std::string of;      // the class that the bins are of; "answer": the most probable label
  size_t rows = 0;     // whose label is one of the classes
  ProbabilityFigures figures;
  std::vector<ReliabilityBin> reliability{};  // those with rows
  // Calibrated alone: the mean of p1 − p0 of the event, and the figures of the network's own.
  std::optional<double> mean_gap{};
  std::optional<ProbabilityFigures> softmax{};
};

// What a row adds to the figures.
struct JudgedProbabilities {
  double log_loss = 0, brier = 0;
  double predicted = 0;  // of the event
  double happened = 0;   // 1 or 0
  size_t event_class = 0;
};

// The probabilities of all classes, at least two, and the true label.
JudgedProbabilities judge_probabilities(std::span<const double> probabilities, size_t label);

class ProbabilityEvaluator {
 public:
  void add(const JudgedProbabilities& row);

  size_t rows() const { return rows_; }
  // At least one row is required.
  ProbabilityFigures figures() const;
  std::vector<ReliabilityBin> reliability() const;

 private:
  struct Bin {
    size_t rows = 0;
    double predicted = 0, happened = 0;  // sums
  };

  size_t rows_ = 0;
  double log_loss_ = 0, brier_ = 0;
  std::array<Bin, kReliabilityBins> bins_{};
};

}  // namespace fcp
