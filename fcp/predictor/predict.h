// Answers of a predictor for a stream of rows: regions to a sink, or how unusual each row's truth
// is; for intervals, sets of labels and images of pixels alike.
// Tested by tests/evaluate/evaluate_test.cc.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fcp/data/npy.h"
#include "fcp/data/rows.h"
#include "fcp/discoveries.h"
#include "fcp/level.h"
#include "fcp/predictor/context.h"
#include "fcp/predictor/distribution.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/predictor_core.h"
#include "fcp/predictor/region_writer.h"

namespace fcp {

// What `fcp predict` writes of predictive distributions beside the regions: quantiles,
// probabilities of events, another point prediction, and whole distributions as a file of their
// quantiles.
// Tested by tests/predictor/distribution_test.cc and tests/cli/test_distribution.py.

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

struct PredictOptions {
  std::vector<Level> levels = {Level(0.1)};
  RowFacts facts{};
  bool probabilities = false;                   // of the classes, beside sets of labels
  DistributionColumns* distribution = nullptr;  // whose columns are added to intervals
};

// Gives the regions of all rows to the writer, batch by batch, and closes it; returns the number of
// rows. An Error where there are none, or where an answer of the network is not a number.
size_t predict(const internal::PredictorCore& predictor, RowSource& source,
               const PredictOptions& options, const Context& context, RegionWriter& writer);

struct CheckOptions {
  Level level = Level(0.1);
  RowFacts facts{};
};

struct CheckedRow {
  size_t row = 0;                    // of the whole data, from 0
  std::span<const double> scores;    // one per side
  std::span<const double> p_values;  // one; with a radius for each target one for each
  std::vector<bool> in;              // likewise
};

struct CheckResult {
  size_t rows = 0;
  size_t in = 0;                     // with all targets
  std::vector<size_t> targets_in{};  // rows with each target in, where each has a radius
};

// What keeps the p-values of a predictor from being a test for outliers with a known rate of false
// ones (fcp/discoveries.h); nothing where rows of its own calibrate it, for all targets together.
std::optional<std::string> no_discoveries(const CalibrationArtifact& artifact);
// How these p-values depend on each other.
Dependence p_value_dependence(const CalibrationArtifact& artifact);

// Gives each row to `take`, in the order of the data. An Error names a row whose score is NaN; one
// where the artifact keeps the scores of some levels alone, from which no p-value follows.
CheckResult check(const internal::PredictorCore& predictor, RowSource& source,
                  const CheckOptions& options, const Context& context,
                  const std::function<void(const CheckedRow&)>& take);

}  // namespace fcp
