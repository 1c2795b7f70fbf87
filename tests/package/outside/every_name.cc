// Needs every function of the public headers that is not inline, so that a name that libfcp.so does
// not show (fcp/libfcp.map) is one that the linker misses.
#include "every_header.h"

namespace {

template <typename Function>
const void* address_of(Function function) {
  static Function kept;
  kept = function;
  return &kept;
}

using fcp::Answer;
using fcp::Batch;
using fcp::Distribution;
using fcp::InputSchema;
using fcp::Level;
using fcp::NamedValues;
using fcp::OutlierDetector;
using fcp::Predictor;
using fcp::Probabilities;
using fcp::Record;
using fcp::RowInfo;
using Text = const std::string&;
using Floats = std::span<const float>;
using Options = const fcp::CalibrateOptions&;
using Checks = const fcp::EvaluationOptions&;

}  // namespace

const void* every_name[] = {
    address_of(&fcp::version),
    address_of(&Level::parse),
    address_of(&Level::fraction),
    address_of(&Level::divided_by),
    address_of(&Level::floor_times),
    address_of(&Level::value),
    address_of(&Batch::rows),
    address_of(&InputSchema::inputs),
    address_of(&InputSchema::row_size),
    address_of(&InputSchema::columns),
    address_of(&InputSchema::may_be_missing),
    address_of(&InputSchema::group_column),
    address_of(&InputSchema::groups),
    address_of(&InputSchema::needs_weights),
    address_of<Batch (InputSchema::*)(std::span<const Record>, const RowInfo&) const>(
        &InputSchema::encode),
    address_of<Batch (InputSchema::*)(Floats, const RowInfo&) const>(&InputSchema::encode),
    address_of<Batch (InputSchema::*)(std::span<const NamedValues>, const RowInfo&) const>(
        &InputSchema::encode),
    address_of(&Answer::rows),
    address_of(&Answer::levels),
    address_of(&Answer::outputs),
    address_of(&Answer::classes),
    address_of(&Answer::pixels),
    address_of(&Answer::point),
    address_of(&Answer::points),
    address_of(&Answer::interval),
    address_of(&Answer::parts),
    address_of(&Answer::lower),
    address_of(&Answer::upper),
    address_of(&Answer::labels),
    address_of(&Answer::in_set),
    address_of(&Distribution::quantiles),
    address_of(&Distribution::above),
    address_of(&Distribution::below),
    address_of(&Distribution::between),
    address_of(&Probabilities::calibrated),
    address_of(&Probabilities::of),
    address_of(&OutlierDetector::reference_rows),
    address_of(&OutlierDetector::calibration_rows),
    address_of(&OutlierDetector::dependence),
    address_of(&OutlierDetector::scores),
    address_of(&OutlierDetector::p_values),
    address_of(&fcp::discoveries),
    address_of(&Predictor::load),
    address_of(&Predictor::save),
    address_of(&Predictor::schema),
    address_of(&Predictor::predict),
    address_of(&Predictor::judge),
    address_of(&Predictor::p_values),
    address_of(&Predictor::outputs),
    address_of(&Predictor::classes),
    address_of(&Predictor::calibration_rows),
    address_of(&Predictor::kept_levels),
    address_of<const std::map<std::string, std::string>& (Predictor::*)() const>(
        &Predictor::method),
    address_of<std::string (Predictor::*)(Text) const>(&Predictor::method),
    address_of(&Predictor::radius),
    address_of(&Predictor::warnings),
    address_of(&Predictor::provenance),
    address_of<Predictor (*)(Text, Text, Text, Options)>(&fcp::calibrate),
    address_of<Predictor (*)(Text, Floats, Floats, Options, const RowInfo&)>(&fcp::calibrate),
    address_of<Predictor (*)(Text, std::span<const NamedValues>, Floats, Options, const RowInfo&)>(
        &fcp::calibrate),
    address_of(&fcp::fit),
    address_of<fcp::EvaluationResult (*)(const Predictor&, Text, Text, Checks)>(&fcp::evaluate),
    address_of<fcp::EvaluationResult (*)(const Predictor&, const Batch&, Floats, Checks)>(
        &fcp::evaluate),
    address_of(&fcp::export_onnx),
    address_of<Batch (*)(const InputSchema&, const torch::Tensor&, const RowInfo&)>(&fcp::encode),
    address_of(&fcp::tensors),
    address_of<torch::Tensor (*)(const Predictor&, const Batch&)>(&fcp::features),
    address_of<std::vector<double> (*)(const Predictor&, const Batch&, const torch::Tensor&)>(
        &fcp::scores),
};
