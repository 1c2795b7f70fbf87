// How good class probabilities are on rows whose label is known: those of a network, or those that
// were calibrated.
//
//   log loss      mean of −log p(true label)
//   Brier score   mean over rows of the sum over classes of (p − [it is the class])²
//   reliability   rows in bins of a probability: beside the mean of p in the bin, the share of rows
//                 in which it came true; equal where probabilities are calibrated
//   ECE           the mean of |share − mean p| over bins, weighted by their rows
//
// Reference: Guo, Pleiss, Sun, Weinberger, On Calibration of Modern Neural Networks, ICML 2017.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace fcp {

struct ReliabilityBin {
  double from = 0, to = 0;
  size_t rows = 0;
  double predicted = 0, observed = 0;
  double low = 0, high = 0;  // where `observed` lies with 95 % if probabilities are calibrated
};

struct ProbabilityFigures {
  double log_loss = 0, brier = 0, ece = 0;
};

struct ProbabilityEvaluation {
  std::string method;  // "softmax", "venn-abers"
  std::string of;      // whose probability is binned: of two classes one's name, else "answer"
  size_t rows = 0;
  ProbabilityFigures figures;
  std::vector<ReliabilityBin> reliability;    // empty bins are left out
  std::optional<double> mean_gap;             // venn-abers: mean of p1 − p0
  std::optional<ProbabilityFigures> softmax;  // venn-abers: the network's own
};

}  // namespace fcp
