// A calibrated predictor as Python holds it: the Predictor of the library, to which arrays come and
// from which they go. Every function here takes Python's objects and so needs its lock; each
// releases it while it works.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/pybind11.h>
#include <torch/types.h>

#include "fcp/calibrate/collect_scores.h"
#include "fcp/data/rows.h"
#include "fcp/level.h"
#include "fcp/predictor/context.h"
#include "fcp/predictor/distribution.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/predictor_core.h"

#include "python/arrays.h"
#include "python/options.h"

namespace fcp {

// Notes and warnings on stderr, where they are wanted.
class StderrObserver : public Observer {
 public:
  explicit StderrObserver(bool verbose) : verbose_(verbose) {}
  void chosen(const Choices& choices) override;
  void note(const std::string& text) override;
  void warning(const std::string& text) override;

 private:
  bool verbose_;
};

// Python's own warnings, of the line that called.
void warn(const std::vector<std::string>& texts);

// A number, or its decimal digits as text.
Level level_of(const pybind11::handle& alpha);

// "cpu" or "cuda"; an Error where the device is not there.
torch::Device device_of(const std::string& name);

// What a caller says of rows besides x and y, already in the numbers that the predictor knows.
RowFacts facts_of(const pybind11::dict& given);

// A calibrated network with what runs it.
class LoadedPredictor {
 public:
  LoadedPredictor(CalibrationArtifact artifact, const std::string& device)
      : core_(std::make_shared<const internal::PredictorCore>(std::move(artifact),
                                                              device_of(device))) {
    made_.finished = true;
  }

  // Of a calibration that is finished when somebody asks for its artifact.
  explicit LoadedPredictor(UnfinishedCalibration made)
      : made_(std::move(made)), core_(made_.predictor) {}

  // With its whole provenance.
  const CalibrationArtifact& artifact() const;
  // The same, but perhaps without hashes, and the scores in any order.
  const CalibrationArtifact& settings() const { return core_->artifact(); }
  const internal::PredictorCore& core() const { return *core_; }
  std::vector<double> radius(const Level& level) const { return core_->radius(level); }
  std::string device() const { return core_->device().is_cuda() ? "cuda" : "cpu"; }
  bool labels() const { return core_->labels(); }

  // What the score takes each output of the network for, by name.
  std::map<std::string, std::string> outputs() const;

  int64_t classes() const { return core_->score().classes(); }  // 0: intervals

  // Intervals: prediction [N, K] and ends [N, K, 2, levels]. Labels: prediction [N] and members
  // [N, C, levels]. No levels: the prediction, for which no groups and weights are needed.
  // `before`: how many rows came before these, where rows come in batches. Localized draws for each
  // row anew.
  pybind11::tuple regions(const pybind11::object& array, const pybind11::list& alphas,
                          const pybind11::dict& given, int64_t before) const;

  // Scores [N, sides], p-values [N], and whether each row is within its radius [N].
  pybind11::tuple check(const pybind11::object& array, const pybind11::object& answers,
                        const pybind11::object& alpha, const pybind11::dict& given) const;

  // Of the predictive distributions: quantiles [N, probabilities], and the bounds of how probable
  // each event (from, to], a pair of numbers, is [N, events, 2].
  pybind11::tuple distribution(const pybind11::object& array, const pybind11::list& probabilities,
                               const std::vector<std::pair<double, double>>& events,
                               const pybind11::dict& given) const;

  // Between which numbers F at a threshold for each row lies, [N, 2].
  pybind11::object below(const pybind11::object& array, const pybind11::object& thresholds,
                         const pybind11::dict& given) const;

  // The text of the JSON that `fcp evaluate --json` prints; and its HTML page, where asked for.
  std::string evaluate(const pybind11::object& array, const pybind11::object& answers,
                       const pybind11::object& alpha, const pybind11::dict& given,
                       const std::string& report, bool verbose) const;

 private:
  // Gives all rows to `take`, some at a time, with what is known of them; fewer at a time where
  // there are several levels, whose regions take memory together.
  void each_batch(internal::TensorRows& rows, const RowFacts& facts, size_t levels,
                  const std::function<void(const internal::BatchData&, int64_t first)>& take) const;

  // Made when it is asked for; an Error where there is none.
  std::shared_ptr<const PredictiveDistribution> distributions() const;

  mutable UnfinishedCalibration made_;
  std::shared_ptr<const internal::PredictorCore> core_;
  mutable std::mutex finishing_;
  mutable std::mutex distributing_;
  mutable std::shared_ptr<const PredictiveDistribution> distributions_;
};

// Calibrates on arrays; `options` are the parameters of an estimator by name. `shifted` and
// `fit_data`, a pair of rows and answers to fit heads on, may be None.
std::shared_ptr<LoadedPredictor> calibrate_arrays(
    const LoadedNetwork& network, const pybind11::object& array, const pybind11::object& answers,
    const pybind11::dict& options, const pybind11::dict& given, const pybind11::object& shifted,
    const pybind11::object& fit_data);

}  // namespace fcp
