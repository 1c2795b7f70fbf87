// How unlike usual rows a row is, by the features of a network; include/fcp/outliers.h says what
// the p-values promise.
//
// Features are standardised by the mean and deviation of the part that is compared with, column by
// column, in double precision. Of R rows of D features a row costs R · D operations; the score of a
// row does not depend on its batch.
//
// Reference: Bates, Candès, Lei, Romano, Sesia, Testing for outliers with conformal p-values, 2023;
// Tibshirani, Barber, Candès, Ramdas, Conformal prediction under covariate shift, 2019, of weights;
// Angiulli, Pizzuti, Fast outlier detection in high dimensional spaces, 2002, of neighbours.
// Tested by tests/calibrate/outliers_test.cc; against puncc by tests/python/test_peers.py.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/nn/runtime/network.h"
#include "fcp/outliers.h"
#include "fcp/predictor/artifact.h"

namespace fcp {

inline constexpr char kByNeighbours[] = "neighbours";
inline constexpr char kByDensity[] = "density";

// The part of a network that makes the features which outliers are told by.
class OutlierFeatures {
 public:
  // `cut` as in OutlierOptions.
  OutlierFeatures(const CalibrationArtifact& artifact, const std::string& cut,
                  torch::Device device = torch::kCPU);

  const std::string& cut() const { return cut_; }  // empty: the network's input

  // x [N, …] → [N, D] doubles on the CPU. `first`: the number of the first row, for the Error that
  // names one with a NaN.
  torch::Tensor of(const torch::Tensor& x, size_t first = 0) const;

 private:
  std::string cut_;
  std::optional<Network> backbone_;
  torch::Device device_;
};

class FeatureOutliers {
 public:
  // features [N, D] of the usual rows.
  FeatureOutliers(OutlierFeatures source, const torch::Tensor& features,
                  const OutlierOptions& options);

  const OutlierFeatures& source() const { return source_; }
  size_t reference_rows() const { return static_cast<size_t>(reference_.size(0)); }
  size_t calibration_rows() const { return sorted_.size(); }
  Dependence dependence() const {
    return weights_.empty() ? Dependence::kPositive : Dependence::kAny;
  }

  std::vector<double> scores(const torch::Tensor& features) const;
  // Of scores; `weights` of the same rows where the usual rows have some, and else none.
  std::vector<double> p_values(std::span<const double> scores,
                               std::span<const double> weights) const;

 private:
  OutlierFeatures source_;
  bool density_;
  int64_t neighbours_;
  torch::Tensor mean_, deviation_;  // [D]
  torch::Tensor reference_;         // [R, D], standardised
  double width_ = 1;                // of the kernel
  std::vector<double> sorted_;      // scores of the rows that calibrate
  std::vector<double> weights_;     // in the same order; empty: all 1
};

}  // namespace fcp
