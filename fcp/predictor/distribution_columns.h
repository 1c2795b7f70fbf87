// What `fcp predict` writes of predictive distributions beside the regions: quantiles,
// probabilities of events, another point prediction, and whole distributions as a file of their
// quantiles.
// Tested by tests/predictor/distribution_test.cc and tests/cli/test_distribution.py.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fcp/data/npy.h"
#include "fcp/level.h"
#include "fcp/predictor/distribution.h"

namespace fcp {

inline constexpr uint64_t kGridQuantiles = 99;  // of a whole distribution

struct DistributionRequest {
  std::vector<std::string> quantiles{};  // numbers in (0, 1), as typed
  std::vector<std::string> above{};      // thresholds
  std::vector<std::string> below{};
  std::vector<std::string> between{};  // FROM:TO
  // Thresholds above and below that are columns of the data instead: the numbers of all rows.
  std::map<std::string, std::vector<double>> columns{};
  std::string point{};  // mean, median or a number in (0, 1); empty: the network's
  std::string grid{};   // an .npy of [N, 99] quantiles; empty: none

  bool empty() const;
};

class DistributionColumns {
 public:
  // An Error for an artifact that has no distribution, or a request that is not one.
  DistributionColumns(const CalibrationArtifact& artifact, const DistributionRequest& request,
                      torch::Device device);
  // Of distributions that others use too.
  DistributionColumns(std::shared_ptr<const PredictiveDistribution> distribution,
                      const DistributionRequest& request);

  // quantile_0.05, above_30_lower, above_30_upper, below_…, between_…
  const std::vector<std::string>& names() const { return names_; }

  // The numbers of the next rows, [N, names], after they have gone into the grid file.
  torch::Tensor columns(const TestInputs& rows);
  // [N, 1]; undefined where the network's own prediction stays.
  torch::Tensor points(const TestInputs& rows) const;
  TestInputs describe(const torch::Tensor& x, const SideInformation& known) const {
    return distribution_->describe(x, known);
  }
  // Makes the grid file whole.
  void close();

 private:
  std::shared_ptr<const PredictiveDistribution> distribution_;
  // An event of all rows alike, or one with a threshold for each row.
  struct Asked {
    Event event;
    bool above = false;
    std::vector<double> thresholds{};
  };
  std::vector<ProbabilityBand> bands_of(const Asked& asked, const TestInputs& rows) const;

  std::vector<Level> quantiles_;
  std::vector<Asked> events_;
  size_t done_ = 0;           // rows so far
  std::vector<Level> point_;  // whose quantiles' mean is the point
  std::vector<std::string> names_;
  std::unique_ptr<NpyWriter> grid_;
};

}  // namespace fcp
