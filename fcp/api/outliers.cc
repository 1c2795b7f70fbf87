#include "fcp/outliers.h"

#include <utility>

#include "fcp/calibrate/outliers.h"
#include "fcp/predictor/predictor_core.h"

namespace fcp {

OutlierDetector::OutlierDetector(const Predictor& predictor, const Batch& usual,
                                 const OutlierOptions& options) {
  const internal::PredictorCore& core = internal::Access::core(predictor);
  OutlierFeatures source(core.artifact(), options.cut, core.device());
  const torch::Tensor features = source.of(internal::Access::data(usual).x);
  detector_ = std::make_shared<const FeatureOutliers>(std::move(source), features, options);
}

size_t OutlierDetector::reference_rows() const { return detector_->reference_rows(); }
size_t OutlierDetector::calibration_rows() const { return detector_->calibration_rows(); }
Dependence OutlierDetector::dependence() const { return detector_->dependence(); }

std::vector<double> OutlierDetector::scores(const Batch& rows) const {
  return detector_->scores(detector_->source().of(internal::Access::data(rows).x));
}

std::vector<double> OutlierDetector::p_values(const Batch& rows,
                                              const std::vector<double>& weights) const {
  return detector_->p_values(scores(rows), weights);
}

}  // namespace fcp
