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
#include <cstdint>
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

// How well the class probabilities of a network do, whatever the sets of labels are.
//
//   log loss       mean of −log p(true label); p is at least 10⁻¹⁵
//   AUC of class c the chance that a row of class c has a larger p(c) than a row of another class,
//                  equal ones counted half: the area under the curve of c against the rest
//
// The AUC needs the probabilities of all rows: four bytes of each row and class, up to 2²⁴ of them;
// of more there is no AUC. Cost: a sort for each class. Reference: Hanley and McNeil, The Meaning
// and Use of the Area under a ROC Curve, Radiology 1982.
// Tested by tests/evaluate/measures/probability_evaluation_test.cc.

class ClassSkill {
 public:
  explicit ClassSkill(size_t classes) : classes_(classes), numbers_(classes) {}

  // The logarithms of the probabilities of one row, [classes], and its label.
  void add(std::span<const float> log_probabilities, size_t label);

  std::optional<double> log_loss() const;
  // None of a class without rows, of one that all rows have, and of too many rows.
  std::optional<double> auc(size_t label) const;

 private:
  size_t classes_;
  std::vector<std::vector<float>> numbers_;  // of each class, of all rows
  std::vector<uint32_t> labels_;
  size_t rows_ = 0;
  double loss_ = 0;
};

// How good predictive distributions are on rows whose truth is known.
//
//   CRPS     ∫ (F(t) − [y ≤ t])² dt, the mean absolute error of a distribution, in the unit of y:
//            twice the mean pinball loss over the quantiles 1/(Q + 1), …, Q/(Q + 1)
//   PIT      F(y), drawn between its bounds: uniform where the distributions are calibrated. Ten
//            counts, and between which a count lies nineteen times in twenty where they are:
//            beta-binomial, for the n calibration rows are the same for all
//   thresholds   how probable it was to exceed a number, the mean over rows, and how often it was:
//            at the quartiles of the truth, on the first 5,000 rows
//
// Reference: Gneiting, Raftery, Strictly Proper Scoring Rules, JASA 2007, section 4.2; Gneiting,
// Balabdaoui, Raftery, Probabilistic forecasts, calibration and sharpness, JRSS B 2007.
// Tested by tests/evaluate/measures/probability_evaluation_test.cc.

inline constexpr size_t kPitBins = 10;
inline constexpr size_t kThresholdRows = 5000;

struct ThresholdCalibration {
  double threshold = 0;
  double predicted = 0;  // the mean probability to exceed it
  double observed = 0;   // the share of rows that did
};

struct DistributionEvaluation {
  size_t rows = 0;
  double crps = 0;
  std::array<size_t, kPitBins> pit{};
  double pit_low = 0, pit_high = 0;  // counts between which a bin lies with 95 %
  std::vector<ThresholdCalibration> thresholds{};
};

// Twice the mean pinball loss of ascending quantiles at even levels. +∞ where one is infinite.
double crps_of_quantiles(std::span<const double> quantiles, double truth);

class DistributionEvaluator {
 public:
  // Of `levels` quantiles a row.
  explicit DistributionEvaluator(size_t levels) : levels_(levels) {}

  // A row: its quantiles, its truth, and its place in the distribution, in [0, 1].
  void add(std::span<const double> quantiles, double truth, double place);

  // With so many calibration rows. At least one row is required.
  DistributionEvaluation finish(size_t calibration_rows) const;

 private:
  std::vector<ThresholdCalibration> thresholds() const;

  size_t levels_;
  size_t rows_ = 0;
  double crps_ = 0;
  std::array<size_t, kPitBins> pit_{};
  std::vector<double> truths_;     // of the first rows
  std::vector<double> quantiles_;  // [truths × levels]
};

}  // namespace fcp
