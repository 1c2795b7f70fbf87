// Rows that are unlike usual ones, and which p-values are discoveries.
#include "fcp/calibrate/outliers.h"

#include <pybind11/stl.h>

#include "python/arrays.h"
#include "python/predictor.h"

namespace fcp {
namespace {

namespace py = pybind11;

// Scores [N], p-values [N], and whether the p-values may depend on each other in any way.
py::tuple feature_outliers(const LoadedPredictor& predictor, const py::object& array,
                           const py::object& usual, const py::dict& given) {
  const torch::Tensor rows = as_rows(tensor_of(array, "X"), "X");
  const torch::Tensor known = as_rows(tensor_of(usual, "reference"), "reference");
  OutlierOptions options{.score = given["score"].cast<std::string>(),
                         .neighbours = given["neighbours"].cast<size_t>(),
                         .cut = given["cut"].cast<std::string>(),
                         .seed = given["seed"].cast<uint64_t>(),
                         .weights = given["reference_weights"].cast<std::vector<double>>()};
  const auto weights = given["weights"].cast<std::vector<double>>();
  const internal::PredictorCore& core = predictor.core();
  std::vector<double> scores, p_values;
  Dependence dependence{};
  {
    py::gil_scoped_release unlocked;
    OutlierFeatures source(predictor.settings(), options.cut, core.device());
    const torch::Tensor features = source.of(core.schema().encode(known, {}).x);
    const FeatureOutliers detector(std::move(source), features, options);
    scores = detector.scores(detector.source().of(core.schema().encode(rows, {}).x));
    p_values = detector.p_values(scores, weights);
    dependence = detector.dependence();
  }
  return py::make_tuple(array_of(torch::tensor(scores, torch::kDouble)),
                        array_of(torch::tensor(p_values, torch::kDouble)),
                        dependence == Dependence::kAny);
}

std::vector<bool> python_discoveries(const std::vector<double>& p_values, const py::object& rate,
                                     bool any_dependence) {
  return discoveries(p_values, level_of(rate),
                     any_dependence ? Dependence::kAny : Dependence::kPositive);
}

}  // namespace

void bind_outliers(py::module_& module) {
  module.def("feature_outliers", feature_outliers, py::arg("predictor"), py::arg("x"),
             py::arg("reference"), py::arg("options"));
  module.def("discoveries", python_discoveries, py::arg("p_values"), py::arg("rate"),
             py::arg("any_dependence"));
}

}  // namespace fcp
